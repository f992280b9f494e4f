"""Shadow cells: memory in pieces small enough that an access covers whole ones, with accessors.

The size of a cell follows from the accesses: the greatest power of two that divides every address
and width among them, 4 bytes in most kernels.
"""

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from ....lazy_dataclass import dataclass
from ....traces.table.unique import sorted_unique
from ..rows.lanes import unpack_masks
from ..rows.patterns import Patterns
from ..rows.sites import broken
from ..schedule.episodes import Episodes, Rows, list_ranges
from ..seam import Bools, Ints

ROWS = 1 << 14
"""Rows that are spread over their lanes at a time: half a million lanes."""
CELLS = 1 << 22
"""Cells of the episodes that are looked at together, unless a single one has more."""
WIDEST = 16
"""Bytes of a cell at most."""
MEMORY = 1 << 28
"""Bytes of shared memory that a block may have: beyond, a trace is broken."""
LOAD, STORE, ATOMIC = range(3)
"""What an access does; atomics are safe among themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """What each instruction does to shared memory, (pcs,): `act` is LOAD, STORE or ATOMIC, `width`
    bytes a lane.
    """

    act: Ints
    width: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """Lanes at cells, (n,): `cell` numbered through a part, `row` one of its rows; `opens` tells
    whether the lane's bytes begin in this cell.
    """

    cell: Ints
    row: Ints
    lane: Ints
    opens: Bools

    def take(self, which: Ints | Bools) -> "Touches":
        """Return some of them."""
        return Touches(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some distinct episodes, whose cells of `size` bytes are numbered together.

    Cell c of episode `numbers[e]` has number e * span + c. For each of `rows`, `episode` is its e,
    and `warp` its warp in the block.
    """

    numbers: Ints
    rows: Rows
    episode: Ints
    warp: Ints
    size: int
    span: int

    def spread(
        self, patterns: Patterns, effects: Effects, rows: Ints | None = None
    ) -> Iterator[Touches]:
        """Yield the cells of all lanes of the rows, or of some, a few rows at a time."""
        rows = np.arange(len(self.rows)) if rows is None else rows
        for start in range(0, len(rows), ROWS):
            yield self._spread(patterns, effects, rows[start : start + ROWS])

    def _spread(self, patterns: Patterns, effects: Effects, rows: Ints) -> Touches:
        pattern = self.rows.pattern[rows]
        on = np.flatnonzero(unpack_masks(patterns.active[pattern]))
        address = self.rows.base[rows][:, None] + patterns.offsets[pattern]
        row, lane = rows[on >> 5], on & 31
        cell = address.reshape(-1)[on] // self.size + self.episode[row] * self.span
        lengths = effects.width[self.rows.pc[rows]] // self.size
        found = Touches(cell, row, lane, np.ones(len(cell), np.bool_))
        if lengths.max(initial=1) == 1:
            return found
        lengths = lengths[on >> 5]
        repeated = found.take(np.repeat(np.arange(len(cell)), lengths))
        further = np.arange(len(repeated.cell)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return replace(repeated, cell=repeated.cell + further, opens=further == 0)


def cut_parts(
    episodes: Episodes, warps: Ints, patterns: Patterns, effects: Effects, limit: int
) -> Iterator[Part]:
    """Yield the episodes in which several warps meet and one of them writes, a few at a time.

    `warps` maps an owner to its warp in the block. Raises `CutraceError` for addresses outside the
    block's `limit` bytes of shared memory.
    """
    rows = episodes.rows
    if not len(rows):
        return
    size, span = _measure(rows, patterns, effects, limit)
    act, warp = effects.act[rows.pc], warps[rows.owner]
    opens = episodes.first[:-1]
    several = np.minimum.reduceat(warp, opens) != np.maximum.reduceat(warp, opens)
    writes = np.logical_or.reduceat(act != LOAD, opens)
    plain = np.logical_or.reduceat(act != ATOMIC, opens)
    chosen = np.flatnonzero(several & writes & plain)
    together = max(1, CELLS // span)
    for start in range(0, len(chosen), together):
        numbers = chosen[start : start + together]
        lengths = np.diff(episodes.first)[numbers]
        kept = list_ranges(opens[numbers], lengths)
        episode = np.repeat(np.arange(len(numbers)), lengths)
        yield Part(numbers, rows.take(kept), episode, warp[kept], size, span)


def _measure(rows: Rows, patterns: Patterns, effects: Effects, limit: int) -> tuple[int, int]:
    """Return the size of a cell, and how many cells hold all that the rows touch."""
    used = sorted_unique(rows.pattern)
    width = effects.width[sorted_unique(rows.pc)]
    low = rows.base + patterns.lowest[rows.pattern]
    end = rows.base + patterns.highest[rows.pattern] + effects.width[rows.pc]
    if low.min() < 0 or end.max() > min(limit, MEMORY):
        raise broken(f"shared-memory accesses outside the {limit} bytes of a block")
    odd = WIDEST
    for values in (rows.base, patterns.offsets[used].reshape(-1), width):
        odd |= int(np.bitwise_or.reduce(values))
    size = odd & -odd
    return size, -(-int(end.max()) // size)


def find_contested(part: Part, patterns: Patterns, effects: Effects) -> Bools:
    """Whether each cell of a part is touched by several warps, one of them writing, one plainly."""
    cells = len(part.numbers) * part.span
    owner = np.full(cells, -1, np.int16)
    several, written, plain = (np.zeros(cells, np.bool_) for _ in range(3))
    for touches in part.spread(patterns, effects):
        warp = part.warp[touches.row].astype(np.int16)
        act = effects.act[part.rows.pc[touches.row]]
        unowned = owner[touches.cell] < 0
        owner[touches.cell[unowned]] = warp[unowned]
        several[touches.cell[owner[touches.cell] != warp]] = True
        written[touches.cell[act != LOAD]] = True
        plain[touches.cell[act != ATOMIC]] = True
    return several & written & plain
