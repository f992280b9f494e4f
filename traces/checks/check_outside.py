"""Checks of accesses outside of every allocation against what the manifest says of them."""

from collections.abc import Iterator

import numpy as np

from ..schema import Space
from .check_access import lanes_inside, least_bytes
from .recorded import Finding, Recorded, lanes_of


def check_outside_rows(recorded: Recorded) -> Iterator[Finding]:
    """No more lanes are outside of every array than the manifest says, by instruction."""
    told = recorded.outside_lanes
    width, windows = least_bytes(recorded), recorded.windows(Space.GLOBAL)
    assert windows is not None
    counted = np.zeros_like(told)
    for _, rows in recorded.accesses():
        chosen = np.flatnonzero((rows["space"] == Space.GLOBAL) & (told[rows["pc"]] > 0))
        pc, pattern = rows["pc"][chosen], rows["pattern"][chosen]
        inside = lanes_inside(recorded, rows["base"][chosen], pattern, width[pc], windows)
        outside = lanes_of(recorded.patterns[0][pattern]) & ~inside
        np.add.at(counted, pc, outside.sum(axis=1))
    for pc in np.flatnonzero(counted > told).tolist():
        yield Finding(
            f"pc {pc}: {counted[pc]} lanes are outside of every array, but the manifest says "
            f"{told[pc]}"
        )
