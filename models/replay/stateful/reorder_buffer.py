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
from ....jit.loop import aligned, as_lists, compile_if_worth
from ....traces.column import signed
from ....traces.unique import sorted_places
from ..histogram.accesses import DeviceReplay
from ..histogram.counting import FAR, NONE
from ..interface.model import Bools, Ints
from ..rows.patterns import Named, Reaches
from ..rows.sites import Sites, Zones
from ..schedule import turns
from ..schedule.place import SCOPE_NAMES
from . import reorder_loops

WIDE = (("key", "<i8"), ("base", "<i8"), ("pattern", "<u4"), ("group", "<u4"))
NARROW = (("key", "<u4"), ("base", "<u4"), ("pattern", "<u2"), ("group", "<u2"))
OF_MANY = (("key", "<u4"), ("base", "<u4"), ("pattern", "<u4"), ("group", "<u2"), ("none", "<u2"))
OWNER = (("block", "<u4"), ("warp", "<u2"), ("none", "<u2"))
"""The owner fields of a row without a sort key. A row's fields are contiguous, since rows are read
in another order than written. A wide row has 24 bytes, a narrow one 12, or 16 with many
patterns; the owner adds 8.
"""
FEW_BASES, ALL_BASES, NUMBERS = (0, (1 << 32) - 1), (-(1 << 63), (1 << 63) - 1), 1 << 16
"""The range of bases of narrow and of wide rows; and the capacity of narrow rows for groups, and
for patterns if these are few.
"""
FEW, MOVED = 1 << 9, 1 << 16
"""The initial capacity for groups, and the rows per step of a compaction."""


_NONE = np.zeros(0, np.uint32)
Columns: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Groups:
    """The groups that counts are added up by: site, zone, scope, and whether the row is mixed.

    `zones` is the number of zones. The first `many` of `keys` are in use.
    """

    zones: int
    slots: Ints = field(default_factory=lambda: np.full(2 * FEW, NONE))
    keys: Ints = field(default_factory=lambda: np.zeros(FEW, np.int64))
    near: Ints = field(default_factory=lambda: np.full(len(SCOPE_NAMES), NONE))
    many: int = 0

    @property
    def is_full(self) -> bool:
        """Whether a new group needs more room."""
        return self.many >= len(self.keys)

    def grow(self) -> None:
        """Double the capacity."""
        keys = self.keys[: self.many]
        self.slots = np.full(2 * len(self.slots), NONE)
        self.keys = np.zeros(2 * len(self.keys), np.int64)
        self.many = 0
        self.number(keys)

    def number(self, keys: Ints) -> Ints:
        """Return the group of each key, (n,); add groups for new keys."""
        distinct, _, which = sorted_places(keys)
        while self.many + len(distinct) > len(self.keys):
            self.grow()
        table = self.slots.tolist(), self.keys.tolist(), self.near.tolist()
        head = [self.many]
        group_numbers = [reorder_loops.find_group(table, head, key) for key in distinct.tolist()]
        self.slots, self.keys, self.near = map(np.array, table)
        self.many = head[0]
        return np.array(group_numbers, np.int64)[which]

    def key(self, site: Ints, zone: Ints, scope: Ints, mixed: Bools) -> Ints:
        """Return the key of each row, (n,)."""
        return ((site * self.zones + zone) * len(SCOPE_NAMES) + scope) * 2 + mixed

    def parts(self) -> tuple[Ints, Ints, Ints, Bools]:
        """Return site, zone and scope of each group, and whether its rows are mixed."""
        quotient, mixed = np.divmod(self.keys[: self.many], 2)
        quotient, scope = np.divmod(quotient, len(SCOPE_NAMES))
        return *np.divmod(quotient, self.zones), scope, mixed.astype(np.bool_)


