"""The distinct rows among those in order: the stages in front are asked once about each."""

from collections.abc import Mapping
from dataclasses import field, replace
from math import lcm
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ..compiled import as_lists, compile_if_worth
from ..rows.patterns import Shapes
from ..seam import Batch, Bools, Ints
from ..stages import Flow, Stages
from ..tally.accesses import Track
from ..tally.counting import NONE
from ..tally.pool import Pool, Repeated, extend_pool, join_flows, make_pool
from . import held_rows as plain

ASKED = 1 << 12
"""Distinct rows that the stages in front are asked about at a time."""
POOLED = 1 << 16
POOLED_REQUESTS = 1 << 19
"""Distinct rows, and requests of them, from which on what was passed on for them is forgotten."""


CHOSEN = np.dtype([("shift", "<i8"), ("number", "<i4"), ("group", "<i4")])
"""A row that is sent."""
Room: TypeAlias = tuple[NDArray[np.void], NDArray[np.integer[Any]]]


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Some n rows in order, each CHOSEN: which distinct row it is (none for texels), how far from
    that it lies in bytes, and its group; and its units, (n,), as `units.py` has them.

    `samples` are how many are texels; their shift is their number. `fresh` are how many distinct
    rows are new. `room` is where these rows are.
    """

    rows: NDArray[np.void]
    units: NDArray[np.integer[Any]]
    samples: int
    fresh: int
    room: Room


@dataclass(slots=True)
class DistinctRows:
    """Distinct rows so far, `many`, and what the stages in front pass on for them: `pools`, by the
    name of the stage.

    A row is one of a kind, a pattern, and a place in the period of the stages in front.
    """

    track: Track
    shapes: Shapes
    most: int
    pools: dict[str, Pool] = field(default_factory=dict)
    _period: int = field(init=False)
    _lift: int = field(init=False)
    _slots: NDArray[np.int32] = field(init=False)
    _found: Ints = field(init=False)
    _head: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    _asked: int = 0
    _rooms: list[Room] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make a table with room for `most` rows beyond those that are pooled."""
        self._period = lcm(1, *(wire.period for wire in self.track.front))
        self._lift = self._period * -(-(1 << 32) // self._period)  # offsets reach 2 GiB below it
        self._found = np.empty(POOLED + self.most, np.int64)
        self._slots = np.full(2 << (POOLED + self.most).bit_length(), NONE, np.int32)

    @property
    def width(self) -> int:
        """How many requests a distinct row has, in the mean, at the stage that hears most."""
        requests = max((len(pool.kind) for pool in self.pools.values()), default=0)
        return requests // max(1, self._asked)

    def choose(
        self,
        order: Ints,
        held: tuple[NDArray[np.generic], ...],
        bits: tuple[int, int, int, int],
        units: NDArray[np.integer[Any]],
        windows: tuple[Ints, Ints, Bools],
    ) -> Chosen:
        """Number rows, at most `most`, and ask about new ones; `bits` are those of keys."""
        pooled = sum(len(pool.kind) for pool in self.pools.values())
        if self._head[0] > POOLED or pooled > POOLED_REQUESTS:
            self._slots.fill(NONE)
            self._head[0] = self._asked = 0
            self.pools.clear()
        schedule = self.track.order
        seats = schedule.places, bits, schedule.seating
        room = self._rooms.pop() if self._rooms else self._make_room(units.dtype)
        rows, unit = room[0][: len(order)], room[1][: len(order)]
        told: Any = order, held, (*seats, schedule.warps, self.track.local_bytes)
        loops: ModuleType = compile_if_worth(plain, len(order)) or plain
        if loops is plain:
            told, windows = as_lists((told, windows))
        table = self._slots, self._found, self._head
        moves = len(self.shapes), self._period, self._lift
        made = *(rows[name] for name in plain.MADE), unit
        many, samples = loops.choose(*told, units, windows, table, moves, made)
        fresh = int(many) - self._asked
        self._ask(int(many))
        return Chosen(rows, unit, int(samples), fresh, room)

    def forget(self, chosen: Chosen) -> None:
        """Let others be put where rows are that nobody looks at any more."""
        self._rooms.append(chosen.room)

    def _make_room(self, word: np.dtype[np.integer[Any]]) -> Room:
        """Return room for `most` rows: what is not used of it takes no memory."""
        return np.empty(self.most, CHOSEN), np.empty(self.most, word)

    def _ask(self, many: int) -> None:
        """Ask the stages in front about rows that are new."""
        if many == self._asked:
            return
        passed: dict[str, list[Batch]] = {}
        for start in range(self._asked, many, ASKED):
            rest, phase = np.divmod(self._found[start : min(start + ASKED, many)], self._period)
            kind, pattern = np.divmod(rest, len(self.shapes))
            front = Stages(self.track.front)
            batch = self.shapes.rebuild(self.track.kinds, kind, phase + self._lift, pattern)
            front.run(batch, {}, listeners=self.track.lasting)
            for name, flow in front.passed.items():
                moved = replace(flow, row=flow.row + start - self._asked)
                passed.setdefault(name, []).append(moved)
        for name in {**self.pools, **passed}:  # new rows may pass nothing to one that others reach
            pool = make_pool(join_flows(passed.get(name, [])), many - self._asked)
            self.pools[name] = extend_pool(self.pools.get(name), pool, self._asked)
        self._asked = many


def flows_of(
    pools: Mapping[str, Pool], sampled: Mapping[str, Pool], chosen: Chosen
) -> Mapping[str, Flow]:
    """Return what the stages in front pass on for some rows."""
    rows = chosen.rows
    if not chosen.samples:
        return {name: Repeated(pool, rows) for name, pool in pools.items() if len(pool.kind)}
    flows: dict[str, list[Batch]] = {}
    of_access = np.flatnonzero(rows["number"] >= 0)
    of_sample = np.flatnonzero(rows["number"] < 0)
    for name, pool in pools.items():
        made = pool.repeat(rows["number"][of_access], rows["shift"][of_access], of_access)
        flows.setdefault(name, []).append(made)
    for name, pool in sampled.items():
        made = pool.repeat(rows["shift"][of_sample], np.zeros_like(of_sample), of_sample)
        flows.setdefault(name, []).append(made)
    joined = {name: join_flows(parts) for name, parts in flows.items()}
    return {name: flow for name, flow in joined.items() if flow is not None}
