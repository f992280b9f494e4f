"""Checks of what warps ran: paths, and the rows of control that refer to them."""

from collections.abc import Iterator

import numpy as np

from ..kept import count_in_ranges, count_kept_blocks
from ..table.unique import sorted_unique
from .recorded import Finding, Ints, Recorded, report

_STEPS = 1 << 32


def check_path_entries(recorded: Recorded) -> Iterator[Finding]:
    """Entries run a block with some lanes on, at least once; branches fit the masks."""
    paths = recorded.paths
    active, not_taken, targets = paths["active"], paths["not_taken"], paths["targets"]
    yield from _report(recorded, active == 0, "no lane is active")
    yield from _report(recorded, not_taken & ~active != 0, "inactive lanes do not take its branch")
    yield from _report(recorded, (not_taken != 0) & (targets == 0), "a branch that leads nowhere")
    yield from _report(recorded, targets > _count_bits(active), "more targets than active lanes")
    yield from _report(recorded, paths["repeat"] == 0, "it is repeated 0 times")


def _report(recorded: Recorded, bad: np.ndarray, text: str) -> Iterator[Finding]:
    """Report bad entries by the row of their path."""
    entries = np.flatnonzero(bad)
    if len(entries):
        row = np.searchsorted(recorded.paths["blocks first"], entries[0], "right") - 1
        entry = entries[0] - recorded.paths["blocks first"][row]
        yield Finding(f"entry {entry}: {text}", int(row), len(entries))


def _count_bits(masks: Ints) -> Ints:
    return sum(((masks >> lane) & 1 for lane in range(32)), np.zeros_like(masks))


def check_control_lanes(recorded: Recorded) -> Iterator[Finding]:
    """Only lanes that the block's threads fill are ever active."""
    first = recorded.paths["blocks first"]
    ever = np.bitwise_or.reduceat(recorded.paths["active"], first[:-1])
    control = recorded.control
    beyond = ever[control["path"]] & ~recorded.lanes(control["warp"])
    yield from report(beyond != 0, "its path has lanes on that the warp does not have")


def check_control_steps(recorded: Recorded) -> Iterator[Finding]:
    """Rows of a warp begin at step 0 and follow one another without a gap, in file order."""
    control = recorded.control
    order = np.argsort(control["id"], kind="stable")
    warp, step = control["id"][order], control["step"][order]
    end = step + path_lengths(recorded)[control["path"][order]]
    opens = np.diff(warp, prepend=-1) != 0
    expected = np.where(opens, 0, np.concatenate([[0], end])[: len(end)])
    bad = np.zeros(len(step), bool)
    bad[order] = (step != expected) | (end > _STEPS)
    yield from report(bad, "its step does not follow the warp's row before")


def check_all_warps_ran(recorded: Recorded) -> Iterator[Finding]:
    """If any warp has rows of control, every warp of the grid has that is kept."""
    ran = len(sorted_unique(recorded.control["id"]))
    launch = recorded.launch
    blocks = count_kept_blocks(launch.kept, launch.blocks)
    warps = blocks * count_in_ranges(launch.kept.warps, launch.warps)
    if ran and ran != warps:
        yield Finding(f"{ran} warps ran, but the grid has {warps}")


def entry_starts(recorded: Recorded) -> Ints:
    """Return (entries + 1,): steps before each entry, counted through all paths in order."""
    paths, first = recorded.paths, recorded.block_first
    sizes = np.diff(first)[paths["blocks"]]
    steps = np.minimum(sizes * np.minimum(paths["repeat"], _STEPS), _STEPS)
    return np.concatenate([[0], np.cumsum(steps)])


def path_lengths(recorded: Recorded) -> Ints:
    """Return how many steps each path takes."""
    return np.diff(entry_starts(recorded)[recorded.paths["blocks first"]])
