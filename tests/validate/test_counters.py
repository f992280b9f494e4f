"""Our counts of kernels against what Nsight Compute counted on an NVIDIA H200.

The captures come from scripts/capture_counters.py; `silicon.py` says what can be compared. The page
that shows all of it is written by scripts/write_validation.py.
"""

from pathlib import Path

from silicon import launched, pairs
from silicon_page import FILES, by_metric, page, share

PAGE = Path(__file__).parents[2] / "docs" / "validation.md"
OVERALL, EACH = 0.99, 0.90
KERNELS = 50


def test_counts_are_those_of_the_chip_where_the_assembler_left_the_accesses_alone() -> None:
    launches = [launch for file in FILES for launch in launched(file, caches=False)]
    compared = list(pairs(tuple(launches)))
    unexplained = [
        (p.launched.source, p.launched.kernel, p.launched.number, p.metric, p.theirs, p.ours)
        for p in compared
        if p.verdict == "unequal" and not p.reason
    ]
    assert unexplained == []
    equal, of = share(compared)
    assert equal >= OVERALL * of
    parts = {metric: share(mine) for metric, mine in by_metric(compared).items()}
    assert {m: part for m, part in parts.items() if part[0] < EACH * part[1]} == {}
    held = {p.launched.kernel for p in compared if p.verdict == "equal" and "mem" in p.metric}
    assert len(held) >= KERNELS
    written = PAGE.read_text(encoding="utf-8").partition("## Caches")[0]
    assert page(launches, compared).partition("## Caches")[0] == written, (
        "python scripts/write_validation.py renews it"
    )