@dataclass(slots=True)
class ReorderBuffer:
    """The waiting rows of one device, of the `subscribed` spaces; `capacity` is that at first."""

    track: DeviceReplay
    sites: Sites
    zones: Zones
    subscribed: Bools
    patterns: int
    capacity: int
    groups: Groups = field(init=False)
    many: int = 0
    lowest: int = FAR
    bits: tuple[int, int, int, int] = field(init=False)
    _rows: Any = field(init=False)
    _bounds: tuple[int, int] = ALL_BASES
    _seated: tuple[Ints, ...] = field(init=False)
    _scopes: NDArray[np.uint8] = field(init=False)
    _cuts: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Place the blocks, and allocate the rows: pages that are not touched take no memory."""
        order = self.track.order
        self.bits = order.widths or (0, 0, 0, 0)
        layout: Columns = WIDE
        if order.short_widths is not None:
            self.bits, self._bounds = order.short_widths, FEW_BASES
            layout = NARROW if self.patterns <= NUMBERS else OF_MANY
        self._rows = aligned(self.capacity, self._dtype(layout))
        self._seated = order.wave, order.slot, order.sm, order.issue_order
        self.groups = Groups(len(self.zones.names))
        self._scopes = self.track.placement.scope(np.arange(self.track.placement.blocks))
        self._cuts = np.append(self.zones.cuts, FAR)

    def take(self, batch: pa.RecordBatch, named: Named, reaches: Reaches) -> None:
        """Buffer rows of ACCESSES with named patterns.

        Raises `CutraceError` where a row is in a space that its instruction cannot reach.
        """
        names = ("block", "warp", "step", "pc", "space", "base")
        block, warp, step, pc, space, base = (signed(batch, name) for name in names)
        intervals = self.track.order.find_intervals(block, warp, step)
        rows = block, warp, *(i.astype(np.uint32, copy=False) for i in intervals), pc, space, base
        self._grow(len(pc))
        loops, start = compile_if_worth(reorder_loops, len(pc)) or reorder_loops, 0
        while start < len(pc):
            # The loop stops at a row that does not fit: the table of groups is full, or the base or
            # the key needs a wide row. Make room, then continue with that row.
            if len(self.groups.keys) > NUMBERS:
                self._widen()
            start = self._take(loops, (*rows, named[0]), named, reaches, start)
            if start < 0:
                self.sites.refuse(int(pc[-1 - start]), int(space[-1 - start]))
            if start < len(pc) and self.groups.is_full:
                self.groups.grow()
            elif start < len(pc):
                self._widen()

    def _take(
        self, loops: ModuleType, rows: Any, named: Named, reaches: Reaches, start: int
    ) -> int:
        groups = self.groups
        columns = self._columns(slice(self.many, None))
        head = np.array([groups.many, 0, self.lowest])
        sites = self.sites.kind, self.sites.width
        order = self.track.order
        inputs: Any = (
            rows,
            named[1:],
            sites,
            reaches.ends,
            self._cuts,
            self._scopes,
            self.subscribed,
        )
        inputs = *inputs, self._seated, (*self.bits, order.warps), self._bounds
        groups.near[:] = NONE
        table = groups.slots, groups.keys, groups.near
        if loops is reorder_loops:
            inputs = as_lists(inputs)
        start = int(loops.insert_rows(inputs, table, head, columns, start))
        groups.many, self.lowest = int(head[0]), int(head[2])
        if reaches.are_places:
            pattern = columns[reorder_loops.FIELDS.index("pattern")][: int(head[1])]
            pattern[:] = reaches.patterns[pattern]
        self.many += int(head[1])
        return start

    def take_samples(
        self, positions: tuple[Ints, Ints, Ints], site: Ints, zone: Ints, number: Ints
    ) -> None:
        """Buffer texel rows; `positions` are block, warp and step, `number` is each row's number
        among all.
        """
        block, warp, step = positions
        interval, since = self.track.order.find_intervals(block, warp, step)
        is_mixed = np.zeros(len(block), np.bool_)
        key = self.groups.key(site, zone, self._scopes[block].astype(np.int64), is_mixed)
        self._widen()
        self._grow(len(block))
        by = self._sorted_by(block, warp, interval, since)
        columns = by, number, reorder_loops.SAMPLED, self.groups.number(key), block, warp
        for to, column in zip(self._columns(slice(self.many, None)), columns, strict=True):
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
        if self._bounds != ALL_BASES:
            assert self.track.order.widths is not None
            self._bounds, before, self.bits = ALL_BASES, self.bits, self.track.order.widths
            self._move(len(self._rows), self._dtype(WIDE))
            # A wide key has more bits for the turn; insert them into the keys that are buffered
            # already.
            for start in range(0, self.many, MOVED):
                keys = self._rows["key"][start : min(start + MOVED, self.many)]
                keys[:] = turns.lengthen(keys, before, self.bits[1] - before[1])

    def _move(self, capacity: int, dtype: np.dtype[Any]) -> None:
        rows, self._rows = self._rows, aligned(capacity, dtype)
        for name in rows.dtype.names:
            if name in reorder_loops.FIELDS:
                self._rows[name][: self.many] = rows[name][: self.many]

    def _sorted_by(self, block: Ints, warp: Ints, interval: Ints, since: Ints) -> Ints:
        """Return the sort key that `reorder_loops.insert_rows` gives a row."""
        order = self.track.order
        if order.widths is None:
            return interval.astype(np.int64) << turns.STEP_BITS | since
        rank = order.issue_order[order.slot[block] * order.warps + warp]
        place = order.wave[block], interval.astype(np.int64), since.astype(np.int64), rank
        return np.asarray(turns.key_of(*place, order.sm[block], self.bits), np.int64)

    def columns(self) -> tuple[NDArray[Any], ...]:
        """Return the rows as columns of FIELDS; a field that rows do not have is empty."""
        return self._columns(slice(self.many))

    def _columns(self, rows: slice) -> tuple[NDArray[Any], ...]:
        names = self._rows.dtype.names
        return tuple(self._rows[f][rows] if f in names else _NONE for f in reorder_loops.FIELDS)

    def order(self, wave_limit: int) -> Iterator[Ints]:
        """Yield the indices of the rows of waves before `wave_limit`, in issue order."""
        order, keys = self.track.order, self.columns()[0]
        loops = compile_if_worth(turns, self.many)
        # First choice: the rows of a wave mostly come in long runs with equal high bits, which are
        # sorted one by one. Else a counting sort over all rows; few rows are sorted by NumPy.
        if loops is not None and order.widths:
            runs = order.order_runs(loops, keys, self.bits, wave_limit)
            if runs is not None:
                yield from runs
                return
        rows = self._places()
        row_order = None if loops is None else order.order_compiled(loops, rows, wave_limit)
        if row_order is None:
            ready = np.flatnonzero(order.wave[rows[0]] < wave_limit)
            row_order = ready[order.order(*(column[ready].astype(np.int64) for column in rows))]
        yield row_order

    def _places(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return per row its block, warp and interval, and the instructions since that began."""
        order, (keys, *_, block, warp) = self.track.order, self.columns()
        if order.widths is None:
            return block, warp, keys >> turns.STEP_BITS, keys & (1 << turns.STEP_BITS) - 1
        key_layout = keys, self.bits, order.seating
        block = order.by_place(np.arange(len(order.places)))[turns.place_of(*key_layout)]
        warp = turns.warp_of(*key_layout)
        return block, warp, *turns.parts_of(keys, self.bits)

    def drop(self, wave_limit: int) -> None:
        """Drop the rows of waves before `wave_limit`."""
        if wave_limit == len(self.track.order.ends):
            self.many, self.lowest = 0, FAR
            return
        order, words = self.track.order, _words(self._rows)
        many, self.many, self.lowest = self.many, 0, FAR
        for start in range(0, many, MOVED):
            # Compact in place: the destination never passes the source, as survivors only move
            # down.
            keys, *_, block, _ = self._columns(slice(start, min(start + MOVED, many)))
            wave = turns.wave_of(keys, self.bits) if order.widths else order.wave[block]
            survivors = start + np.flatnonzero(wave >= wave_limit)
            if len(survivors):
                self.lowest = min(self.lowest, int(wave[survivors - start].min()))
            to = slice(self.many, self.many + len(survivors))
            words[to] = words[survivors]
            self.many = to.stop


def _words(rows: NDArray[np.void]) -> NDArray[np.uint32]:
    """View rows as words, since these copy ten times as fast."""
    return rows.view(np.uint32).reshape(len(rows), -1)
