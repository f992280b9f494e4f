"""Checks of what the manifest says was kept: that it makes sense, and that no row is beyond it."""

from collections.abc import Iterator

import numpy as np

from .kept import in_ranges, keeps_blocks, keeps_pcs
from .recorded import Finding, Ints, Recorded, report
from .schema import Launch


def check_kept(launch: Launch) -> Iterator[str]:
    """Ranges go upwards, and the blocks of a sample stand for all."""
    kept = launch.kept
    for first, last in (*kept.blocks, *kept.warps):
        if not 0 <= first <= last:
            yield f"kept from {first} to {last}"
    sample = kept.sample
    if list(sample.blocks) != sorted({*sample.blocks}) or len(sample.weights) != len(sample.blocks):
        yield "the blocks of its sample do not rise, or have not a weight each"
    if sample.blocks and (min(sample.weights) < 1 or sum(sample.weights) != launch.blocks):
        yield f"the blocks of its sample stand for {sum(sample.weights)}, not for {launch.blocks}"
    if any(not 0 <= block < launch.blocks for block in sample.blocks):
        yield "its sample has blocks that the grid has not"
    if list(sample.ends) != sorted({*sample.ends} & {*sample.blocks}):
        yield "the ends of its sample are not among its blocks"


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
