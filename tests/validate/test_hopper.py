"""What Nsight Compute counted of `hopper.cu` on an NVIDIA H200 (driver 580.159.04).

Accesses to another block's shared memory, bulk copies and the operands of `wgmma` are in none of
the counts of loads and stores: on the chip generic accesses and the tensor memory accelerator have
them. Bulk copies of global memory are sectors of L2 there (one for 32 bytes, of a multicast once).
An atomic on another block's memory is a wavefront of it, which cutrace does not count.
"""

from pathlib import Path

import numpy as np
import pytest

import cutrace

SOURCE = Path(__file__).parent / "hopper.cu"
METRICS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "smsp__sass_inst_executed_op_shared_ld.sum",
    "smsp__sass_inst_executed_op_shared_st.sum",
    "smsp__sass_inst_executed_op_global_st.sum",
)
CHIP = {
    "nothing": (0, 0, 0, 0, 0, 0, 0, 0),
    "load_other": (0, 32, 128, 0, 32, 0, 32, 32),
    "load_own": (0, 32, 128, 32, 32, 32, 32, 32),
    "store_other": (0, 32, 128, 32, 0, 32, 0, 32),
    "send": (0, 32, 128, 32, 0, 32, 0, 32),
    "gate": (0, 0, 0, 0, 0, 0, 0, 0),
    "bulk_in": (0, 0, 0, 32, 0, 32, 0, 0),
    "bulk_out": (0, 0, 0, 0, 32, 0, 32, 0),
    "bulk_across": (0, 0, 0, 32, 0, 32, 0, 0),
    "products": (0, 32, 128, 0, 1024, 0, 1024, 32),
}


@pytest.mark.slow  # ten kernels are compiled and replayed
def test_counts_of_what_hopper_alone_has_are_the_chips(tmp_path: Path) -> None:
    trace = tmp_path / "hopper.cutrace"
    with cutrace.Session(trace) as gpu:
        module = gpu.compile(SOURCE, arch="compute_90a")
        out = gpu.device_array(1 << 14, np.int32)
        for name in CHIP:
            module.get_function(name)[8, 128, 0, 16384 * (name == "products")](out)
    profile = cutrace.analyze(trace, device="h200")
    found = {
        launch.launch.kernel: tuple(launch.counters[metric] for metric in METRICS)
        for launch in profile.launches
    }
    assert found == CHIP
