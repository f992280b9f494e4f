"""Loads, stores and atomics of every space, their rows, and what happens outside of arrays."""

from typing import Any

import numpy as np
import pytest
from cuda_run import run_kernel, traced_kernel
from numpy.typing import NDArray

from cutrace.base.errors import KernelFault
from cutrace.traces.schema import Space


def test_rows_carry_base_pattern_and_step_of_each_access() -> None:
    source = """
    extern "C" __global__ void k(int *out, const int *in) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        out[i] = in[2 * i];
    }"""
    data = np.arange(256, dtype=np.int32)
    with traced_kernel(source, 2, 64, np.zeros(128, np.int32), data) as ((out, _), trace):
        assert out.tolist() == data[::2].tolist()
        rows = trace.accesses().to_pylist()
        table = trace.instructions().to_pylist()
    loads = [r for r in rows if table[r["pc"]]["opcode"] == "ld"]
    assert sorted((r["block"], r["warp"]) for r in loads) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for row in loads:
        first = row["addresses"][0]
        assert [a - first for a in row["addresses"]] == [8 * lane for lane in range(32)]
    firsts = {(r["block"], r["warp"]): r["addresses"][0] for r in loads}
    assert firsts[1, 1] - firsts[0, 0] == 96 * 8


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [
        ("char", np.int8), ("unsigned char", np.uint8), ("short", np.int16),
        ("unsigned short", np.uint16), ("int", np.int32), ("long long", np.int64),
        ("float", np.float32), ("double", np.float64),
    ],
)  # fmt: skip
def test_every_width_is_loaded_extended_and_stored(type_: str, dtype: type) -> None:
    source = f"""extern "C" __global__ void k({type_} *out, const {type_} *in) {{
        out[threadIdx.x] = in[threadIdx.x] * ({type_})2 - ({type_})3; }}"""
    data: NDArray[Any] = (np.arange(32) * 5 - 60).astype(dtype)
    out, _ = run_kernel(source, 1, 32, np.zeros_like(data), data)
    assert out.tolist() == (data * dtype(2) - dtype(3)).tolist()


def test_vectors_move_all_their_elements_in_one_row() -> None:
    source = """extern "C" __global__ void k(float4 *out, const float4 *in) {
        float4 v = in[threadIdx.x]; v.w = -v.x; out[31 - threadIdx.x] = v; }"""
    data = np.arange(128, dtype=np.float32).reshape(32, 4)
    with traced_kernel(source, 1, 32, np.zeros_like(data), data) as ((out, _), trace):
        rows = trace.accesses().to_pylist()
    expected = data[::-1].copy()
    expected[:, 3] = -expected[:, 0]
    assert out.tolist() == expected.tolist()
    assert len(rows) == 2
    assert [a - rows[0]["addresses"][0] for a in rows[0]["addresses"]] == list(range(0, 512, 16))


def test_a_generic_pointer_reaches_the_space_that_it_points_to() -> None:
    source = """
    extern "C" __global__ void k(int *out, const int *in) {
        __shared__ int s[32];
        int t = threadIdx.x;
        s[t] = 100 + t;
        __syncthreads();
        const int *p = t & 1 ? s : in;
        out[t] = ((volatile const int *)p)[t];
    }"""
    data = np.arange(32, dtype=np.int32)
    with traced_kernel(source, 1, 32, np.zeros_like(data), data) as ((out, _), trace):
        table = trace.instructions().to_pylist()
        loads = [r for r in trace.accesses().to_pylist() if table[r["pc"]]["opcode"] == "ld"]
    generic = [r for r in loads if table[r["pc"]]["space"] == ""]
    assert out.tolist() == [100 + t if t & 1 else t for t in range(32)]
    assert [(r["part"], r["space"], r["active"]) for r in generic] == [
        (0, Space.GLOBAL, 0x55555555),
        (1, Space.SHARED, 0xAAAAAAAA),
    ]


def test_an_array_indexed_at_run_time_lives_in_local_memory_of_its_thread() -> None:
    source = """
    extern "C" __global__ void k(int *out, const int *at) {
        int a[40];
        for (int j = 0; j < 40; j++) a[(j * 7) % 40] = j + threadIdx.x;
        out[threadIdx.x] = a[at[threadIdx.x]];
    }"""
    at = np.random.default_rng(3).integers(0, 40, 64).astype(np.int32)
    with traced_kernel(source, 1, 64, np.zeros_like(at), at) as ((out, _), trace):
        local = [r for r in trace.accesses().to_pylist() if r["space"] == Space.LOCAL]
        table = trace.instructions().to_pylist()
    place = {(j * 7) % 40: j for j in range(40)}
    assert out.tolist() == [place[a] + t for t, a in enumerate(at.tolist())]
    moved = sum(table[r["pc"]]["bytes"] for r in local)
    assert moved == 2 * (40 * 4 + 4)  # each of two warps writes the array, and reads one element
    assert all(0 <= a < 160 for r in local for a in r["addresses"])


