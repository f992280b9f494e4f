"""Our caches against what Nsight Compute counted on an NVIDIA H200.

The captures of tests/validate/caches (scripts/capture_counters.py) and all others; what is near,
and why the rest is not, is in `silicon_caches.py`.
"""

from pathlib import Path

import pytest
from silicon import launched
from silicon_caches import HIT_RATE, NEAR, Cached, by_kernel, compare
from silicon_page import FILES

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
HELD = {
    HIT_RATE: 0.9,
    "lts__t_sectors_srcunit_tex_op_read.sum": 0.95,
    "dram__bytes_read.sum": 1.0,
    "dram__bytes_write.sum": 0.3,
}
"""How much of each counter is near."""


@pytest.fixture(scope="module")
def compared() -> list[Cached]:
    """Every counter of a cache that can be compared."""
    return list(compare([launch for file in FILES for launch in launched(file)]))


def test_every_count_that_is_not_near_the_chips_is_explained(compared: list[Cached]) -> None:
    far = [one for one in compared if not one.is_near]
    assert [(f.launched.source, f.launched.kernel, f.metric) for f in far if not f.reason] == []


@pytest.mark.parametrize("metric", NEAR)
def test_caches_are_near_the_chips(metric: str, compared: list[Cached]) -> None:
    near = [one.is_near for one in compared if one.metric == metric]
    assert sum(near) >= HELD[metric] * len(near)


def test_hit_rates_of_programs_are_near(compared: list[Cached]) -> None:
    rates = [c for c in compared if c.metric == HIT_RATE and c.launched.source.endswith(".py")]
    kernels = by_kernel(rates)
    assert len(kernels) >= 30
    assert sum(kernels.values()) >= 0.95 * len(kernels)


def test_the_page_says_so(compared: list[Cached]) -> None:
    written = PAGE.read_text(encoding="utf-8")
    for metric in NEAR:
        near = [one.is_near for one in compared if one.metric == metric]
        assert f"| `{metric}` | {NEAR[metric].words} | {sum(near)} of {len(near)} |" in written
