"""Branches, loops, calls and barriers, against the same program in plain Python."""

from itertools import groupby

import numpy as np
import pytest
from cuda_run import paths_of, run_kernel, traced_kernel

from cutrace.base.errors import KernelFault
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Space
from cutrace.traces.verify import verify

ALL = 0xFFFFFFFF

BRANCHES = """
extern "C" __global__ void k(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i], s = 0;
    if (v & 1) { for (int j = 0; j < v; j++) s += j * v; }
    else if (v & 2) { s = v * 7; while (s > 10) s -= 3; }
    else s = -v;
    out[i] = s;
}"""


def branches(v: int) -> int:
    if v & 1:
        return sum(j * v for j in range(v))
    if v & 2:
        s = v * 7
        while s > 10:
            s -= 3
        return s
    return -v


def test_lanes_of_one_warp_take_different_branches_and_loop_different_times() -> None:
    values = np.random.default_rng(1).integers(0, 40, 3000).astype(np.int32)
    out, _ = run_kernel(BRANCHES, 12, 256, np.zeros_like(values), values, np.int32(3000))
    assert out.tolist() == [branches(v) for v in values.tolist()]


def test_a_divergent_warp_runs_both_sides_and_joins() -> None:
    source = """
    extern "C" __global__ void k(int *out, volatile int *log) {
        int t = threadIdx.x;
        if (t & 1) { log[t] = 1; log[t] = 2; } else { log[t] = 3; }
        out[t] = log[t];
    }"""
    with traced_kernel(source, 1, 32, np.zeros(32, np.int32), np.zeros(32, np.int32)) as (
        (out, _),
        trace,
    ):
        assert out.tolist() == [3, 2] * 16
        path = paths_of(trace, 0)
    odd, even = 0xAAAAAAAA, 0x55555555
    sides = [active for active, _ in groupby(active for _, active, _ in path)]
    assert sides in ([ALL, odd, even, ALL], [ALL, even, odd, ALL])


