"""Warp-wide `.sync` instructions across divergence: both sides of a branch in one shuffle or vote.

A `.sync` instruction waits for all live lanes of its mask, at whichever instruction of its kind
they arrive. An entry that arrives first deposits its values, and another entry of the warp runs.
When all have arrived, each lane gets its result in the register of its side. If no other lane can
still arrive, the waiting lanes proceed: an H200 does the same when the others have exited. Not
modelled: lanes that run ahead of their reconvergence point and meet others there.

    if (lane < 16) x = shfl(m, ..); else y = shfl(m, ..);   m = all 32 lanes
    one side arrives and is parked; the other side arrives; all 32 exchange; x and y are set
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...ptx.reconvergence import Key
from ..ops.lanes import LANES, Array, Bits, Mask
from .barrier import Barriers
from .stack_entry import WarpStacks

_LANE = np.arange(LANES, dtype=np.uint32)


@dataclass(slots=True)
class Arrival:
    """A waiting entry of a warp: its lanes, their masks (32,) and values, each (32,), the result
    slots, and the function that computes the results (None if there are none).
    """

    key: Key
    lanes: int
    masks: Bits
    values: tuple[Array, ...]
    slots: tuple[int | None, ...]
    compute: Callable[..., tuple[Array, ...]] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of some lanes of a warp for a slot: `values` has one per lane."""

    warp: int
    slot: int
    lanes: Mask
    values: Array

    def as_type(self, dtype: np.dtype[Any]) -> Array:
        """Return the values' bits as another register type: `shfl` moves floats, too."""
        if self.values.dtype.kind == "b" or dtype.kind == "b":
            return self.values.astype(dtype)
        return self.values.astype(f"u{dtype.itemsize}").view(dtype)


class WarpSync:
    """The waiting lanes of each warp, and the results of complete sets."""

    def __init__(self, stacks: WarpStacks, barriers: Barriers) -> None:
        self._stacks = stacks
        self._barriers = barriers
        self.waiting: dict[int, list[Arrival]] = {}
        self.parked: Bits = np.zeros(len(stacks.state), dtype=np.uint32)
        self.outcomes: list[Outcome] = []

    def arrive(self, warp: int, arrival: Arrival) -> None:
        """Add a waiting entry; call `settle` for the warp afterwards."""
        self.waiting.setdefault(warp, []).append(arrival)
        self.parked[warp] |= np.uint32(arrival.lanes)

    def settle(self, warps: NDArray[np.intp]) -> None:
        """Release complete sets, and put entries on top that do not wait."""
        for warp in warps[self.parked[warps] != 0].tolist():
            self._release(warp, int(self._stacks.live()[warp]))
            # The top entry still waits: run another one. If none can run, no lane can arrive any
            # more, so the waiting lanes proceed without the rest of their mask (members 0).
            while int(self._stacks.mask[warp]) & int(self.parked[warp]):
                if not self._stacks.yield_to_other(warp, int(self._barriers.parked[warp])):
                    self._release(warp, 0)

    def _release(self, warp: int, members: int) -> None:
        """Release the waiting sets that lack no lane of `members`."""
        for key, mask, come in self._sets(warp):
            if mask & members & ~come == 0:
                self._act(warp, key, mask, come)
        arrivals = [arrival for arrival in self.waiting.pop(warp) if arrival.lanes]
        if arrivals:
            self.waiting[warp] = arrivals
        self.parked[warp] = sum(arrival.lanes for arrival in arrivals)

    def _sets(self, warp: int) -> list[tuple[Key, int, int]]:
        """Return the key, mask and arrived lanes of each set of lanes with the same key and
        mask.
        """
        lane_sets: dict[tuple[Key, int], int] = {}
        for arrival in self.waiting[warp]:
            for lane in _lanes(arrival.lanes):
                at = arrival.key, int(arrival.masks[lane])
                lane_sets[at] = lane_sets.get(at, 0) | 1 << lane
        return [(key, mask, lanes) for (key, mask), lanes in lane_sets.items()]

    def _act(self, warp: int, key: Key, mask: int, come: int) -> None:
        """Execute the instruction for the lanes `come`, and remove them from their arrivals."""
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
