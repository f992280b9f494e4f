"""First touches: the share of a warp's loads that go to addresses new to the warp.

Concurrent warps load the same data at the same time. The replay runs them one after the other, so
it counts a miss for the first and hits for the others, but all of them wait for that miss. A load
of bytes that a warp of the block has stored before is no first touch. The lowest lane of each row
of accesses represents its warp.
"""

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from ...base.dataclass import dataclass
from ...models.replay.interface.model import Bools, Ints
from ...models.replay.rows.lanes import NONE, count_distinct, sort_distinct, unpack_masks
from ...traces.reader import LaunchTrace
from ...traces.schema import Space
from ...traces.unique import sorted_places, sorted_unique

LONGER = 2
"""Factor of rows from which the longest warps are measured separately."""
PLACE = 6
"""Address bits within 64 bytes, the least that memory returns."""
WHO, PLACES, PATTERNS = 10, 38, 32
"""Bits for the warps of the sampled blocks, for places, and for patterns."""
MOST = 1 << 19
"""Most rows that are read of the sampled blocks."""


WARPS, FEW = 64, 4
"""Stride of warp numbers, above the warps of any block; rows from which patterns show an order."""
ROWS = 1 << 14
"""Rows, evenly spread, that are expanded into lanes."""
LANE_ROWS, SECTOR = 1 << 12, 5
"""Rows in which every lane is checked, and address bits within a sector."""
BANKS, WORD, LINE, LINES = 32, 2, 7, 4
"""Banks of L1, address bits within a word and a line, and lines looked up per cycle: measured
(measured/sm_90.csv, load_4).
"""


@dataclass(frozen=True, slots=True)
class Touches:
    """Access statistics per pc, from rows of some blocks. `firsts`: the share that is new to the
    warp.

    `longest` is the same share for the longest warps alone, where they have more than twice the
    rows of others. `refetched` is the share of rows with a lane that goes to a new sector.
    `passes` are the cycles that L1 needs per row, `apart` the lines per sector: 1 if each sector
    lies in a line of its own. Rows of pcs in `any_order` change their pattern each time. `earlier`
    is the share that is new to the warp, but that a block beside has loaded before it.
    """

    firsts: Mapping[int, float] = field(default_factory=dict)
    longest: Mapping[int, float] = field(default_factory=dict)
    passes: Mapping[int, float] = field(default_factory=dict)
    any_order: frozenset[int] = frozenset()
    refetched: Mapping[int, float] = field(default_factory=dict)
    apart: Mapping[int, float] = field(default_factory=dict)
    earlier: Mapping[int, float] = field(default_factory=dict)