def test_constants_are_read_from_the_module_with_their_initialisers() -> None:
    source = """
    __constant__ float weights[4] = {1.5f, 2.5f, 3.5f, 4.5f};
    __device__ int offsets[3] = {10, 20, 30};
    extern "C" __global__ void k(float *out) {
        out[threadIdx.x] = weights[threadIdx.x & 3] + offsets[threadIdx.x % 3];
    }"""
    (out,) = run_kernel(source, 1, 12, np.zeros(12, np.float32))
    assert out.tolist() == [1.5 + t % 4 + 10 * (t % 3 + 1) for t in range(12)]


def test_of_lanes_that_store_to_one_place_the_last_wins() -> None:
    source = """extern "C" __global__ void k(int *out) { out[threadIdx.x / 8] = threadIdx.x; }"""
    (out,) = run_kernel(source, 1, 64, np.zeros(8, np.int32))
    assert out.tolist() == [7, 15, 23, 31, 39, 47, 55, 63]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("atomicAdd(p, v)", 3 + sum(range(64))),
        ("atomicSub(p, v)", 3 - sum(range(64))),
        ("atomicMax(p, v)", 63),
        ("atomicMin(p, -v)", -63),
        ("atomicOr(p, v)", 63),
        ("atomicXor(p, v)", 3),
        ("atomicExch(p, v)", 63),
        ("atomicCAS(p, v, v + 1)", 64),
    ],
)
def test_atomics_apply_lane_after_lane(call: str, expected: int) -> None:
    source = f"""extern "C" __global__ void k(int *p) {{ int v = threadIdx.x; {call}; }}"""
    (out,) = run_kernel(source, 1, 64, np.array([3], np.int32))
    assert out.tolist() == [expected]


def test_each_lane_of_an_atomic_finds_what_the_lanes_before_it_left() -> None:
    source = """extern "C" __global__ void k(int *out, int *ticket) {
        out[blockIdx.x * 64 + threadIdx.x] = atomicAdd(ticket, 2); }"""
    out, ticket = run_kernel(source, 3, 64, np.zeros(192, np.int32), np.zeros(1, np.int32))
    assert out.tolist() == list(range(0, 384, 2))
    assert ticket.tolist() == [384]


def test_a_histogram_in_shared_memory_equals_the_counts() -> None:
    source = """
    extern "C" __global__ void k(int *bins, const int *in, int n) {
        __shared__ int h[64];
        int t = threadIdx.x;
        if (t < 64) h[t] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
            atomicAdd(&h[in[i] & 63], 1);
        __syncthreads();
        if (t < 64) atomicAdd(&bins[t], h[t]);
    }"""
    data = np.random.default_rng(4).integers(0, 1 << 20, 10000).astype(np.int32)
    bins, _ = run_kernel(source, 7, 100, np.zeros(64, np.int32), data, np.int32(len(data)))
    assert bins.tolist() == np.bincount(data & 63, minlength=64).tolist()


def test_a_store_past_the_end_names_line_thread_block_address_and_array() -> None:
    source = """
extern "C" __global__ void k(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i + 3] = i;
}"""
    with pytest.raises(KernelFault) as error:
        run_kernel(source, 2, 64, np.zeros(128, np.int32))
    message = str(error.value)
    assert ":4: " in message
    assert "thread (61, 0, 0) of block (1, 0, 0)" in message
    assert "just past the end of" in message
    assert "512 bytes" in message


def test_a_misaligned_address_is_a_fault() -> None:
    source = """extern "C" __global__ void k(char *p) { *(int *)(p + 2 * threadIdx.x) = 1; }"""
    with pytest.raises(KernelFault, match=r"misaligned .* thread \(1, 0, 0\)"):
        run_kernel(source, 1, 32, np.zeros(256, np.int8))


def test_a_null_pointer_is_a_fault() -> None:
    source = """extern "C" __global__ void k(int *p) { p -= (long long)p >> 2; p[%s] = 1; }"""
    said = r"outside at global address {} in thread \(0, 0, 0\) of block \(0, 0, 0\): {}$"
    with pytest.raises(KernelFault, match=said.format("0x0", "a null pointer")):
        run_kernel(source % "threadIdx.x", 1, 1, np.zeros(1, np.int32))
    with pytest.raises(KernelFault, match=said.format("0x190", "400 bytes from a null pointer")):
        run_kernel(source % "100", 1, 1, np.zeros(1, np.int32))


def test_a_pointer_of_the_host_is_a_fault_that_says_so() -> None:
    source = """extern "C" __global__ void k(int *p) { p[1ll << 43] = 1; }"""
    with pytest.raises(KernelFault, match="the host has its own memory there"):
        run_kernel(source, 1, 1, np.zeros(1, np.int32))


def test_shared_memory_ends_where_the_launch_says() -> None:
    source = """extern "C" __global__ void k(int *p) {
        extern __shared__ int s[]; s[threadIdx.x] = p[0]; p[0] = s[threadIdx.x]; }"""
    with pytest.raises(KernelFault, match="the block has 64 bytes of shared memory") as raised:
        run_kernel(source, 1, 32, np.zeros(1, np.int32), shared=64)
    assert "of which `s` has the 64 that the launch asks for" in str(raised.value)
