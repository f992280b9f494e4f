"""Shuffles, votes and matches between the lanes of a warp, and printf."""

import numpy as np
import pytest
from cuda_run import run_kernel

WARP = """extern "C" __global__ void k(unsigned *out, const int *in) {
    int t = threadIdx.x; int v = in[t]; out[t] = %s; }"""
LANES = np.arange(64, dtype=np.int32)


def warp(expression: str, values: np.ndarray = LANES) -> list[int]:
    out, _ = run_kernel(WARP % expression, 1, 64, np.zeros(64, np.uint32), values.astype(np.int32))
    return [int(v) for v in out]


@pytest.mark.parametrize(
    ("expression", "source"),
    [
        ("__shfl_sync(~0u, v, 5)", lambda t: t // 32 * 32 + 5),
        ("__shfl_sync(~0u, v, t + 1, 8)", lambda t: t // 8 * 8 + (t + 1) % 8),
        ("__shfl_up_sync(~0u, v, 3)", lambda t: t - 3 if t % 32 >= 3 else t),
        ("__shfl_down_sync(~0u, v, 4, 16)", lambda t: t + 4 if t % 16 < 12 else t),
        ("__shfl_xor_sync(~0u, v, 9)", lambda t: t ^ 9),
    ],
)
def test_a_shuffle_reads_the_lane_that_its_mode_says(expression: str, source) -> None:  # type: ignore[no-untyped-def]
    assert warp(expression) == [source(t) for t in range(64)]


def test_votes_look_at_the_active_lanes_of_a_warp() -> None:
    assert warp("__ballot_sync(~0u, v % 3 == 0)") == [
        sum(1 << lane for lane in range(32) if (base + lane) % 3 == 0)
        for base in (0, 32)
        for _ in range(32)
    ]
    assert warp("__all_sync(~0u, v < 32)") == [1] * 32 + [0] * 32
    assert warp("__any_sync(~0u, v == 40)") == [0] * 32 + [1] * 32
    assert warp("t & 1 ? __activemask() : 0") == [0, 0xAAAAAAAA] * 32


def test_match_finds_the_lanes_with_the_same_value() -> None:
    masks = [sum(1 << j for j in range(32) if j % 4 == lane % 4) for lane in range(32)]
    assert warp("__match_any_sync(~0u, v & 3)") == masks * 2


def test_printf_writes_a_line_a_thread_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    source = r"""
    extern "C" __global__ void k() {
        printf("Hello from thread %d, %5.2f %s %llx %c|%3u|%%\n",
               threadIdx.x, threadIdx.x / 4.0, "text", 1ull << 40, 'a' + threadIdx.x, 7u);
    }"""
    run_kernel(source, 1, 10)
    assert capsys.readouterr().out.splitlines() == [
        f"Hello from thread {t}, {t / 4:5.2f} text 10000000000 {chr(97 + t)}|  7|%"
        for t in range(10)
    ]
