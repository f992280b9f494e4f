"""Checks of order: the rows of a warp are in the order of its execution."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .recorded import Finding, Flags, Ints, Recorded, report

_PART, _STEP = 23, 31
"""Where part and step begin in a key of 32 bits step, 8 bits part and 23 bits pc."""


def check_access_order(recorded: Recorded) -> Iterator[Finding]:
    """Steps of a warp never fall; the parts of a step are 0, 1, 2 ... of one instruction."""
    last = _Last()
    for first, rows in recorded.accesses():
        key, before, order = last.follow(rows, rows["part"])
        opens = (before >> _STEP != key >> _STEP) & (key >> _PART & 0xFF == 0)
        wrong = ~opens & (key - before != 1 << _PART)
        yield from _report_falling(key, before, order, first)
        text = "its part or pc does not follow from the warp's row before"
        yield from report(_in_file(wrong, order), text, first)


def check_texel_order(recorded: Recorded) -> Iterator[Finding]:
    """Steps of a warp never fall; a step's rows, one a texture, are of one instruction."""
    last = _Last()
    for first, rows in recorded.texels():
        key, before, order = last.follow(rows, np.zeros_like(rows["step"]))
        wrong = (before >> _STEP == key >> _STEP) & (before != key)
        yield from _report_falling(key, before, order, first)
        text = "its step is that of the warp's row before, but its pc is not"
        yield from report(_in_file(wrong, order), text, first)


def _report_falling(key: Ints, before: Ints, order: Ints, first: int) -> Iterator[Finding]:
    falls = before >> _STEP > key >> _STEP
    text = "its step is before that of the warp's row before"
    yield from report(_in_file(falls, order), text, first)


def _in_file(flags: Flags, order: Ints) -> Flags:
    """Return flags of rows sorted by `order` in the order of the file."""
    return flags[np.argsort(order)]


class _Last:
    """The key of the last row of each warp so far, -1 for a warp without one."""

    def __init__(self) -> None:
        self._warps = np.full(1, -1)
        self._keys = np.full(1, -1)

    def follow(self, rows: dict[str, Any], part: Ints) -> tuple[Ints, Ints, Ints]:
        """Return each row's key, its warp's key before, and the order that sorts rows by warp."""
        order = np.argsort(rows["id"], kind="stable")
        warp = rows["id"][order]
        key = (rows["step"] << _STEP | part << _PART | rows["pc"] & (1 << _PART) - 1)[order]
        opens = np.diff(warp, prepend=-1) != 0
        before = np.where(opens, self._of(warp), np.roll(key, 1))
        self._update(warp, key)
        return key, before, order

    def _of(self, warps: Ints) -> Ints:
        place = np.searchsorted(self._warps, warps, "right") - 1
        return np.where(self._warps[place] == warps, self._keys[place], -1)

    def _update(self, warps: Ints, keys: Ints) -> None:
        """Take rows of warps, of which the last of each counts."""
        newest_first = np.concatenate([self._warps, warps])[::-1]
        self._warps, index = np.unique(newest_first, return_index=True)
        self._keys = np.concatenate([self._keys, keys])[::-1][index]
