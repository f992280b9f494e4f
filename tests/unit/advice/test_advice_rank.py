"""The order of advice: the largest gain, of those alike the cheapest change."""

from pathlib import Path

import pytest

from cutrace.analyzer.advice.advise import advise, rank
from cutrace.analyzer.evidence.evidence import Finding
from cutrace.analyzer.profile import analyze
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import read_trace

PRODUCT = """
// cutrace: product<<<(16, 16), (16, 16)>>>(c:f32[65536], a:f32[65536], b:f32[65536], 256)
__global__ void product(float *c, const float *a, const float *b, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
"""


def test_indices_are_swapped_before_a_tile_is_made(tmp_path: Path) -> None:
    (tmp_path / "product.cu").write_text(PRODUCT)
    trace = read_trace(record(tmp_path / "product.cu", [], tmp_path / "t.cutrace"))
    ((launch, found),) = advise(trace, analyze(trace, "h100"))
    assert [finding.rule for finding in found][:2] == ["uncoalesced", "reuse"]
    swapped, tiled = (finding.estimate for finding in found[:2])
    assert launch.estimate
    assert swapped
    assert tiled
    assert tiled < swapped < launch.estimate.ns / 2
    # tests/validate/variants/h100.csv: with the indices swapped it takes 19360 ns of 48352
    assert swapped / launch.estimate.ns == pytest.approx(19360 / 48352, rel=0.1)


def test_a_cheaper_change_needs_half_of_the_gain(tmp_path: Path) -> None:
    (tmp_path / "product.cu").write_text(PRODUCT)
    trace = read_trace(record(tmp_path / "product.cu", [], tmp_path / "t.cutrace"))
    (launch,) = analyze(trace, "h100").launches
    assert launch.estimate
    now = launch.estimate.ns
    large = Finding("tile", "", "", estimate=0.5 * now, effort=2)
    near = Finding("swap", "", "", estimate=0.7 * now, effort=0)
    small = Finding("pad", "", "", estimate=0.78 * now, effort=0)
    assert [each.what for each in rank([small, large, near], launch)] == ["swap", "tile", "pad"]
