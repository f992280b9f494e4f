"""Miss ratios from one pass, beside a replay at each size."""

from pathlib import Path

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.errors import CutraceError

DEVICE = """\
name = "Fully associative L1"
base = "h100"

[stage.l1]
model = "cache"
from = ["coalescer", "sampler"]
bytes = 65536
line = 128
sector = 128
sets = 1
serves = ["global"]
"""
EIGHT = """\
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define K(name, text) __global__ void name(float *o, const float *a) { int i = I; float s = 0; \\
    for (int k = 0; k < 24; k++) s += a[(text) & 2047]; o[i] = s; }
// cutrace: same<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(same, i)
// cutrace: stream<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(stream, i + k * 256)
// cutrace: stride<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(stride, i * 8 + k)
// cutrace: column<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(column, i * 33 + k * 32)
// cutrace: stencil<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(stencil, i + (k % 3) * 64)
// cutrace: gather<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(gather, i * 7919 + k * 104729)
// cutrace: product<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(product, (i >> 4) * 24 + k + (i & 15) * 96)
// cutrace: circle<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(circle, i + (k % 5) * 320)
"""
SIZES = [128 * lines for lines in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)]


@pytest.mark.slow
def test_eight_kernels_miss_what_replays_at_twelve_sizes_miss(tmp_path: Path) -> None:
    device = tmp_path / "full.toml"
    device.write_text(DEVICE)
    (tmp_path / "eight.cu").write_text(EIGHT)
    trace = cutrace.record(tmp_path / "eight.cu", out=tmp_path / "eight.cutrace")
    found = cutrace.miss_ratios(trace, str(device), sizes=SIZES)
    assert len(found) == 8 * len(SIZES)
    for size in SIZES:
        launches = cutrace.analyze(trace, str(device), set={"l1.bytes": size}).launches
        misses = [
            int(launch.counters["l1_reads"] or 0) - int(launch.counters["l1_read_hits"] or 0)
            for launch in launches
        ]
        assert all(misses)
        assert found.filter(bytes=size)["misses"].to_list() == misses


def test_a_load_of_whole_lines_misses_each_once(tmp_path: Path) -> None:
    """32 lanes a line apart load twice: 32 lines, all used again after 31 others."""
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=128, base=0))] * 2)
    found = cutrace.miss_ratios(trace, "h100", sizes=[31 * 128, 32 * 128])
    assert found["accesses"].to_list() == [64, 64]
    assert found["misses"].to_list() == [64, 32]
    assert found["miss_ratio"].to_list() == [1.0, 0.5]
    assert found["working_set"].to_list() == [32 * 128] * 2


def test_a_cache_that_the_device_lacks_is_named_with_those_that_it_has(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=4))])
    with pytest.raises(CutraceError, match=r"no cache 'l3'.*there are l1"):
        cutrace.miss_ratios(trace, "h100", cache="l3")
