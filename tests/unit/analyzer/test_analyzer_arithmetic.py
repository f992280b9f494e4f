"""Floating-point operations, the ratio of computing to loading, and the roofline."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hand_trace import Access, instruction, instruction_table, launch, write_rows
from warps import FULL, warp

import cutrace
from cutrace.analyzer.counting.bounds import roofline
from cutrace.analyzer.counting.instruction_mix import flops_of
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.traces.writer import TraceWriter


@pytest.mark.parametrize(
    ("mnemonic", "half", "single", "double"),
    [
        ("add.f32", 0, 1, 0),
        ("fma.rn.f32", 0, 2, 0),
        ("mad.f32", 0, 2, 0),
        ("fma.rn.f64", 0, 0, 2),
        ("fma.rn.f16x2", 4, 0, 0),
        ("mul.bf16", 1, 0, 0),
        ("fma.rn.f32x2", 0, 4, 0),
        ("rsqrt.approx.ftz.f32", 0, 1, 0),
    ],
)
def test_an_instruction_is_so_many_operations_of_a_precision(
    mnemonic: str, half: int, single: int, double: int
) -> None:
    (row,) = flops_of(instruction_table([instruction(0, mnemonic)])).rows()
    assert row == (0, False, half, single, double)


@pytest.mark.parametrize(
    "mnemonic", ["add.s32", "mad.lo.s32", "cvt.rn.f32.u32", "setp.lt.f32", "min.f32", "ld.f32"]
)
def test_what_does_not_compute_with_floats_is_no_operation(mnemonic: str) -> None:
    assert flops_of(instruction_table([instruction(0, mnemonic)])).height == 0


def traced(path: Path, *, fused: int, plain: int, loads: int, off: int) -> LaunchProfile:
    """Warps of two blocks that load `loads` words a lane, and compute; `off` lanes skip the add."""
    table = [
        *(instruction(n, "ld.global.f32") for n in range(loads)),
        *(instruction(loads + n, "fma.rn.f32") for n in range(fused)),
        *(instruction(loads + fused + n, "add.f64", predicate="%p1") for n in range(plain)),
    ]
    with TraceWriter(path) as trace, trace.launch(launch(grid=(2, 1, 1))) as rows:
        accesses = [Access(warp(), pc=n, block=b, step=n) for b in range(2) for n in range(loads)]
        write_rows(rows, accesses, table, [[(0, FULL, 0, 0, 1)]], [(0, 0, 0, 0), (1, 0, 0, 0)])
        for block in range(2):
            pcs = np.arange(loads + fused, loads + fused + plain)
            lanes = np.full(plain, 32 - off)
            rows.lanes_on(np.full(plain, block), pcs, lanes)
    (found,) = analyze(path, "h200").launches
    return found


def test_operations_are_counted_by_thread_and_without_lanes_that_are_off(tmp_path: Path) -> None:
    first = traced(tmp_path / "a.cutrace", fused=3, plain=2, loads=4, off=5).counters
    assert first["flops_single"] == 2 * 32 * 3 * 2
    assert first["flops_double"] == 2 * 27 * 2
    assert first["flops"] == 384 + 108
    # 2 warps of 4 loads of 128 bytes, 32 words each
    assert first["arithmetic_intensity"] == (384 + 108) / (2 * 4 * 128)
    assert first["compute_to_global_access_ratio"] == (384 + 108) / (2 * 4 * 32)
    twin = traced(tmp_path / "b.cutrace", fused=4, plain=1, loads=2, off=0).counters
    assert (twin["flops_single"], twin["flops_double"]) == (2 * 32 * 4 * 2, 2 * 32)
    assert twin["compute_to_global_access_ratio"] == (512 + 64) / (2 * 2 * 32)


def test_half_precision_has_its_counter(tmp_path: Path) -> None:
    table = [instruction(0, "fma.rn.f16x2")]
    path = tmp_path / "half.cutrace"
    with TraceWriter(path) as trace, trace.launch(launch()) as rows:
        write_rows(rows, [], table, [[(0, FULL, 0, 0, 5)]], [(0, 0, 0, 0)])
    (found,) = analyze(path, "h200").launches
    assert found.counters["flops_half"] == 32 * 4 * 5
    assert found.counters["arithmetic_intensity"] is None  # nothing moves


PRODUCT = """
#define T %d
__global__ void product(float *c, const float *a, const float *b, int n)
{
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0.0f;
#if T
    __shared__ float tileA[16][16], tileB[16][16];
    for (int start = 0; start < n; start += 16) {
        tileA[y][x] = a[row * n + start + x];
        tileB[y][x] = b[(start + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++) sum += tileA[y][k] * tileB[k][x];
        __syncthreads();
    }
#else
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
#endif
    c[row * n + column] = sum;
}
"""


@pytest.mark.parametrize(
    ("tiled", "ratio"),
    [
        pytest.param(0, 1, marks=pytest.mark.document("002.1", "ratio 1 untiled")),
        pytest.param(1, 16, marks=pytest.mark.document("002.1", "ratio 16 with tiles of 16")),
    ],
)
def test_the_product_computes_as_often_as_it_loads_and_tiled_16_times_as_often(
    tiled: int, ratio: int, tmp_path: Path
) -> None:
    path = tmp_path / "product.cutrace"
    with cutrace.Session(path) as gpu:
        kernel = gpu.compile(PRODUCT % tiled).get_function("product")
        a, b, c = (gpu.to_device(np.ones((32, 32), np.float32), name=n) for n in "abc")
        kernel[(2, 2), (16, 16)](c, a, b, 32)
    (found,) = analyze(path, "h200").launches
    assert found.counters["flops_single"] == 32**3 * 2
    assert found.counters["compute_to_global_access_ratio"] == ratio
    (roof,) = (remark for remark in found.remarks if remark.startswith("roofline: "))
    # 2 x 32^3 FLOP; DRAM moves two arrays of 4 KB, the third stays in L2. Of 132 SMs at 1.98 GHz
    # with 128 fma a clock 4 have a block: 2027.5 GFLOPS
    assert roof == (
        "roofline: 8 FLOP/byte of DRAM x 4800 GB/s = 38400 GFLOPS at most;"
        " its cores do 2028 at most"
    )
    assert found.bounds[0].ns >= 2 * 32**3 / 2028  # no launch is faster than its roof


@pytest.mark.document("002.2", "200 GB/s and ratio 1: 50 GFLOPS; 150 and 16: 600")
@pytest.mark.parametrize(("gb_per_s", "ratio", "gflops"), [(200, 1, 50), (150, 16, 600)])
def test_memory_allows_so_many_operations_a_second(gb_per_s: int, ratio: int, gflops: int) -> None:
    found = roofline(ratio, 4, gb_per_s, 1500)
    assert (found.memory_gflops, found.gflops, found.bound) == (gflops, gflops, "memory-bound")


@pytest.mark.document("002.2", "exercise 5.10: a memory-bound, b compute-bound")
@pytest.mark.parametrize(
    ("peak", "gb_per_s", "bound"), [(200, 100, "memory-bound"), (300, 250, "compute-bound")]
)
def test_36_operations_for_7_words_depend_on_the_device(
    peak: int, gb_per_s: int, bound: str
) -> None:
    found = roofline(36, 7 * 4, gb_per_s, peak)  # 36 / 28 x 100 = 128.6; x 250 = 321.4
    assert found.bound == bound
    assert found.gflops == pytest.approx(min(peak, 36 / 28 * gb_per_s))


def test_an_unknown_peak_leaves_the_verdict_out() -> None:
    found = roofline(1, 4, 200, None)
    assert (found.bound, found.gflops) == ("", 50)
    assert str(found) == "roofline: 0.25 FLOP/byte of DRAM x 200 GB/s = 50 GFLOPS at most"
    assert str(roofline(36, 28, 250, 300)).endswith(
        "= 321.4 GFLOPS at most; its cores do 300 at most"
    )


def test_no_instructions_give_an_empty_table() -> None:
    assert flops_of(pa.Table.from_pylist([], schema=instruction_table([]).schema)).height == 0
