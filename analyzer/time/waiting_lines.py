"""Waits of an estimate by source line: where a warp waits, and for which unit."""

from collections import defaultdict

import polars as pl

from ...lazy_dataclass import dataclass
from .estimate import STALLS, Estimate


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """A line at which a warp spends a `share` of its time, 0 to 1, waiting for something.

    `stall` is Nsight Compute's name for such waits.
    """

    file: str
    line: int
    waits_for: str
    stall: str
    share: float


def waiting_lines(counts: pl.DataFrame, estimate: Estimate) -> tuple[WaitingLine, ...]:
    """The lines of a launch's instructions (`pc`, `file`, `line`), the longest waits first."""
    places = {pc: (f, n) for pc, f, n in counts.select("pc", "file", "line").unique().iter_rows()}
    shares = defaultdict[tuple[str, int, str], float](float)
    for (pc, why), share in estimate.at.items():
        shares[*places.get(pc, ("", 0)), why] += share
    return tuple(
        WaitingLine(file, line, why, STALLS[why], share)
        for (file, line, why), share in sorted(shares.items(), key=lambda item: -item[1])
    )
