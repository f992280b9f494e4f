"""What Nsight Compute keeps out of loads and stores: copies to shared memory, loads of matrices.

The same kernels ran on an H200: two_stages of tests/validate/counters/fresh_groups.cu has 512
requests and no `smsp__sass_inst_executed_op_global_ld`.
"""

import numpy as np
import pytest

import cutrace
from cutrace.traces.reader import Trace

TEXT = """
#include <cuda_pipeline.h>
extern "C" __global__ void copy(float4 *out, const float4 *in)
{
    __shared__ float4 s[32];
    __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void matrices(unsigned *out)
{
    __shared__ __align__(16) unsigned s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    unsigned at = __cvta_generic_to_shared(s + threadIdx.x % 8 * 4), word;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(word) : "r"(at));
    out[threadIdx.x] = word;
}
"""
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
COPIES = "smsp__sass_inst_executed_op_ldgsts.sum"
MATRICES = "smsp__sass_inst_executed_op_ldsm.sum"
GLOBAL_LOADS = "smsp__sass_inst_executed_op_global_ld.sum"
GLOBAL_BYTES = "smsp__sass_data_bytes_mem_global_op_ld.sum"
SHARED_LOADS = "smsp__sass_inst_executed_op_shared_ld.sum"
LOAD_BYTES = "smsp__sass_data_bytes_mem_shared_op_ld.sum"
LOAD_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SHARED_STORES = "smsp__sass_inst_executed_op_shared_st.sum"
STORE_BYTES = "smsp__sass_data_bytes_mem_shared_op_st.sum"
STORE_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
ALL_WAVEFRONTS = "memory_l1_wavefronts_shared"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    path = tmp_path_factory.mktemp("apart") / "t.cutrace"
    with cutrace.Session(path) as gpu:
        module = gpu.compile(TEXT, "compute_80")
        out, source = gpu.device_array(128, np.float32), gpu.device_array(128, np.float32)
        module.get_function("copy")[1, 32](out, source)
        module.get_function("matrices")[1, 32](gpu.device_array(32, np.uint32))
    return cutrace.read_trace(path)


def counters(trace: Trace, device: str, launch: int, *names: str) -> list[object]:
    """The counters of a launch, by name."""
    found = cutrace.analyze(trace, device).launches[launch].counters
    return [found[name] for name in names]


def test_a_copy_is_a_request_but_no_load_and_no_store(trace: Trace) -> None:
    names = (REQUESTS, GLOBAL_LOADS, GLOBAL_BYTES, SHARED_STORES, STORE_BYTES, STORE_WAVEFRONTS)
    assert counters(trace, "h200", 0, *names) == [1, 0, 0, 0, 0, 0]
    # by address: 512 bytes into shared memory and 512 out of it, 128 in a wavefront
    assert counters(trace, "h200", 0, ALL_WAVEFRONTS, SHARED_LOADS, COPIES) == [4 + 4, 1, 1]


def test_a_device_without_copies_loads_and_stores(trace: Trace) -> None:
    names = (REQUESTS, GLOBAL_LOADS, GLOBAL_BYTES, SHARED_STORES, STORE_BYTES, STORE_WAVEFRONTS)
    assert counters(trace, "t4", 0, *names) == [1, 1, 512, 1, 512, 4]


def test_a_load_of_a_matrix_has_wavefronts_alone(trace: Trace) -> None:
    # 8 rows of 16 bytes are one wavefront; the words were stored by one instruction, in another
    names = (LOAD_WAVEFRONTS, SHARED_LOADS, LOAD_BYTES, MATRICES, SHARED_STORES, ALL_WAVEFRONTS)
    assert counters(trace, "h200", 1, *names) == [1, 0, 0, 1, 1, 2]


def test_lines_and_arrays_leave_out_the_same(trace: Trace) -> None:
    profile = cutrace.analyze(trace, "h200").launches[0]
    for table in (profile.lines, profile.arrays):
        assert table[REQUESTS].sum() == 1
        assert table[GLOBAL_LOADS].sum() == 0