def test_a_loop_with_lane_counts_runs_as_long_as_its_longest_lane() -> None:
    source = """
    extern "C" __global__ void k(int *out) {
        int s = 0;
        #pragma unroll 1
        for (int j = 0; j < (int)threadIdx.x; j++) s += ((volatile int *)out)[threadIdx.x] + j;
        out[threadIdx.x] = s;
    }"""
    with traced_kernel(source, 1, 32, np.zeros(32, np.int32)) as ((out,), trace):
        assert out.tolist() == [t * (t - 1) // 2 for t in range(32)]
        bodies = [active for _, active, _ in paths_of(trace, 0)]
    for trips in range(1, 32):  # in trip j the lanes above j are active
        assert ALL << trips & ALL in bodies


def test_device_functions_are_called_from_divergent_code() -> None:
    source = """
    __device__ __noinline__ int product(int n, int r) {
        for (int j = 2; j <= n; j++) { if (j == 5) return r * 1000; r *= j; }
        return r;
    }
    extern "C" __global__ void k(int *out) {
        int t = threadIdx.x;
        out[t] = t % 3 ? product(t % 5, 2) + 1 : product(t % 7, 1);
    }"""

    def product(n: int, r: int) -> int:
        for j in range(2, n + 1):
            if j == 5:
                return r * 1000
            r *= j
        return r

    (out,) = run_kernel(source, 1, 64, np.zeros(64, np.int32))
    expected = [product(t % 5, 2) + 1 if t % 3 else product(t % 7, 1) for t in range(64)]
    assert out.tolist() == expected


def test_a_barrier_orders_shared_memory_in_a_tree_sum() -> None:
    source = """
    extern "C" __global__ void k(int *out, const int *in) {
        extern __shared__ int s[];
        int t = threadIdx.x;
        s[t] = in[blockIdx.x * blockDim.x + t];
        __syncthreads();
        for (int d = blockDim.x / 2; d > 0; d >>= 1) {
            if (t < d) s[t] += s[t + d];
            __syncthreads();
        }
        if (t == 0) out[blockIdx.x] = s[0];
    }"""
    values = np.random.default_rng(2).integers(0, 1000, 40 * 256).astype(np.int32)
    out, _ = run_kernel(source, 40, 256, np.zeros(40, np.int32), values, shared=1024)
    assert out.tolist() == values.reshape(40, 256).sum(axis=1).tolist()


def test_warps_that_ended_count_as_arrived_at_a_barrier() -> None:
    source = """
    extern "C" __global__ void k(int *out) {
        __shared__ int s;
        if (threadIdx.x >= 64) return;
        if (threadIdx.x == 0) s = 7;
        __syncthreads();
        out[threadIdx.x] = s;
    }"""
    (out,) = run_kernel(source, 1, 128, np.zeros(64, np.int32))
    assert out.tolist() == [7] * 64


def test_warps_at_different_barriers_are_a_fault_that_names_them() -> None:
    source = """
    extern "C" __global__ void k(int *out) {
        if (threadIdx.x < 32) __syncthreads(); else asm volatile("bar.sync 1;");
        out[0] = 1;
    }"""
    with pytest.raises(KernelFault, match="barrier 0"):
        run_kernel(source, 1, 64, np.zeros(4, np.int32))


def test_a_block_whose_size_is_no_multiple_of_32_leaves_lanes_idle() -> None:
    source = """extern "C" __global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }"""
    with traced_kernel(source, 1, 40, np.full(40, -1, np.int32)) as ((out,), trace):
        assert out.tolist() == list(range(40))
        assert [active for _, active, _ in paths_of(trace, 1)] == [0xFF]


def test_every_thread_of_a_six_dimensional_launch_writes_its_own_cell() -> None:
    source = """
    extern "C" __global__ void k(int *out) {
        int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        int threads = blockDim.x * blockDim.y * blockDim.z;
        int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        out[block * threads + thread] += 1 + block;
    }"""
    (out,) = run_kernel(source, (4, 3, 2), (3, 2), np.zeros(144, np.int32))
    assert out.tolist() == np.repeat(np.arange(24) + 1, 6).tolist()


def test_a_function_that_calls_itself_keeps_its_registers_for_each_lane() -> None:
    source = """
    __device__ __noinline__ int fibonacci(int n) {
        if (n < 2) return n;
        int a = fibonacci(n - 1);
        return a + fibonacci(n - 2) * 1;
    }
    extern "C" __global__ void k(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 9); }"""
    (out,) = run_kernel(source, 1, 40, np.zeros(40, np.int32))
    assert out.tolist() == [[0, 1, 1, 2, 3, 5, 8, 13, 21][t % 9] for t in range(40)]


def test_a_recursive_function_has_local_arrays_at_each_level() -> None:
    source = """
    __device__ __noinline__ int walk(int n, const int *at) {
        int a[4] = {n, n + 1, n + 2, n + 3};
        int below = n > 0 ? walk(n - 1, at) : 0;
        return below + a[at[n & 3]];
    }
    extern "C" __global__ void k(int *out, const int *at) {
        out[threadIdx.x] = walk(threadIdx.x % 7, at);
    }"""
    at = np.array([2, 0, 3, 1], np.int32)
    with traced_kernel(source, 1, 32, np.zeros(32, np.int32), at) as ((out, _), trace):
        bases = [row["base"] for b in trace.access_batches() for row in b.to_pylist()
                 if row["space"] == Space.LOCAL]  # fmt: skip
        assert 6 * 16 <= max(bases) < trace.launch.local_bytes  # the seventh frame of 16 bytes
        assert verify(read_trace(trace.folder.parent)) == []
    expected = [sum(n + int(at[n & 3]) for n in range(t % 7 + 1)) for t in range(32)]
    assert out.tolist() == expected


def test_recursion_without_end_is_a_fault() -> None:
    source = """
    __device__ __noinline__ int fall(int n, volatile int *end) {
        if (n == *end) return 0;
        int first = fall(n + 1, end);
        return first * 3 + fall(first + n, end);
    }
    extern "C" __global__ void k(int *out) { out[threadIdx.x] = fall(1, out); }"""
    with pytest.raises(KernelFault, match="more than 256 levels"):
        run_kernel(source, 1, 32, np.zeros(32, np.int32))
