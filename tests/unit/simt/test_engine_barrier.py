"""Barriers by number and count, with votes, and with some warps that do not wait."""

import numpy as np
import pytest
from cuda_run import run_kernel
from ptx.ptx_run import HEADER, same_under_both
from ptx.ptx_run import run_kernel as run_ptx


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("__syncthreads_count(t % 3 == 0)", lambda n: len(range(0, n, 3))),
        ("__syncthreads_and(t < 100)", lambda n: int(n <= 100)),
        ("__syncthreads_or(t == 70)", lambda n: int(n > 70)),
    ],
)
@pytest.mark.parametrize("threads", [40, 96, 128])
def test_a_barrier_that_votes_tells_every_thread_of_its_block(call, expected, threads) -> None:  # type: ignore[no-untyped-def]
    source = f"""
    extern "C" __global__ void k(int *out) {{
        int t = threadIdx.x;
        out[blockIdx.x * blockDim.x + t] = {call} + 1000 * blockIdx.x;
    }}"""
    (out,) = run_kernel(source, 3, threads, np.zeros(3 * threads, np.int32))
    assert out.tolist() == [expected(threads) + 1000 * b for b in range(3) for _ in range(threads)]


def test_producers_arrive_and_go_on_while_consumers_wait() -> None:
    source = """
    extern "C" __global__ void k(int *out, int *after) {
        __shared__ int s[32];
        int t = threadIdx.x;
        if (t < 32) {
            s[t] = 3 * t;
            __threadfence_block();
            asm volatile("bar.arrive 1, 64;" ::: "memory");
            after[t] = t;
        } else {
            asm volatile("bar.sync 1, 64;" ::: "memory");
            out[t - 32] = s[63 - t];
        }
    }"""
    out, after = run_kernel(source, 1, 64, np.zeros(32, np.int32), np.zeros(32, np.int32))
    assert out.tolist() == [3 * (31 - t) for t in range(32)]
    assert after.tolist() == list(range(32))


def test_pairs_of_warps_meet_at_barriers_of_their_own() -> None:
    source = """
    extern "C" __global__ void k(int *out) {
        __shared__ int s[128];
        int t = threadIdx.x, pair = t / 64;
        s[t] = t;
        asm volatile("bar.sync %0, 64;" :: "r"(pair + 1) : "memory");
        out[t] = s[pair * 64 + 63 - t % 64];
    }"""
    (out,) = run_kernel(source, 1, 128, np.zeros(128, np.int32))
    assert out.tolist() == [t // 64 * 64 + 63 - t % 64 for t in range(128)]


def test_warps_with_a_false_guard_pass_a_barrier() -> None:
    # Of three warps the first two meet. The last one has a number that no block has.
    text = """.visible .entry k(.param .u64 p0)
{
.shared .align 4 .b8 s[256]; .reg .b64 %p<2>; .reg .b32 %r<8>; .reg .pred %c;
ld.param.u64 %p0, [p0]; mov.u32 %r0, %tid.x; setp.lt.u32 %c, %r0, 64;
shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r3, %r2, %r1; mov.u32 %r4, 99;
@%c st.shared.u32 [%r3], %r0; selp.u32 %r5, 1, 77, %c; @%c bar.sync %r5, 64;
sub.u32 %r6, 252, %r1; add.u32 %r6, %r6, %r2; @%c ld.shared.u32 %r4, [%r6];
cvt.u64.u32 %p1, %r1; add.u64 %p0, %p0, %p1; st.global.u32 [%p0], %r4; ret;
}
"""
    (out,) = same_under_both(
        lambda rows: run_ptx(HEADER + text, "k", 96, [np.zeros(96, np.uint32)], sink=rows)
    )
    assert out.tolist() == [63 - t for t in range(64)] + [99] * 32
