"""Rows that wait for the others of their wave, and the groups that counts are added up by."""

from collections.abc import Iterator
from dataclasses import field
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ....traces.table.column import signed
from ....traces.table.unique import sorted_places
from ..compiled import aligned, as_lists, compile_if_worth
from ..rows.arrays import Zones
from ..rows.reach import Named, Reaches
from ..rows.sites import Sites
from ..schedule import turns
from ..schedule.place import SCOPE_NAMES
from ..seam import Bools, Ints
from ..tally.accesses import Track
from ..tally.counting import FAR, NONE
from . import held_rows as plain

ROW = np.dtype(
    [
        *(("base", "<i8"), ("pattern", "<u4"), ("group", "<u4")),
        *(("block", "<u4"), ("warp", "<u2"), ("none", "<u2")),
    ]
)
"""A row that is held: 24 bytes that lie together, since rows are taken in another order."""
FEW, MOVED = 1 << 9, 1 << 16
"""Groups that there is room for at first, and rows that are moved up at a time."""


@dataclass(slots=True)
class Groups:
    """What rows are told apart by when counts are added up: site, zone, scope, and whether mixed.

    `zones` is how many there are; `keys` (many,) are those of the groups so far, in front of room.
    """

    zones: int
    slots: Ints = field(default_factory=lambda: np.full(2 * FEW, NONE))
    keys: Ints = field(default_factory=lambda: np.zeros(FEW, np.int64))
    near: Ints = field(default_factory=lambda: np.full(len(SCOPE_NAMES), NONE))
    many: int = 0

    def grow(self) -> None:
        """Make room for twice as many."""
        keys = self.keys[: self.many]
        self.slots = np.full(2 * len(self.slots), NONE)
        self.keys = np.zeros(2 * len(self.keys), np.int64)
        self.many = 0
        self.number(keys)

    def number(self, keys: Ints) -> Ints:
        """Return the number of the group of each key, (n,)."""
        distinct, _, which = sorted_places(keys)
        while self.many + len(distinct) > len(self.keys):
            self.grow()
        table = self.slots.tolist(), self.keys.tolist(), self.near.tolist()
        head = [self.many]
        found = [plain.find_group(table, head, key) for key in distinct.tolist()]
        self.slots, self.keys, self.near = map(np.array, table)
        self.many = head[0]
        return np.array(found, np.int64)[which]

    def key(self, site: Ints, zone: Ints, scope: Ints, mixed: Bools) -> Ints:
        """Return the key of each row, (n,)."""
        return ((site * self.zones + zone) * len(SCOPE_NAMES) + scope) * 2 + mixed

    def parts(self) -> tuple[Ints, Ints, Ints, Bools]:
        """Return site, zone and scope of each group, and whether its rows are mixed."""
        rest, mixed = np.divmod(self.keys[: self.many], 2)
        rest, scope = np.divmod(rest, len(SCOPE_NAMES))
        return *np.divmod(rest, self.zones), scope, mixed.astype(np.bool_)


