"""Layout: the addresses of a launch's arrays with some of them padded or realigned.

In an array with rows of R bytes, padded by P, the byte at offset i goes to i + i // R * P, and the
array takes P bytes more for each row begun. An array that is aligned anew moves up to the next such
address. Arrays behind it in the same state space move up by the added bytes, rounded up so that
they keep their alignment: to 256 bytes in global memory, where allocations begin at multiples of
that, to 16 in shared memory, the most that an element needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ....errors import CutraceError
from ....lazy_dataclass import dataclass
from ....traces.schema import Array, Launch, Space
from ..rows.arrays import SPACE_SHIFT
from ..seam import Ints
from .change import Alignment

UNIT = {Space.SHARED: 16}
OTHER_UNIT = 256


@dataclass(frozen=True, slots=True)
class Rows:
    """How an array is padded: rows of `row` bytes become `pad` bytes longer."""

    row: int
    pad: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The address line, `space << SPACE_SHIFT | address`, in segments that each move as one.

    All are (segments,): where each begins, how far that goes up, and its rows and their padding
    (a row of 1 byte and no padding where it has none). `arrays` are the launch's, where they lie
    then, and `added` the bytes of shared memory, declared and dynamic.
    """

    first: Ints
    shift: Ints
    row: Ints
    pad: Ints
    arrays: tuple[Array, ...]
    added: tuple[int, int]

    def find(self, places: Ints) -> Ints:
        """Return the segment of each place."""
        return np.asarray(np.searchsorted(self.first, places, side="right") - 1, np.int64)

    def move(self, places: Ints) -> Ints:
        """Return where each place goes."""
        segment = self.find(places)
        into = places - self.first[segment]
        moved = places + self.shift[segment] + into // self.row[segment] * self.pad[segment]
        return np.asarray(moved, np.int64)


_Segment = tuple[int, int, int, int]


def lay_out(
    launch: Launch, rows: Mapping[str, Rows], alignments: Mapping[str, Alignment]
) -> Layout:
    """Lay out a launch's arrays anew; `CutraceError` if one to be changed overlaps another."""
    segments: list[_Segment] = []
    moved: dict[Array, Array] = {}
    added = [0, 0]
    for space in Space:
        segments.append((space << SPACE_SHIFT, 0, 1, 0))
        arrays = sorted((a for a in launch.arrays if a.space == space), key=lambda a: a.offset)
        _refuse_overlap(arrays, {*rows, *alignments})
        carry = 0
        for old, behind in zip(arrays, [*arrays, None][1:], strict=True):
            before, new = carry, _place(old, carry, rows.get(old.name), alignments.get(old.name))
            if new.offset + max(new.bytes, new.pitch) > 1 << SPACE_SHIFT:
                raise CutraceError(
                    f"`{old.name}` would end beyond every address: pad or align less"
                )
            carry += _up(new.offset + new.bytes - (old.offset + old.bytes) - carry, old.space)
            moved[old] = new
            segments.append(_segment(old, new, rows.get(old.name)))
            if behind is None or behind.offset >= old.offset + old.bytes:
                segments.append(((space << SPACE_SHIFT) + old.offset + old.bytes, carry, 1, 0))
            if space == Space.SHARED:
                added[old.offset >= launch.shared_static] += carry - before
    table = np.array(_without_empty(segments), np.int64)
    everywhere = tuple(moved[array] for array in launch.arrays)
    first, shift, row, pad = table.T
    return Layout(first, shift, row, pad, everywhere, (added[0], added[1]))


def _place(old: Array, carry: int, rows: Rows | None, alignment: Alignment | None) -> Array:
    """Return an array where it would lie."""
    start = old.offset + carry
    if alignment:
        start += (alignment.beyond - start) % alignment.bytes
    if rows is None:
        return replace(old, offset=start)
    longer = -(-old.bytes // rows.row) * rows.pad
    return replace(old, offset=start, bytes=old.bytes + longer, pitch=rows.row + rows.pad)


def _segment(old: Array, new: Array, rows: Rows | None) -> _Segment:
    """Return the segment of an array."""
    start = (old.space << SPACE_SHIFT) + old.offset
    row, pad = (rows.row, rows.pad) if rows else (1, 0)
    return start, new.offset - old.offset, row, pad


def _without_empty(segments: Sequence[_Segment]) -> list[_Segment]:
    """Keep of segments that begin at one place the last."""
    return [*{segment[0]: segment for segment in segments}.values()]


def _refuse_overlap(ordered: Sequence[Array], names: set[str]) -> None:
    """Raise `CutraceError` if an array that shall move shares bytes with another."""
    for one, other in pairwise(ordered):
        if other.offset < one.offset + one.bytes and not names.isdisjoint((one.name, other.name)):
            raise CutraceError(
                f"`{one.name}` and `{other.name}` share memory: neither can be padded or aligned"
                " alone"
            )


def _up(bytes_: int, space: Space) -> int:
    """Round up to what keeps the alignment of whatever lies behind."""
    unit = UNIT.get(space, OTHER_UNIT)
    return -(-bytes_ // unit) * unit
