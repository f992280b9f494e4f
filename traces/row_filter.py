"""Filters of a recording: which rows of a launch `Kept` selects, for writers and readers."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .schema import Kept, Range

Flags = npt.NDArray[np.bool_]


def in_ranges(values: npt.NDArray[np.integer], ranges: Sequence[Range]) -> Flags:
    """Return which values (n,) are in one of the ranges; all if there are none.

    >>> in_ranges(np.array([0, 3, 4, 9]), [(3, 4), (9, 12)])
    array([False,  True,  True,  True])
    """
    mask = np.full(len(values), not ranges)
    for first, last in ranges:
        mask |= (values >= first) & (values <= last)
    return mask


def keeps_blocks(selection: Kept, block: npt.NDArray[np.integer]) -> Flags:
    """Return which thread blocks (n,) are recorded."""
    mask = in_ranges(block, selection.blocks)
    if selection.sample.blocks:
        mask &= np.isin(block, np.array(selection.sample.blocks, block.dtype))
    return mask


def count_in_ranges(ranges: Sequence[Range], count: int) -> int:
    """Return how many of the numbers below `count` are in one of the ranges; all if there are none.

    >>> count_in_ranges([(0, 3), (2, 5), (9, 99)], 10)
    7
    """
    if not ranges:
        return count
    total, reached = 0, 0
    for first, last in sorted(ranges):
        end = min(last + 1, count)
        total += max(end - max(first, reached), 0)
        reached = max(reached, end)
    return total


def count_kept_blocks(selection: Kept, blocks: int) -> int:
    """Return how many of a grid's blocks are recorded."""
    if selection.sample.blocks:
        return int(np.count_nonzero(keeps_blocks(selection, np.array(selection.sample.blocks))))
    return count_in_ranges(selection.blocks, blocks)


def keeps_pcs(selection: Kept, instructions: pa.Table) -> Flags:
    """Return which instructions (pcs,) have their accesses recorded, by their source lines."""
    if not selection.lines:
        return np.ones(instructions.num_rows, np.bool_)
    lines = set(selection.lines)
    return np.array([not lines.isdisjoint(places) for places in lines_of(instructions)], np.bool_)


def lines_of(instructions: pa.Table) -> list[set[str]]:
    """Return each instruction's lines: its own and those into which it was inlined."""
    rows = instructions.select(["file", "line", "inlined_at"]).to_pylist()
    return [_places(row) for row in rows]


def _places(row: dict[str, object]) -> set[str]:
    """Return an instruction's lines in the forms that a user may write: `k.cu:7`, and `7`."""
    inlined = row["inlined_at"]
    assert isinstance(inlined, list)
    places = [(place["file"], place["line"]) for place in (row, *inlined) if place["line"]]
    return {f"{file}:{line}" for file, line in places} | {str(line) for _, line in places}
