"""Racing pairs: accesses by different warps that share bytes, counted without listing them.

Instructions are put on *sides*; of each cell it is known how many lanes of each warp and side
touched it. Two accesses that share several cells are counted at the first: where at least one of
them opens.
"""

import numpy as np

from ....lazy_dataclass import dataclass
from ..rows.patterns import Patterns
from ..schedule.episodes import find_openings, pack_columns
from ..seam import Bools, Ints
from .shadow_cells import Effects, Part

WARPS = 1 << 16
"""More warps than a block has."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How often lanes touched cells, (n,) columns in order of side, cell and warp.

    `every` counts all touches, `closed` those of lanes whose bytes began in an earlier cell.
    """

    side: Ints
    cell: Ints
    warp: Ints
    every: Ints
    closed: Ints


def tally_touches(
    part: Part, patterns: Patterns, effects: Effects, sides: Ints, contested: Bools
) -> Tally:
    """Count the touches of contested cells; `sides` (pcs,) is the side of each instruction."""
    parts = []
    for touches in part.spread(patterns, effects):
        kept = touches.take(contested[touches.cell])
        times = part.rows.times[kept.row]
        side = sides[part.rows.pc[kept.row]]
        warp = part.warp[kept.row]
        parts.append(_merge(Tally(side, kept.cell, warp, times, times * ~kept.opens)))
    names = ("side", "cell", "warp", "every", "closed")
    return _merge(Tally(*(np.concatenate([getattr(p, name) for p in parts]) for name in names)))


def _merge(tally: Tally) -> Tally:
    """Make one row of those that agree in side, cell and warp."""
    key = pack_columns([tally.side, tally.cell, tally.warp])
    order = np.argsort(key, kind="stable")
    counts = _sum_runs(_Counts(key[order], tally.every[order], tally.closed[order]), key[order])
    first = order[find_openings(key[order])]
    return Tally(
        tally.side[first], tally.cell[first], tally.warp[first], counts.every, counts.closed
    )


def count_pairs(tally: Tally, one: int, other: int) -> tuple[Ints, Ints]:
    """Return the cells at which accesses of two sides meet, rising, and how many pairs open there.

    All pairs at a cell, less those within a warp; of a side with itself each pair once.
    """
    sides = _of_side(tally, one), _of_side(tally, other)
    cells, pairs = _multiply(*(_sum_runs(side, side.key // WARPS) for side in sides))
    keys, own = _multiply(*sides)
    np.subtract.at(pairs, np.searchsorted(cells, keys // WARPS), own)
    if one == other:
        pairs //= 2
    return cells[pairs > 0], pairs[pairs > 0]


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Touches by key, (n,) each; keys rise and differ."""

    key: Ints
    every: Ints
    closed: Ints


def _of_side(tally: Tally, side: int) -> _Counts:
    """Return the touches of a side by cell * WARPS + warp."""
    low, high = np.searchsorted(tally.side, [side, side + 1])
    key = tally.cell[low:high] * WARPS + tally.warp[low:high]
    return _Counts(key, tally.every[low:high], tally.closed[low:high])


def _sum_runs(counts: _Counts, key: Ints) -> _Counts:
    """Add up neighbours with the same new key."""
    opens = find_openings(key)
    if not len(opens):
        return counts
    sums = (np.add.reduceat(column, opens) for column in (counts.every, counts.closed))
    return _Counts(key[opens], *sums)


def _multiply(one: _Counts, other: _Counts) -> tuple[Ints, Ints]:
    """Return the keys that both have, and the pairs of touches there of which one opens."""
    keys, here, there = np.intersect1d(one.key, other.key, assume_unique=True, return_indices=True)
    every = one.every[here] * other.every[there]
    return keys, every - one.closed[here] * other.closed[there]
