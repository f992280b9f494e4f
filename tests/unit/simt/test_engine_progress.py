"""Warps that wait for one another: locks, flags, last blocks; and waiting that has no end."""

from pathlib import Path

import numpy as np
import pytest
from cuda_run import run_kernel, run_under_both

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.tracer.front import cuda
from cutrace.tracer.front.source import Source
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.session.record_options import RecordOptions, default_options
from cutrace.tracer.simt.kernel.spin_loop import waiting_blocks

ADD_UNDER_LOCK = """
extern "C" __global__ void k(int *lock, volatile int *sum) {
    %s
    while (atomicCAS(lock, 0, 1) != 0);
    __threadfence();
    *sum = *sum + 1;
    __threadfence();
    atomicExch(lock, 0);
}"""


def add_under_lock(condition: str, grid: int, block: int) -> int:
    source = ADD_UNDER_LOCK % condition
    _, total = run_under_both(source, grid, block, np.zeros(1, np.int32), np.zeros(1, np.int32))
    return int(total[0])


def test_a_spin_lock_between_warps_is_taken_by_each_in_turn() -> None:
    assert add_under_lock("if (threadIdx.x % 32) return;", 4, 256) == 4 * 8


def test_a_spin_lock_between_lanes_of_a_warp_is_taken_by_each_in_turn() -> None:
    assert add_under_lock("", 2, 64) == 128


def test_a_spin_lock_between_blocks_of_different_waves_is_taken_by_each() -> None:
    assert add_under_lock("if (threadIdx.x) return;", 150, 1024) == 150  # 64 blocks are a wave


ASKED_FOR_A_BLOCK = """
extern "C" __global__ void k(int *word, volatile int *sum) {
    __shared__ int got;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) got = %s;
        __syncthreads();
        if (%s) break;
        %s
    }
    %s
}"""