def first_touches(trace: LaunchTrace, block_ids: Ints, longest: Ints) -> Touches:
    """Measure the global accesses of the blocks `block_ids`, and of their `longest` warps."""
    every = _rows(trace, block_ids)
    if every.size == 0:
        return Touches()
    pcs, who = every[:, 0], every[:, 1]
    is_first = _is_first(every, _stores(trace))
    is_longest = np.isin(who, np.arange(len(longest)) * WARPS + longest)
    of_all, of_them = _mean_rows(pcs, who), _mean_rows(pcs[is_longest], who[is_longest])
    is_longest &= np.isin(pcs, [pc for pc in of_them if of_them[pc] > LONGER * of_all[pc]])
    firsts, of_longest = _share_by(pcs, is_first), _share_by(pcs[is_longest], is_first[is_longest])
    some = every[:: max(1, len(every) // ROWS)]
    kinds = np.bincount(sorted_unique((some[:, 0] << PATTERNS) + some[:, 3]) >> PATTERNS)
    times = np.bincount(some[:, 0])
    any_order = np.flatnonzero((times > FEW) & (2 * kinds > times))
    (passes, apart), fresh_shares = _passes(trace, some), _refetched(trace, every)
    in_any_order = frozenset(any_order.tolist())
    earlier = _earlier(trace, int(block_ids[len(block_ids) // 2]))
    return Touches(firsts, of_longest, passes, in_any_order, fresh_shares, apart, earlier)


def _earlier(trace: LaunchTrace, block: int) -> Mapping[int, float]:
    """Return per pc the share of a block's first touches that a block beside it made earlier.

    Blocks that run side by side share the edges of their tiles. A row of the image that is the last
    of one block is the first of the next, which has loaded it by then.
    """
    wide, high, deep = trace.launch.grid
    axes = (1, wide), (wide, high), (wide * high, deep)
    ends = ((step, block // step % extent, extent) for step, extent in axes)
    beside = [
        block + way * step for step, at, extent in ends for way in (-1, 1) if 0 <= at + way < extent
    ]
    block_ids = np.array(sorted([block, *beside]), np.int64)
    rows = _rows(trace, block_ids)
    is_mine = block_ids[rows[:, 1] // WARPS] == block
    if trace.launch.waiting or is_mine.all() or not is_mine.any():
        return {}  # blocks that wait for others are not in step
    nth = _numbers(rows[:, 1])
    _, _, number = sorted_places(_places(rows))
    least = np.full(int(number.max()) + 1, len(rows))
    np.minimum.at(least, number[~is_mine], nth[~is_mine])
    is_earlier = _is_first(rows, _stores(trace)) & (least[number] < nth)
    return _share_by(rows[is_mine, 0], is_earlier[is_mine])


def _rows(trace: LaunchTrace, block_ids: Ints) -> Ints:
    """Return rows of (pc, warp, base, pattern) of these blocks; warp numbers are unique over
    blocks.
    """
    parts, rows = [np.zeros((0, 4), np.int64)], 0
    is_wanted = np.zeros(trace.launch.blocks, np.bool_)
    is_wanted[block_ids] = True
    columns = "block", "warp", "pc", "space", "base", "pattern"
    for batch in trace.access_batches_of(block_ids, columns):
        is_mine = is_wanted[batch["block"].to_numpy()]
        is_mine &= batch["space"].to_numpy() == Space.GLOBAL
        mine = np.flatnonzero(is_mine)
        block, warp, pc, base, pattern = (
            batch[name].to_numpy()[mine].astype(np.int64)
            for name in ("block", "warp", "pc", "base", "pattern")
        )
        who = np.searchsorted(block_ids, block) * WARPS + warp
        parts.append(np.stack((pc, who, base, pattern), axis=1))
        rows += len(mine)
        if rows > MOST:
            break
    return np.concatenate(parts)


def _mean_rows(pcs: Ints, who: Ints) -> Mapping[int, float]:
    """Return the mean rows per pc over the warps that have any."""
    warps = np.bincount(sorted_unique((pcs << WHO) + who) >> WHO)
    rows = np.bincount(pcs)
    return {pc: float(rows[pc] / warps[pc]) for pc in np.flatnonzero(rows).tolist()}


def _share_by(pcs: Ints, is_so: Bools) -> Mapping[int, float]:
    """Return the share of true rows per pc."""
    times = np.bincount(pcs)
    so = np.bincount(pcs[is_so], minlength=len(times))
    return {pc: float(so[pc] / times[pc]) for pc in np.flatnonzero(times).tolist()}


def _stores(trace: LaunchTrace) -> Ints:
    access = trace.instructions()["access"].to_pylist()
    return np.array([pc for pc, kind in enumerate(access) if kind == "store"], np.int64)


def _is_first(rows: Ints, stores: Ints) -> Bools:
    """Return which rows of (pc, warp, base, pattern) touch an address new to their pc and warp.

    An address that a warp of the block stored earlier, by row number within each warp, is not new.
    """
    pcs, who = rows[:, 0], rows[:, 1]
    place = _places(rows)
    is_first = np.zeros(len(rows), np.bool_)
    # One integer key per row: pc, warp (WHO bits), place (PLACES bits).
    _, first, _ = sorted_places(((pcs << WHO) + who << PLACES) + place)
    is_first[first] = True
    is_store = np.isin(pcs, stores)
    # Warps run side by side, so a row's number within its warp approximates time when a load is
    # compared with the block's first store to the place.
    if not is_store.any():
        return is_first
    nth = _numbers(who)
    _, _, number = sorted_places((who // WARPS << PLACES) + place)
    stored = np.full(int(number.max()) + 1, len(rows))
    np.minimum.at(stored, number[is_store], nth[is_store])
    return np.asarray(is_first & (nth <= stored[number]))


def _places(rows: Ints) -> Ints:
    """Return the places of rows (pc, warp, base, pattern)."""
    return rows[:, 2] >> PLACE & (1 << PLACES) - 1


def _numbers(who: Ints) -> Ints:
    """Return each row's number within its warp.

    >>> _numbers(np.array([7, 3, 7, 3, 7])).tolist()
    [0, 0, 1, 1, 2]
    """
    order = np.argsort(who, kind="stable")
    counts = np.bincount(who)
    nth = np.empty(len(who), np.int64)
    nth[order] = np.arange(len(who)) - np.repeat(np.cumsum(counts) - counts, counts)
    return nth


def _refetched(trace: LaunchTrace, rows: Ints) -> Mapping[int, float]:
    """Return per pc the share of rows (pc, warp, base, pattern) with a lane in a new sector.

    Only some warps are checked, each from its first row.
    """
    whole = np.bincount(rows[:, 1]).cumsum()
    last = int(np.searchsorted(whole, LANE_ROWS))
    some = rows[rows[:, 1] <= last][: 2 * LANE_ROWS]
    masks, offsets = trace.pattern_store().take(some[:, 3])
    row, lane = np.nonzero(unpack_masks(masks))
    places = some[row, 2] + offsets[row, lane] >> SECTOR & (1 << PLACES) - 1
    who = (some[row, 0] << WHO) + some[row, 1]
    _, first, _ = sorted_places((who << PLACES) + places)
    is_new = np.zeros(len(some), np.bool_)
    is_new[row[first]] = True
    times = np.bincount(some[:, 0])
    new = np.bincount(some[is_new, 0], minlength=len(times))
    return {pc: float(new[pc] / times[pc]) for pc in np.flatnonzero(times).tolist()}


def _passes(trace: LaunchTrace, rows: Ints) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """Return the mean L1 cycles per pc for rows of (pc, warp, base, pattern), and the lines per
    sector.
    """
    masks, offsets = trace.pattern_store().take(rows[:, 3])
    addresses, active = rows[:, 2, None] + offsets, unpack_masks(masks)
    words = sort_distinct(addresses >> WORD, active)
    # A row takes one pass per distinct word in its fullest bank, or one per LINES lines.
    lines = count_distinct(addresses >> LINE, active)
    banks = np.where(words == NONE, BANKS, words % BANKS)
    number = np.arange(len(rows))[:, None] * (BANKS + 1) + banks
    counted = np.bincount(number.reshape(-1), minlength=len(rows) * (BANKS + 1))
    most = counted.reshape(-1, BANKS + 1)[:, :BANKS].max(axis=1)
    cycles = np.maximum(most, lines / LINES)
    times = np.bincount(rows[:, 0])
    sums = np.bincount(rows[:, 0], cycles)
    sectors = np.bincount(rows[:, 0], count_distinct(addresses >> SECTOR, active))
    apart = np.bincount(rows[:, 0], lines) / np.maximum(sectors, 1)
    pcs = np.flatnonzero(times).tolist()
    return {pc: float(sums[pc] / times[pc]) for pc in pcs}, {pc: float(apart[pc]) for pc in pcs}
