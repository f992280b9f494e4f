"""Checks that every row passes the filters that the manifest names."""

from collections.abc import Iterator

import numpy as np

from ..kept import in_ranges, keeps_blocks, keeps_pcs
from .recorded import Finding, Ints, Recorded, report


def check_kept_rows(recorded: Recorded) -> Iterator[Finding]:
    """Rows of accesses are of what was kept."""
    kept = recorded.launch.kept
    pcs = keeps_pcs(kept, recorded.instructions)
    for first, rows in recorded.accesses():
        bad = ~pcs[rows["pc"]]
        if kept.spaces:
            bad |= ~np.isin(rows["space"], [int(space) for space in kept.spaces])
        yield from _report(recorded, bad, rows["block"], rows["warp"], first)


def check_kept_texels(recorded: Recorded) -> Iterator[Finding]:
    """Rows of texels are of what was kept."""
    pcs = keeps_pcs(recorded.launch.kept, recorded.instructions)
    for first, rows in recorded.texels():
        yield from _report(recorded, ~pcs[rows["pc"]], rows["block"], rows["warp"], first)


def check_kept_control(recorded: Recorded) -> Iterator[Finding]:
    """Rows of control are of what was kept."""
    control = recorded.control
    bad = np.full(len(control["block"]), not recorded.launch.kept.control)
    yield from _report(recorded, bad, control["block"], control["warp"], 0)


def _report(
    recorded: Recorded, bad: np.ndarray, block: Ints, warp: Ints, first: int
) -> Iterator[Finding]:
    kept = recorded.launch.kept
    bad = bad | ~keeps_blocks(kept, block) | ~in_ranges(warp, kept.warps) | (not kept.rows)
    yield from report(bad, "the manifest says that it was left out", first)
