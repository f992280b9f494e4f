"""A launch's accesses as the assembler made them: rows joined, gone, in pieces, issued in vain."""

from pathlib import Path

import numpy as np
import pytest
from hand_trace import Access, hand_trace, instruction, launch
from warps import warp

import cutrace
from cutrace.traces.reader import Trace
from cutrace.traces.schema import AssembledAccess, Resources, Space

FULL = 0xFFFF_FFFF


def traced(path: Path, *made: AssembledAccess) -> Trace:
    """A warp reads four neighbouring words of shared memory, the same for all lanes; then it
    stores to global memory, in a block of code that one of two warps comes to."""
    known = Resources("sm_90", 16, 1024, 0, 0, accesses=made)
    table = [instruction(pc, "ld.shared.f32") for pc in range(4)]
    table += [instruction(4, "bra"), instruction(5, "st.global.f32", block=1)]
    loads = [
        Access(warp(stride=0, base=4 * pc), pc=pc, warp=w, step=pc, space=Space.SHARED)
        for w in (0, 1)
        for pc in range(4)
    ]
    store = Access(warp(base=0x1000_0000), pc=5, step=5)
    paths = [[(0, FULL, FULL, 1, 1), (1, FULL, 0, 0, 1)], [(0, FULL, FULL, 1, 1)]]
    return hand_trace(
        path / "k.cutrace",
        [*loads, store],
        launch=launch(block=(64, 1, 1), shared_static=1024, resources=(known,)),
        instructions=table,
        paths=paths,
        control=[(0, 0, 0, 0), (0, 1, 0, 1)],
    )


JOINED = (AssembledAccess(0, ((0, 16),)), *(AssembledAccess(pc, ()) for pc in (1, 2, 3)))
LOADS, BYTES = "shared_load_requests", "smsp__sass_data_bytes_mem_shared_op_ld.sum"


@pytest.mark.parametrize(
    ("device", "code", "loads"),
    [("h200", "assembled", 2), ("h200", "ptx", 8), ("a100", "assembled", 8)],
)
def test_joined_loads_are_one_request_on_the_device_that_joins_them(
    device: str, code: str, loads: int, tmp_path: Path
) -> None:
    (found,) = cutrace.analyze(traced(tmp_path, *JOINED), device, code=code).launches
    assert found.counters[LOADS] == loads  # of two warps: one each, or four
    assert found.counters[BYTES] == 2 * 16  # all lanes want the same 16 bytes


def test_devices_of_one_question_each_run_their_own_code(tmp_path: Path) -> None:
    counted = cutrace.analyze(traced(tmp_path, *JOINED), ["h200", "a100", "h100"]).launches
    assert [one.counters[LOADS] for one in counted] == [2, 8, 2]


REGISTER_TILE = """
__global__ void tile(float *out, const float *a)
{
    __shared__ float rows[8 * 128];
    for (int i = threadIdx.x; i < 1024; i += 256)
        rows[i] = a[i];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k)
        for (int i = 0; i < 8; ++i)
            sum += rows[k * 128 + threadIdx.x / 16 * 8 + i];
    out[threadIdx.x] = sum;
}
"""


def test_eight_neighbouring_words_are_two_wide_loads_since_7_0(tmp_path: Path) -> None:
    # nvdisasm 13.5 of this kernel for 7.5 to 12.0: LDS.128, two for each of 8 rows; a warp of 8
    # loads two pieces of each: 8 warps x 8 x 2; in PTX (and for 6.1, said so) 8 x 8 x 8
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        a = gpu.to_device(np.arange(1024, dtype=np.float32), name="a")
        out = gpu.to_device(np.zeros(256, np.float32), name="out")
        gpu.compile(REGISTER_TILE).get_function("tile")[1, 256](out, a)
    names = ("t4", "a100", "rtx3060", "rtx4090", "h100", "b200", "rtx5090", "gtx1080")
    counted = cutrace.analyze(tmp_path / "t.cutrace", [*names]).launches
    assert [one.counters[LOADS] for one in counted] == [*[128] * 7, 512]
    assert ["its machine code for 6.1 is not read" in str(one.warnings) for one in counted] == [
        *[False] * 7,
        True,
    ]


def test_a_load_in_two_pieces_is_two_requests(tmp_path: Path) -> None:
    pieces = AssembledAccess(0, ((0, 2), (2, 2)))
    (found,) = cutrace.analyze(traced(tmp_path, pieces), "h200").launches
    assert found.counters[LOADS] == 2 * (2 + 3)


def test_warps_issue_a_predicated_store_in_vain_and_nothing_moves(tmp_path: Path) -> None:
    store = AssembledAccess(5, ((0, 4),), issued=4)
    (found,) = cutrace.analyze(traced(tmp_path, store), "h200").launches
    counters = found.counters
    assert counters["smsp__inst_executed_op_global_st.sum"] == 2  # both warps
    assert counters["smsp__sass_inst_executed_op_global_st.sum"] == 1
    assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 4  # 32 words


def test_loads_that_never_run_are_issued_with_their_copy(tmp_path: Path) -> None:
    made = AssembledAccess(0, ((0, 4),), issued=4, spare=3)
    (found,) = cutrace.analyze(traced(tmp_path, made), "h200").launches
    # of two warps 4 loads each, and 3 that never run
    assert found.counters["smsp__inst_executed_op_shared_ld.sum"] == 2 * (4 + 3)
    assert found.counters["smsp__sass_inst_executed_op_shared_ld.sum"] == 2 * 4