@pytest.mark.parametrize("blocks", [4, 150])  # 64 blocks are a wave
def test_a_lock_that_a_thread_takes_for_its_block_is_taken_by_each(blocks: int) -> None:
    free = "if (threadIdx.x == 0) { *sum = *sum + 1; __threadfence(); atomicExch(word, 0); }"
    source = ASKED_FOR_A_BLOCK % ("atomicCAS(word, 0, 1)", "got == 0", "", free)
    _, total = run_under_both(source, blocks, 1024, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert total.tolist() == [blocks]


def test_a_loop_that_takes_work_for_its_block_waits_for_nobody() -> None:
    take = ("atomicAdd(word, 1)", "got >= 100", "if (threadIdx.x == 0) sum[got] = got;", "")
    compiled = cuda.to_ptx(Source("k.cu", ASKED_FOR_A_BLOCK % take), "compute_75")
    assert not waiting_blocks(link_kernel(parse_module(compiled.ptx), "k"))
    _, out = run_under_both(ASKED_FOR_A_BLOCK % take, 7, 64, *np.zeros((2, 100), np.int32))
    assert out.tolist() == list(range(100))


EACH_TAKES = """
extern "C" __global__ void k(int *word, int *sum, int *loops) {
    for (int turn = 0; turn < 1000; turn += 0) {
        int got = atomicAdd(word, %s);
        if (%s) break;
        for (int i = 0; i < loops[got %% 64]; i++) atomicAdd(sum, 1);
        %s
    }
}"""


@pytest.mark.parametrize(
    ("amount", "leaves", "release", "waits"),
    [
        ("1", "got >= 100", "", False),
        ("blockDim.x", "got >= 100", "", False),
        ("1", "got == 0", "atomicAdd(word, -1);", True),
        ("0", "got >= 100", "atomicAdd(word, 1);", True),
        ("loops[0]", "got >= 100", "", True),
    ],
    ids=["work", "work for a block", "a lock", "polls", "may be none"],
)
def test_a_loop_in_which_each_lane_takes_work_waits_for_nobody(
    amount: str, leaves: str, release: str, waits: bool
) -> None:
    source = EACH_TAKES % (amount, leaves, release)
    compiled = cuda.to_ptx(Source("k.cu", source), "compute_75")
    assert bool(waiting_blocks(link_kernel(parse_module(compiled.ptx), "k"))) == waits


def test_lanes_that_take_work_of_different_length_stay_together(tmp_path: Path) -> None:
    """Each of 8 warps asks twice: for 32 of 256 pieces, and for one that is not there.

    So does an H100: `dynamic_assign` of 8,192 warps executes 16,384 atomics.
    """
    source = EACH_TAKES.replace("atomicAdd(sum, 1)", "sum[got] += 1") % ("1", "got >= 256", "")
    loops = np.arange(64, dtype=np.int32) + 1
    given = np.zeros(1, np.int32), np.zeros(256, np.int32), loops
    _, done, _ = run_under_both(source, 2, 128, *given)
    assert done.tolist() == loops.tolist() * 4
    path = tmp_path / "work.cutrace"
    with cutrace.Session(path) as gpu:
        take = gpu.compile(source).get_function("k")
        take[2, 128](*(gpu.to_device(each) for each in given))
    (launch,) = cutrace.analyze(path, device="h100").launches
    assert launch.counters["global_atomic_requests"] == 16


def test_blocks_wait_for_flags_of_blocks_that_start_later() -> None:
    source = """
    extern "C" __global__ void k(volatile int *flag, volatile int *out) {
        int b = gridDim.x - 1 - blockIdx.x;
        if (threadIdx.x) return;
        if (b > 0) while (flag[b - 1] == 0);
        out[b] = b ? out[b - 1] + 1 : 1;
        __threadfence();
        flag[b] = 1;
    }"""
    _, out = run_under_both(source, 200, 1024, np.zeros(200, np.int32), np.zeros(200, np.int32))
    assert out.tolist() == list(range(1, 201))


def test_the_last_block_to_arrive_sums_what_all_blocks_left() -> None:
    source = """
    extern "C" __global__ void k(unsigned *count, int *parts, int *out, const int *in) {
        __shared__ bool last;
        __shared__ int s[128];
        int t = threadIdx.x;
        s[t] = in[blockIdx.x * 128 + t];
        __syncthreads();
        for (int d = 64; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (t == 0) {
            parts[blockIdx.x] = s[0];
            __threadfence();
            last = atomicInc(count, gridDim.x) == gridDim.x - 1;
        }
        __syncthreads();
        if (!last) return;
        int sum = 0;
        for (int i = t; i < gridDim.x; i += 128) sum += ((volatile int *)parts)[i];
        s[t] = sum;
        __syncthreads();
        for (int d = 64; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
        if (t == 0) *out = s[0];
    }"""
    data = np.random.default_rng(5).integers(0, 100, 1500 * 128).astype(np.int32)
    zeros = [np.zeros(n, np.int32) for n in (1, 1500, 1)]
    _, parts, out, _ = run_under_both(source, 1500, 128, *zeros, data)
    assert parts.tolist() == data.reshape(1500, 128).sum(axis=1).tolist()
    assert out.tolist() == [data.sum()]


def test_waiting_for_what_nobody_does_is_a_fault_that_names_the_line() -> None:
    source = """
extern "C" __global__ void k(volatile int *flag) {
    while (flag[0] == 0);
    flag[1] = 1;
}"""
    for engine in ("array", "compiled"):
        with (
            default_options(RecordOptions(engine=engine)),
            pytest.raises(KernelFault, match=r"no progress.*:3"),
        ):
            run_kernel(source, 4, 64, np.zeros(2, np.int32))


def test_a_long_loop_that_waits_for_nobody_keeps_its_divergence() -> None:
    source = """
    extern "C" __global__ void k(int *out) {
        int v = threadIdx.x, s = 0;
        #pragma unroll 1
        for (int i = 0; i < 200 * v; i++) s += out[v] + 1;
        out[v] = s;
    }"""
    (out,) = run_under_both(source, 1, 32, np.zeros(32, np.int32))
    assert out.tolist() == [200 * v for v in range(32)]


@pytest.mark.parametrize("blocks", [3, 600])  # 256 blocks are a wave
def test_the_blocks_of_a_grid_meet_whatever_their_number(blocks: int) -> None:
    source = """
    #include <cooperative_groups.h>
    extern "C" __global__ void k(int *out, int *between) {
        int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
        between[i] = 2 * i;
        cooperative_groups::this_grid().sync();
        out[i] = between[n - 1 - i];
        cooperative_groups::this_grid().sync();
        between[i] = out[(i + 256) % n];
    }"""
    zeros = np.zeros(256 * blocks, np.int32)
    out, between = run_under_both(source, blocks, 256, zeros, zeros.copy())
    expected = 2 * np.arange(256 * blocks)[::-1]
    assert out.tolist() == expected.tolist()
    assert between.tolist() == np.roll(expected, -256).tolist()


def test_a_barrier_waits_for_the_lanes_that_still_wait_for_others() -> None:
    source = """
    extern "C" __global__ void k(volatile int *flag, int *out) {
        __shared__ int s;
        if (threadIdx.x == 0) {
            if (blockIdx.x == 0) while (flag[0] == 0);
            s = flag[0] + 1;
        } else if (blockIdx.x == 1) {
            flag[0] = 41;
        }
        __syncthreads();
        out[blockIdx.x * blockDim.x + threadIdx.x] = s;
    }"""
    _, out = run_under_both(source, 1, 64, np.ones(1, np.int32), np.zeros(64, np.int32))
    assert out.tolist() == [2] * 64
    _, out = run_under_both(source, 2, 64, np.zeros(1, np.int32), np.zeros(128, np.int32))
    assert out.tolist()[:64] == [42] * 64


TIMED = """
extern "C" __global__ void k(volatile int *flag, long long *times) {
    long long begin = clock64(), now = begin;
    int reads = 0;
    while (*flag == 0 && (now = clock64()) - begin < 200000000) reads++;
    if (*flag == 0) *flag = 2;
    times[threadIdx.x] = (long long)reads << 32 | (now - begin >= 200000000);
}"""
"""As XLA's DelayKernel: what the host sets ends the loop, or else 200 million cycles."""


def test_time_passes_while_every_warp_waits() -> None:
    flag, times = run_under_both(TIMED, 1, 32, np.zeros(1, np.int32), np.zeros(32, np.int64))
    assert flag[0] == 2
    assert (times & 1 == 1).all()
    assert (times >> 32 < 200000).all()  # far fewer instructions than cycles


def test_clocks_count_the_instructions_of_a_warp_that_does_not_wait() -> None:
    source = """
    extern "C" __global__ void k(unsigned *out) {
        unsigned begin = clock(), sum = threadIdx.x;
        #pragma unroll 1
        for (int i = 0; i < 1000; i++) sum = sum * 3 + i;
        out[threadIdx.x] = clock() - begin;
        out[32] = sum;
    }"""
    (out,) = run_under_both(source, 1, 32, np.zeros(33, np.uint32))
    assert (out[:32] == out[0]).all()
    assert 3000 < out[0] < 8000  # two products or sums, the counter, a comparison, a branch
