"""Checks of control flow: paths, and the rows of CONTROL that refer to them.

They also verify that accesses and texture samples belong to executed instructions.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .recorded_tables import Finding, Ints, Recorded, report
from .row_filter import count_in_ranges, count_kept_blocks
from .unique import sorted_unique

_STEPS = 1 << 32


def check_path_entries(recorded: Recorded) -> Iterator[Finding]:
    """Check that entries run a block with active lanes, at least once; branch masks are
    consistent."""
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
    """Check that active lanes belong to threads of the block."""
    first = recorded.paths["blocks first"]
    ever = np.bitwise_or.reduceat(recorded.paths["active"], first[:-1])
    control = recorded.control
    beyond = ever[control["path"]] & ~recorded.lanes(control["warp"])
    yield from report(beyond != 0, "its path has lanes on that the warp does not have")


def check_control_steps(recorded: Recorded) -> Iterator[Finding]:
    """Check that the rows of a warp begin at step 0 and are contiguous, in file order."""
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
    """Check that, if any warp has rows of control, every recorded warp of the grid has some."""
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
    """Return the number of steps of each path."""
    return np.diff(entry_starts(recorded)[recorded.paths["blocks first"]])


def check_accesses_ran(recorded: Recorded) -> Iterator[Finding]:
    """Check that the warp executed the access's pc at its step, with the access's lanes active."""
    patterns = recorded.patterns[0].astype(np.int64)
    history = _History(recorded)
    for first, rows in recorded.accesses():
        yield from history.check(rows, patterns[rows["pattern"]], first)


def check_texels_ran(recorded: Recorded) -> Iterator[Finding]:
    """Check that the warp executed the sample's pc at its step, with the sample's lanes active."""
    history = _History(recorded)
    for first, rows in recorded.texels():
        yield from history.check(rows, rows["active"], first)


class _History:
    """The instruction of each step of a warp, looked up by (warp, step)."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        keys = recorded.control["id"] << 32 | recorded.control["step"]
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._lengths = path_lengths(recorded)
        self._starts = entry_starts(recorded)
        self._is_bulk = recorded.of_instructions("access") == "bulk"

    def check(self, rows: dict[str, Any], lanes: Ints, first: int) -> Iterator[Finding]:
        """Report rows with another pc or other lanes than the warp executed; none without
        control."""
        if not len(self._keys):
            return
        row, ran = self._find(rows)
        yield from report(~ran, "the warp ran no such step", first)
        pc, active = self._at(row, rows["step"])
        yield from report(ran & (pc != rows["pc"]), "the warp ran another pc at this step", first)
        beyond = (lanes & ~active != 0) & ~self._is_bulk[rows["pc"]]
        yield from report(ran & beyond, "inactive lanes take part", first)

    def _find(self, rows: dict[str, Any]) -> tuple[Ints, np.ndarray]:
        """Return the row of control that covers each step, and whether there is one."""
        place = np.searchsorted(self._keys, rows["id"] << 32 | rows["step"], "right") - 1
        row = self._order[np.maximum(place, 0)]
        control = self._recorded.control
        end = control["step"][row] + self._lengths[control["path"][row]]
        return row, (place >= 0) & (control["id"][row] == rows["id"]) & (rows["step"] < end)

    def _at(self, row: Ints, step: Ints) -> tuple[Ints, Ints]:
        """Return pc and active lanes of the warps of control rows at a step."""
        control, paths = self._recorded.control, self._recorded.paths
        path = control["path"][row]
        place = self._starts[paths["blocks first"][path]] + step - control["step"][row]
        entry = np.searchsorted(self._starts, place, "right") - 1
        entry = np.minimum(entry, len(paths["blocks"]) - 1)
        first = self._recorded.block_first[paths["blocks"][entry]]
        size = self._recorded.block_first[paths["blocks"][entry] + 1] - first
        pc = first + (place - self._starts[entry]) % np.maximum(size, 1)
        return pc, paths["active"][entry]
