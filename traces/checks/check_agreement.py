"""Checks that accesses and samples are those of the instructions that control says a warp ran."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .check_control import entry_starts, path_lengths
from .recorded import Finding, Ints, Recorded, report


def check_accesses_ran(recorded: Recorded) -> Iterator[Finding]:
    """At its step the warp ran the access's pc, with the access's lanes active."""
    patterns = recorded.patterns[0].astype(np.int64)
    history = _History(recorded)
    for first, rows in recorded.accesses():
        yield from history.check(rows, patterns[rows["pattern"]], first)


def check_texels_ran(recorded: Recorded) -> Iterator[Finding]:
    """At its step the warp ran the sample's pc, with the sample's lanes active."""
    history = _History(recorded)
    for first, rows in recorded.texels():
        yield from history.check(rows, rows["active"], first)


class _History:
    """What each warp ran at each of its steps, looked up by (warp, step)."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        keys = recorded.control["id"] << 32 | recorded.control["step"]
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._lengths = path_lengths(recorded)
        self._starts = entry_starts(recorded)

    def check(self, rows: dict[str, Any], lanes: Ints, first: int) -> Iterator[Finding]:
        """Report rows whose pc or lanes are not what the warp ran; none without control."""
        if not len(self._keys):
            return
        row, ran = self._find(rows)
        yield from report(~ran, "the warp ran no such step", first)
        pc, active = self._at(row, rows["step"])
        yield from report(ran & (pc != rows["pc"]), "the warp ran another pc at this step", first)
        yield from report(ran & (lanes & ~active != 0), "inactive lanes take part", first)

    def _find(self, rows: dict[str, Any]) -> tuple[Ints, np.ndarray]:
        """Return the row of control that covers each step, and whether one does."""
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