@dataclass(slots=True)
class Held:
    """The rows of one device that wait: those of spaces that are `heard`, mostly `room` at once."""

    track: Track
    sites: Sites
    zones: Zones
    heard: Bools
    room: int
    groups: Groups = field(init=False)
    many: int = 0
    lowest: int = FAR
    _rows: Any = field(init=False)
    _keys: Ints = field(init=False)
    _seated: tuple[Ints, ...] = field(init=False)
    _scopes: NDArray[np.uint8] = field(init=False)
    _cuts: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Place the blocks, and have room: what is not used of it takes no memory."""
        order = self.track.order
        self._rows = aligned(self.room, ROW)
        self._keys = np.empty(self.room, np.int64)
        self._seated = order.wave, order.slot, order.sm, order.turns
        self.groups = Groups(len(self.zones.names))
        self._scopes = self.track.placement.scope(np.arange(self.track.placement.blocks))
        self._cuts = np.append(self.zones.cuts, FAR)

    def take(self, batch: pa.RecordBatch, named: Named, reaches: Reaches) -> None:
        """Hold rows of ACCESSES, whose patterns are known.

        Raises `CutraceError` where a row lies in a space that its instruction cannot reach.
        """
        names = ("block", "warp", "step", "pc", "space", "base")
        block, warp, step, pc, space, base = (signed(batch, name) for name in names)
        intervals = self.track.order.find_intervals(block, warp, step)
        rows = block, warp, *(i.astype(np.uint32, copy=False) for i in intervals), pc, space, base
        self._make_room(len(pc))
        loops, start = compile_if_worth(plain, len(pc)) or plain, 0
        while start < len(pc):
            start = self._take(loops, (*rows, named[0]), named, reaches, start)
            if start < 0:
                self.sites.refuse(int(pc[-1 - start]), int(space[-1 - start]))
            if start < len(pc):
                self.groups.grow()

    def _take(
        self, loops: ModuleType, rows: Any, named: Named, reaches: Reaches, start: int
    ) -> int:
        groups = self.groups
        held = tuple(self._rows[name][self.many :] for name in plain.FIELDS)
        head = np.array([groups.many, 0, self.lowest])
        order = self.track.order
        sites = self.sites.kind, self.sites.width
        told: Any = rows, named[1:], sites, reaches.ends, self._cuts, self._scopes, self.heard
        told = *told, self._seated, (*(order.widths or (0, 0, 0, 0)), order.warps)
        groups.near[:] = NONE
        table = groups.slots, groups.keys, groups.near
        if loops is plain:
            told = as_lists(told)
        start = int(loops.hold(told, table, head, held, self._keys[self.many :], start))
        groups.many, self.lowest = int(head[0]), int(head[2])
        if reaches.are_places:
            pattern = held[plain.FIELDS.index("pattern")][: int(head[1])]
            pattern[:] = reaches.patterns[pattern]
        self.many += int(head[1])
        return start

    def take_samples(
        self, whose: tuple[Ints, Ints, Ints], site: Ints, zone: Ints, number: Ints
    ) -> None:
        """Hold rows of texels; `whose` are block, warp and step, `number` each row's among all."""
        block, warp, step = whose
        interval, since = self.track.order.find_intervals(block, warp, step)
        alone = np.zeros(len(block), np.bool_)
        key = self.groups.key(site, zone, self._scopes[block].astype(np.int64), alone)
        self._make_room(len(block))
        room = self._rows[self.many : self.many + len(block)]
        columns = block, warp, number, plain.SAMPLED, self.groups.number(key)
        for name, column in zip(plain.FIELDS, columns, strict=True):
            room[name] = column
        self._keys[self.many :][: len(block)] = self._sorted_by(block, warp, interval, since)
        self.many += len(block)
        self.lowest = min(self.lowest, int(block.min(initial=FAR)))

    def _make_room(self, rows: int) -> None:
        if self.many + rows > len(self._rows):
            larger = aligned(max(self.many + rows, 2 * len(self._rows)), ROW)
            _words(larger)[: self.many] = _words(self._rows)[: self.many]
            self._rows = larger
            more = np.empty(len(larger) - self.many, np.int64)
            self._keys = np.append(self._keys[: self.many], more)

    def _sorted_by(self, block: Ints, warp: Ints, interval: Ints, since: Ints) -> Ints:
        """Return what `held_rows.hold` says in `keys`."""
        order = self.track.order
        if order.widths is None:
            return interval.astype(np.int64) << turns.STEP_BITS | since
        turn = order.turns[order.slot[block] * order.warps + warp]
        place = order.wave[block], interval.astype(np.int64), since.astype(np.int64), turn
        return np.asarray(turns.key_of(*place, order.sm[block], order.widths), np.int64)

    def columns(self) -> tuple[NDArray[Any], ...]:
        """Return the rows, a column for each of FIELDS."""
        return tuple(self._rows[name][: self.many] for name in plain.FIELDS)

    def order(self, done: int) -> Iterator[Ints]:
        """Yield the numbers of the rows of waves before `done`, in the order they happen in."""
        order, keys = self.track.order, self._keys[: self.many]
        loops = compile_if_worth(turns, self.many)
        if loops is not None and order.widths:
            found = order.order_runs(loops, keys, done)
            if found is not None:
                yield from found
                return
        block, warp = self.columns()[:2]
        rows = block, warp, *self._intervals(keys)
        alone = None if loops is None else order.order_compiled(loops, rows, done)
        if alone is None:
            ready = np.flatnonzero(order.wave[block] < done)
            alone = ready[order.order(*(column[ready].astype(np.int64) for column in rows))]
        yield alone

    def _intervals(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the interval of each row, and the instructions since it began."""
        widths = self.track.order.widths
        if widths is None:
            return keys >> turns.STEP_BITS, keys & (1 << turns.STEP_BITS) - 1
        return turns.parts_of(keys, widths)

    def drop(self, done: int) -> None:
        """Hold the rows of waves before `done` no longer."""
        if done == len(self.track.order.ends):
            self.many, self.lowest = 0, FAR
            return
        wave, words, blocks = self.track.order.wave, _words(self._rows), self._rows["block"]
        many, self.many, self.lowest = self.many, 0, FAR
        for start in range(0, many, MOVED):
            block = blocks[start : min(start + MOVED, many)]
            kept = start + np.flatnonzero(wave[block] >= done)
            if len(kept):
                self.lowest = min(self.lowest, int(blocks[kept].min()))
            to = slice(self.many, self.many + len(kept))
            words[to], self._keys[to] = words[kept], self._keys[kept]
            self.many = to.stop


def _words(rows: NDArray[np.void]) -> Ints:
    """Return rows as words, which are copied ten times as fast."""
    return rows.view(np.int64).reshape(len(rows), -1)
