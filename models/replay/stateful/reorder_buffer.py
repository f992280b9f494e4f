"""Reorder buffer: rows that wait until their wave is complete, and the groups of their counts.

Rows arrive in trace order and leave in issue order. A row is one packed record with a sort key.
Narrow records serve small launches; the buffer widens them once a group, a base or a key does not
fit.
"""

from collections.abc import Iterator
from dataclasses import field
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop import aligned, loops_of
from ....traces.column import signed
from ..histogram.accesses import DeviceReplay
from ..histogram.counting import ANY_BASE, FAR, AccessRows, Bounds, Facts
from ..histogram.hash_table import NONE, Table, enlarge, find, new_table
from ..histogram.histogram import look_up_in
from ..interface.model import Bools, Ints
from ..rows.patterns import Named, Reaches
from ..rows.sites import Sites, Zones
from ..schedule import turns
from ..schedule.place import SCOPE_NAMES
from . import reorder_loops
from .reorder_loops import Head, Seats, Subscriptions, Times, Waiting

WIDE = (("key", "<i8"), ("base", "<i8"), ("pattern", "<u4"), ("group", "<u4"))
NARROW = (("key", "<u4"), ("base", "<u4"), ("pattern", "<u2"), ("group", "<u2"))
OF_MANY = (("key", "<u4"), ("base", "<u4"), ("pattern", "<u4"), ("group", "<u2"), ("none", "<u2"))
OWNER = (("block", "<u4"), ("warp", "<u2"), ("none", "<u2"))
"""The owner fields of a row without a sort key. A row's fields are contiguous, since rows are read
in another order than written. A wide row has 24 bytes, a narrow one 12, or 16 with many
patterns; the owner adds 8.
"""
FEW_BASES, NUMBERS = Bounds(0, (1 << 32) - 1), 1 << 16
"""The range of bases of narrow rows; and the capacity of narrow rows for groups, and
for patterns if these are few.
"""
FEW, MOVED = 1 << 9, 1 << 16
"""The initial capacity for groups, and the rows per step of a compaction."""


_NONE = np.zeros(0, np.uint32)
Columns: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Groups:
    """The groups that counts are added up by: site, zone, scope, and whether the row is mixed.

    `zones` is the number of zones.
    """

    zones: int
    table: Table = field(default_factory=lambda: new_table(FEW))
    near: Ints = field(default_factory=lambda: np.full(len(SCOPE_NAMES), NONE))

    @property
    def is_full(self) -> bool:
        """Whether a new group needs more room."""
        return self.table.size.keys >= len(self.table.first)

    def grow(self) -> None:
        """Double the capacity."""
        self.table = enlarge(self.table, 2 * len(self.table.first))

    def number(self, site: Ints, zone: Ints, scope: Ints) -> Ints:
        """Return the group of each row that is not mixed, (n,); add groups for new keys."""
        columns = np.stack([site * self.zones + zone, scope * 2])
        keys, which = np.unique(columns, axis=1, return_inverse=True)
        self.table = enlarge(self.table, self.table.size.keys + keys.shape[1])
        numbers = [find(self.table, *key) for key in keys.T.tolist()]
        return np.array(numbers, np.int64)[which.reshape(-1)]

    def parts(self) -> tuple[Ints, Ints, Ints, Bools]:
        """Return site, zone and scope of each group, and whether its rows are mixed."""
        keys = slice(self.table.size.keys)
        scope, mixed = np.divmod(self.table.second[keys], 2)
        return *np.divmod(self.table.first[keys], self.zones), scope, mixed.astype(np.bool_)


