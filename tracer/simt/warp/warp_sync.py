"""Warp-wide instructions across divergence: two sides of a branch in one shuffle or vote.

A `.sync` instruction waits for all lanes of its mask that have not exited, wherever they come to
one of its kind. A split that comes first leaves its values, and another split of the warp goes on;
when all have come, each lane gets its result in its own side's register. Where nobody is left who
could come, those that wait go on without: an H200 does so, too, when the others have exited. What
is not modelled: lanes that run ahead of where their split joins, and meet others there.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...ptx.warp_sync import Key
from ..ops.lanes import LANES, Array, Bits, Mask
from .barrier import Barriers
from .stack_entry import WarpStacks

_LANE = np.arange(LANES, dtype=np.uint32)


@dataclass(slots=True)
class Arrival:
    """A split of a warp that waits: its lanes, their masks (32,) and values, each (32,); into
    which slots the results go, and what computes them (None: there are none)."""

    key: Key
    lanes: int
    masks: Bits
    values: tuple[Array, ...]
    slots: tuple[int | None, ...]
    compute: Callable[..., tuple[Array, ...]] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What some lanes of a warp get into a slot: `values` has a value a lane."""

    warp: int
    slot: int
    lanes: Mask
    values: Array

    def as_type(self, dtype: np.dtype[Any]) -> Array:
        """Return the bits of the values in a register of another type: `shfl` moves floats, too."""
        if self.values.dtype.kind == "b" or dtype.kind == "b":
            return self.values.astype(dtype)
        return self.values.astype(f"u{dtype.itemsize}").view(dtype)


class WarpSync:
    """Which lanes of each warp wait for others, and what those that have met get."""

    def __init__(self, stacks: WarpStacks, barriers: Barriers) -> None:
        self._stacks = stacks
        self._barriers = barriers
        self.waiting: dict[int, list[Arrival]] = {}
        self.parked: Bits = np.zeros(len(stacks.state), dtype=np.uint32)
        self.outcomes: list[Outcome] = []

    def arrive(self, warp: int, arrival: Arrival) -> None:
        """Let a split wait; its warp has to be settled then."""
        self.waiting.setdefault(warp, []).append(arrival)
        self.parked[warp] |= np.uint32(arrival.lanes)

    def settle(self, warps: NDArray[np.intp]) -> None:
        """Let those go on for whom all have come, and put splits on top that do not wait."""
        for warp in warps[self.parked[warps] != 0].tolist():
            self._release(warp, int(self._stacks.live()[warp]))
            while int(self._stacks.mask[warp]) & int(self.parked[warp]):
                if not self._stacks.yield_to_other(warp, int(self._barriers.parked[warp])):
                    self._release(warp, 0)

    def _release(self, warp: int, members: int) -> None:
        """Let lanes go on whose mask has no others that are `members` and have not come."""
        for key, mask, come in self._sets(warp):
            if mask & members & ~come == 0:
                self._act(warp, key, mask, come)
        arrivals = [arrival for arrival in self.waiting.pop(warp) if arrival.lanes]
        if arrivals:
            self.waiting[warp] = arrivals
        self.parked[warp] = sum(arrival.lanes for arrival in arrivals)

    def _sets(self, warp: int) -> list[tuple[Key, int, int]]:
        """Return kind, mask and lanes of all who wait for the same."""
        lane_sets: dict[tuple[Key, int], int] = {}
        for arrival in self.waiting[warp]:
            for lane in _lanes(arrival.lanes):
                at = arrival.key, int(arrival.masks[lane])
                lane_sets[at] = lane_sets.get(at, 0) | 1 << lane
        return [(key, mask, lanes) for (key, mask), lanes in lane_sets.items()]

    def _act(self, warp: int, key: Key, mask: int, come: int) -> None:
        """Let the lanes `come` act together."""
        there = [a for a in self.waiting[warp] if a.key == key and a.lanes & come]
        lane_masks = [_as_mask(arrival.lanes & come) for arrival in there]
        values = [
            np.select(lane_masks, columns, columns[0])[None]
            for columns in zip(*(arrival.values for arrival in there), strict=True)
        ]
        compute = there[0].compute
        if compute is not None:
            others = np.array([[come & mask]], dtype=np.uint32)
            results = compute(_as_mask(come)[None], others, *values)
            for arrival, lanes in zip(there, lane_masks, strict=True):
                self._give(warp, arrival, lanes, results)
        for arrival in there:
            arrival.lanes &= ~come

    def _give(self, warp: int, arrival: Arrival, lanes: Mask, results: tuple[Array, ...]) -> None:
        for slot, result in zip(arrival.slots, results, strict=True):
            if slot is not None:
                values = np.broadcast_to(result, (1, LANES))[0]
                self.outcomes.append(Outcome(warp, slot, lanes, values))


def _lanes(mask: int) -> Iterator[int]:
    return (lane for lane in range(LANES) if mask >> lane & 1)


def _as_mask(lanes: int) -> Mask:
    mask: Mask = (np.uint32(lanes) >> _LANE & np.uint32(1)).astype(np.bool_)
    return mask
