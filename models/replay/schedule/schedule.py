"""Schedule: the issue order of a launch's accesses on the SMs of a chip.

A trace has the order within each warp only. In this model every SM holds as many blocks as fit, and
takes its next blocks when all of these have ended: a *wave*. The warps of a wave pass the barriers
of their blocks together. Between two barriers there are two policies:

- `round-robin`: every resident warp of every SM issues ISSUE_SLOT instructions, then each its next
  ones. Warps of an SM take turns in the order of blocks and warps, slightly shuffled but
  deterministic. SMs take turns access by access.
- `greedy-oldest`: each SM runs its oldest warp until a barrier or its end, then the next; the
  oldest block first. SMs take turns access by access.

Not modelled: latency. On the chip a warp that waits for memory yields to others, so the real order
is between the two policies. Real blocks do not wait for the end of others; they are replaced one by
one. Where some barriers are for some warps only (`Intervals.refusal`), warps are ordered as if
there were no barriers.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ..interface.model import Ints
from ..interface.options import SCHEDULES
from . import turns
from .barrier_intervals import Intervals, read_intervals
from .episodes import find_openings, pack_columns
from .place import Placement

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace


ISSUE_SLOT = 4
"""Instructions that a warp issues per turn: about as many as it has between two stalls on loads."""

SHORT = 32
"""Bits of a sort key that takes little memory."""
RUN = 16
"""The mean rows per run from which on runs are sorted one by one."""
TOGETHER = 1 << 17
"""Rows of runs that are sorted before they are yielded."""

STRAY = 16
"""The most places by which a warp lags behind those that began with it: the warps among which one
of an SM's four schedulers chooses.
"""


@dataclass(frozen=True, eq=False)
class Schedule:
    """The issue order on one device.

    Per block, (blocks,): its `sm`, its `wave`, and its `slot` among the resident blocks.
    `intervals` is None where the kernel has no barrier, or where barriers do not order warps.
    """

    sm: Ints
    wave: Ints
    slot: Ints
    resident: int
    warps: int
    policy: str
    intervals: Intervals | None

    @property
    def ends(self) -> Ints:
        """(waves,): the end of each wave: all blocks from this one on belong to later waves."""
        last = np.zeros(int(self.wave.max(initial=-1)) + 1, np.int64)
        np.maximum.at(last, self.wave, np.arange(len(self.wave)) + 1)
        return np.maximum.accumulate(last)

    def order(self, block: Ints, warp: Ints, interval: Ints, since: Ints) -> Ints:
        """Return the row indices in issue order, (n,); the order is stable within a step.

        `interval` and `since` are those of `find_intervals`. Columns may have any integer dtype
        that holds them.
        """
        if self.policy == SCHEDULES[0]:
            return _sort(self._take_turns(block, warp, interval, since))
        seat = self.sm[block] * self.resident + self.slot[block]
        solo_order = _sort([self.wave[block], seat, interval, warp, since])
        rank = np.empty(len(block), np.int64)
        rank[solo_order] = _number_within(self.wave[block[solo_order]], self.sm[block[solo_order]])
        return _sort([self.wave[block], rank, self.sm[block]])

    def _take_turns(self, block: Ints, warp: Ints, interval: Ints, since: Ints) -> Iterator[Ints]:
        """Yield the sort columns of rows of warps that take turns, one at a time."""
        yield self.wave[block]
        yield interval
        yield since // ISSUE_SLOT
        yield self.issue_order[self.slot[block] * self.warps + warp]
        yield since % ISSUE_SLOT
        yield self.sm[block]

    @cached_property
    def widths(self) -> turns.Widths | None:
        """The field widths of a sort key (`turns.key_of`), for the largest interval, turn, seat and
        SM.

        None where keys do not give the order, or where a key has too few bits.
        """
        last = int(self.wave.max(initial=0)), self.resident * self.warps - 1
        wave, seat, sm = (number.bit_length() for number in (*last, int(self.sm.max(initial=0))))
        interval = 0 if self.intervals is None else self.intervals.most.bit_length()
        quantum = turns.STEP_BITS - turns.TURN_BITS
        low = seat + turns.TURN_BITS + sm
        has_room = (
            wave + interval + quantum + low <= turns.MOST_BITS
            and low <= turns.MOST_BITS - turns.ROW_BITS
        )
        return (
            turns.Widths(interval, quantum, seat, sm)
            if has_room and self.policy == SCHEDULES[0]
            else None
        )

    @property
    def short_widths(self) -> turns.Widths | None:
        """The widths of a key of SHORT bits; turns get the bits that remain."""
        if self.widths is None:
            return None
        interval, _, seat, sm = self.widths
        wave = int(self.wave.max(initial=0)).bit_length()
        quantum = SHORT - wave - interval - seat - turns.TURN_BITS - sm
        return turns.Widths(interval, quantum, seat, sm) if quantum > 0 else None

    @cached_property
    def seating(self) -> turns.Seating:
        """The layout by which `turns.place_of` decodes the owner of a key."""
        slot, warp = np.divmod(np.argsort(self.issue_order), self.warps)
        return turns.Seating(slot, warp, self.resident, int(self.sm.max(initial=0)) + 1)

    @cached_property
    def places(self) -> Ints:
        """(blocks,): the place of each block, as `turns.place_of` decodes it."""
        return (self.wave * self.resident + self.slot) * self.seating.sms + self.sm

    def by_place(self, of_block: NDArray[Any]) -> NDArray[Any]:
        """Reorder a column of blocks by place; a place without a block holds anything."""
        values = np.zeros(int(self.places.max(initial=-1)) + 1, of_block.dtype)
        values[self.places] = of_block
        return values

    def order_runs(
        self, loops: ModuleType, keys: Ints, widths: turns.Widths, wave_limit: int
    ) -> Iterator[Ints] | None:
        """Yield the issue order of the rows of waves before `wave_limit` by their keys, (n,), about
        TOGETHER at a time; None where the rows do not come in runs.
        """
        low, most = widths.seat + turns.TURN_BITS + widths.sm, len(keys) // RUN
        tops, begins = np.empty((2, most), np.int64)
        if (many := loops.find_runs(keys, low, tops, begins)) > most:
            return None
        tops, begins = tops[:many], begins[:many]
        ends = np.append(begins[1:], len(keys))
        runs = np.argsort(tops, kind="stable")
        runs = runs[tops[runs] >> (widths.interval + widths.turn) < wave_limit]
        memo = turns.Memo(*self._cached_orders, np.empty(2 << low // 2, np.int64))
        return _order_runs(loops, keys, tops[runs], begins[runs], ends[runs], low, memo)

    @cached_property
    def _cached_orders(self) -> tuple[Ints, NDArray[np.int32], NDArray[np.int32]]:
        """The cache of sorted turns that `turns.order_runs` uses."""
        lows, places = np.empty((2, turns.CACHED_ORDERS, turns.LONGEST), np.int32)
        return np.zeros(turns.CACHED_ORDERS, np.int64), lows, places

    @cached_property
    def issue_order(self) -> Ints:
        """(seats,): the turn of each warp that an SM holds."""
        return shuffle(self.resident * self.warps)

    def find_intervals(self, block: Ints, warp: Ints, step: Ints) -> tuple[Ints, Ints]:
        """Return per row the number of barriers before it, and the steps since the last."""
        if self.intervals is None:
            return np.zeros(len(step), np.uint32), step
        block, warp, step = (column.astype(np.int64) for column in (block, warp, step))
        place = self.intervals.locate(block, warp)
        return self.intervals.count(place, step), step - self.intervals.begin(place, step)


def read_barriers(trace: "LaunchTrace") -> Intervals | None:
    """Read the barriers that order the warps of a launch, or return None if none does."""
    if trace.instructions()["barrier"].null_count == len(trace.instructions()):
        return None
    intervals = read_intervals(trace)
    return None if intervals.refusal else intervals


def schedule(
    placement: Placement, resident: int, warps: int, policy: str, intervals: Intervals | None
) -> Schedule:
    """Assign the blocks of a launch to SMs, `resident` at once."""
    sm = placement.sm(np.arange(placement.blocks))
    order = np.argsort(sm, kind="stable")
    position = np.empty_like(sm)
    position[order] = _number_within(sm[order])
    occupancy = max(1, resident)
    return Schedule(
        sm, position // occupancy, position % occupancy, occupancy, warps, policy, intervals
    )


def shuffle(seats: int) -> Ints:
    """Return a permutation of `seats` turns, (seats,), in which each is at most STRAY places late.
    It is pseudo-random and the same on every machine.
    """
    mixed = np.arange(seats, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    late = (mixed * np.uint64(0xD6E8FEB86659FD93) >> np.uint64(40)).astype(np.int64)
    order = np.argsort((np.arange(seats) << 24) + STRAY * late, kind="stable")
    ranks = np.empty(seats, np.int64)
    ranks[order] = np.arange(seats)
    return ranks


def _order_runs(
    loops: ModuleType, keys: Ints, tops: Ints, begins: Ints, ends: Ints, low: int, memo: Any
) -> Iterator[Ints]:
    """Yield the order of runs, those with the same top together, about TOGETHER rows at a time."""
    opens = np.flatnonzero(np.diff(tops, prepend=-1))
    before = np.cumsum(ends - begins) - (ends - begins)
    cuts = opens[np.flatnonzero(np.diff(before[opens] // TOGETHER, prepend=-1))]
    sizes = np.add.reduceat(ends - begins, cuts) if len(cuts) else cuts
    spare = tuple(np.empty((3, int(sizes.max(initial=0))), np.int64))
    for (first, last), size in zip(
        pairwise([*cuts.tolist(), len(tops)]), sizes.tolist(), strict=True
    ):
        runs, order = slice(first, last), np.empty(size, np.int64)
        loops.order_runs(keys, tops[runs], begins[runs], ends[runs], low, order, spare, memo)
        yield order


def _sort(columns: Iterable[Ints]) -> Ints:
    return np.argsort(pack_columns(columns), kind="stable")


def _number_within(*columns: Ints) -> Ints:
    """Number the rows within each run of equal rows from 0, (n,)."""
    opens, many = find_openings(*columns), len(columns[0])
    return np.arange(many) - np.repeat(opens, np.diff(opens, append=many))