@dataclass(slots=True)
class ReorderBuffer:
    """The waiting rows of one device, of the `subscribed` spaces; `capacity` is that at first.

    If it `keeps_bursts`, the stores of a burst are issued in the turn of the first.
    """

    track: DeviceReplay
    sites: Sites
    zones: Zones
    subscribed: Bools
    patterns: int
    capacity: int
    keeps_bursts: bool = False
    groups: Groups = field(init=False)
    many: int = 0
    lowest: int = FAR
    widths: turns.Widths = field(init=False)
    _rows: Any = field(init=False)
    _bounds: Bounds = ANY_BASE
    _scopes: NDArray[np.uint8] = field(init=False)

    def __post_init__(self) -> None:
        """Place the blocks, and allocate the rows: pages that are not touched take no memory."""
        order = self.track.order
        self.widths = order.widths or turns.Widths(0, 0, 0, 0)
        layout: Columns = WIDE
        if order.short_widths is not None:
            self.widths, self._bounds = order.short_widths, FEW_BASES
            layout = NARROW if self.patterns <= NUMBERS else OF_MANY
        self._rows = aligned(self.capacity, self._dtype(layout))
        self.groups = Groups(len(self.zones.names))
        self._scopes = self.track.placement.scope(np.arange(self.track.placement.blocks))

    def take(self, batch: pa.RecordBatch, named: Named, reaches: Reaches) -> None:
        """Buffer rows of ACCESSES with named patterns.

        Raises `CutraceError` where a row is in a space that its instruction cannot reach.
        """
        names = ("block", "warp", "step", "pc", "space", "base")
        block, warp, step, pc, space, base = (signed(batch, name) for name in names)
        if self.keeps_bursts:
            step = step - self.sites.lag[pc]
        interval, since = self.track.order.find_intervals(block, warp, step)
        rows = AccessRows(pc, space, base, named.pattern, block)
        times = Times(warp, *(i.astype(np.uint32, copy=False) for i in (interval, since)))
        facts = look_up_in(self.sites, self.zones, reaches, named)
        self._grow(len(pc))
        loops, start = loops_of(reorder_loops, len(pc)), 0
        while start < len(pc):
            # The loop stops at a row that does not fit: the table of groups is full, or the base or
            # the key needs a wide row. Make room, then continue with that row.
            if len(self.groups.table.first) > NUMBERS:
                self._widen()
            start = self._take(loops, rows, times, facts, reaches, start)
            if start < 0:
                self.sites.refuse(int(pc[-1 - start]), int(space[-1 - start]))
            if start < len(pc) and self.groups.is_full:
                self.groups.grow()
            elif start < len(pc):
                self._widen()

    def _take(
        self,
        loops: ModuleType,
        rows: AccessRows,
        times: Times,
        facts: Facts,
        reaches: Reaches,
        start: int,
    ) -> int:
        order, groups, head = self.track.order, self.groups, Head()
        groups.near[:], head.lowest = NONE, self.lowest
        seated = order.wave, order.slot, order.sm, order.issue_order, order.warps
        waiting = self._waiting(slice(self.many, None))
        start = loops.insert_rows(
            rows,
            times,
            facts,
            Subscriptions(self.subscribed, self._scopes),
            Seats(*seated, self.widths),
            self._bounds,
            reorder_loops.Groups(groups.table, groups.near),
            head,
            waiting,
            start,
        )
        self.lowest = head.lowest
        if reaches.are_places:
            waiting.pattern[: head.rows] = reaches.patterns[waiting.pattern[: head.rows]]
        self.many += head.rows
        return start

    def take_samples(
        self, positions: tuple[Ints, Ints, Ints], site: Ints, zone: Ints, number: Ints
    ) -> None:
        """Buffer texel rows; `positions` are block, warp and step, `number` is each row's number
        among all.
        """
        block, warp, step = positions
        interval, since = self.track.order.find_intervals(block, warp, step)
        group = self.groups.number(site, zone, self._scopes[block].astype(np.int64))
        self._widen()
        self._grow(len(block))
        key = self._sort_key(block, warp, interval, since)
        columns = key, number, reorder_loops.SAMPLED, group, block, warp
        for to, column in zip(self._waiting(slice(self.many, None)), columns, strict=True):
            if len(to):
                to[: len(block)] = column
        self.many += len(block)
        self.lowest = min(self.lowest, int(self.track.order.wave[block].min(initial=FAR)))

    def _dtype(self, columns: Columns) -> np.dtype[Any]:
        owner = OWNER if self.track.order.widths is None else ()
        return np.dtype([*columns, *owner])

    def _grow(self, rows: int) -> None:
        if self.many + rows > len(self._rows):
            self._move(max(self.many + rows, 2 * len(self._rows)), self._rows.dtype)

    def _widen(self) -> None:
        """Convert narrow rows to wide ones."""
        if self._bounds != ANY_BASE:
            assert self.track.order.widths is not None
            self._bounds, before, self.widths = ANY_BASE, self.widths, self.track.order.widths
            self._move(len(self._rows), self._dtype(WIDE))
            # A wide key has more bits for the turn; insert them into the keys that are buffered
            # already.
            for start in range(0, self.many, MOVED):
                keys = self._rows["key"][start : min(start + MOVED, self.many)]
                keys[:] = turns.lengthen(keys, before, self.widths.turn - before.turn)

    def _move(self, capacity: int, dtype: np.dtype[Any]) -> None:
        rows, self._rows = self._rows, aligned(capacity, dtype)
        for name in rows.dtype.names:
            if name in Waiting._fields:
                self._rows[name][: self.many] = rows[name][: self.many]

    def _sort_key(self, block: Ints, warp: Ints, interval: Ints, since: Ints) -> Ints:
        """Return the sort key that `reorder_loops.insert_rows` gives a row."""
        order = self.track.order
        if order.widths is None:
            return interval.astype(np.int64) << turns.STEP_BITS | since
        rank = order.issue_order[order.slot[block] * order.warps + warp]
        place = order.wave[block], interval.astype(np.int64), since.astype(np.int64), rank
        return np.asarray(turns.key_of(*place, order.sm[block], self.widths), np.int64)

    def waiting(self) -> Waiting:
        """Return the rows as columns; one that rows do not have is empty."""
        return self._waiting(slice(self.many))

    def _waiting(self, rows: slice) -> Waiting:
        names = self._rows.dtype.names
        return Waiting(*(self._rows[f][rows] if f in names else _NONE for f in Waiting._fields))

    def order(self, wave_limit: int) -> Iterator[Ints]:
        """Yield the indices of the rows of waves before `wave_limit`, in issue order."""
        order, waiting, runs = self.track.order, self.waiting(), None
        # The rows of a wave mostly come in long runs with equal high bits, which are sorted one by
        # one, faster than all at once.
        if order.widths and self.many >= turns.WORTH:
            loops = loops_of(turns, self.many)
            runs = order.order_runs(loops, waiting.key, self.widths, wave_limit)
        if runs is not None:
            yield from runs
            return
        wave = self._waves(waiting)
        ready = np.flatnonzero(wave < wave_limit)
        key = waiting.key[ready]
        if order.widths:
            yield ready[_sort_stably(key)]
            return
        block, warp = (column[ready].astype(np.int64) for column in (waiting.block, waiting.warp))
        since = key & (1 << turns.STEP_BITS) - 1
        yield ready[order.order(block, warp, key >> turns.STEP_BITS, since)]

    def _waves(self, rows: Waiting) -> Ints:
        if self.track.order.widths is None:
            return self.track.order.wave[rows.block]
        return np.asarray(turns.wave_of(rows.key, self.widths))

    def drop(self, wave_limit: int) -> None:
        """Drop the rows of waves before `wave_limit`."""
        if wave_limit == len(self.track.order.ends):
            self.many, self.lowest = 0, FAR
            return
        words = _words(self._rows)
        many, self.many, self.lowest = self.many, 0, FAR
        for start in range(0, many, MOVED):
            # Compact in place: the destination never passes the source, as survivors only move
            # down.
            wave = self._waves(self._waiting(slice(start, min(start + MOVED, many))))
            survivors = start + np.flatnonzero(wave >= wave_limit)
            if len(survivors):
                self.lowest = min(self.lowest, int(wave[survivors - start].min()))
            to = slice(self.many, self.many + len(survivors))
            words[to] = words[survivors]
            self.many = to.stop


def _sort_stably(key: NDArray[np.integer[Any]]) -> Ints:
    """Return the indices of keys in rising order, equal ones in their own."""
    bits = len(key).bit_length()
    if int(key.max(initial=0)).bit_length() + bits > turns.MOST_BITS:
        return np.argsort(key, kind="stable")
    # the index below the key makes all keys different: sorting numbers is faster than an argsort
    indexed = key.astype(np.int64) << bits | np.arange(len(key))
    indexed.sort()
    return indexed & (1 << bits) - 1


def _words(rows: NDArray[np.void]) -> NDArray[np.uint32]:
    """View rows as words, since these copy ten times as fast."""
    return rows.view(np.uint32).reshape(len(rows), -1)
