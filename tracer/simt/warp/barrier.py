"""Barriers of thread blocks and clusters, and warp-wide `.sync` instructions across divergence.

A barrier (PTX ISA 9.7.13.1, bar) waits for lanes, not only for warps. Where a warp has diverged,
the entry that arrives first is parked and its siblings run on to the barrier. Lanes that have
exited count as arrived.

A `.sync` instruction (`WarpSync`) waits for all live lanes of its mask, at whichever instruction of
its kind they arrive. An entry that arrives first deposits its values, and another entry of the warp
runs. When all have arrived, each lane gets its result in the register of its side. If no other lane
can still arrive, the waiting lanes proceed: an H200 does the same when the others have exited. Not
modelled: lanes that run ahead of their reconvergence point and meet others there.

    if (lane < 16) x = shfl(m, ..); else y = shfl(m, ..);   m = all 32 lanes
    one side arrives and is parked; the other side arrives; all 32 exchange; x and y are set
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ..ops.lanes import LANES, Array, Bits, Mask, unpack
from .schedule import EXITED, READY, WAITING
from .stack_entry import WarpStacks

CLUSTER = -2
"""The barrier number that stands for the cluster's barrier."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """The reduction of a `bar.red`: `popc`, `and` or `or` of the lanes' votes, and its result
    slot.
    """

    slot: int
    operation: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """An arrival at a barrier: its number, thread count (0: the whole block), the next block
    `after`, the instruction `pc`, and whether the warp blocks there (`bar.arrive` does not).
    """

    number: int
    threads: int
    after: int
    pc: int
    blocking: bool = True
    reduction: Reduction | None = None


class Barriers:
    """Barrier state of the W warps of a wave: what each waits for, its parked lanes and its votes.

    `_passed` counts, by (thread block, barrier), the threads that arrived without waiting.
    """

    def __init__(self, stacks: WarpStacks, blocks_a_cluster: int) -> None:
        warps = len(stacks.state)
        self.cluster = ClusterBarrier(stacks, self, blocks_a_cluster)
        self._stacks = stacks
        self._waits = 0
        self._pc: NDArray[np.int32] = np.zeros(warps, dtype=np.int32)
        self._reductions: dict[int, Reduction] = {}
        self._number: NDArray[np.int32] = np.full(warps, -1, dtype=np.int32)
        self._threads: NDArray[np.int32] = np.zeros(warps, dtype=np.int32)
        self._passed: Counter[tuple[int, int]] = Counter()
        self._has_parked = False
        self.parked = stacks.parked
        self.votes: Bits = np.zeros(warps, dtype=np.uint32)
        self.outcomes: list[tuple[int, int, int]] = []
        """Results of votes, to be stored into registers: warp, slot, value."""

    def arrive(self, warps: NDArray[np.intp], arrival: Arrival) -> None:
        """Block the top entries of `warps` at a barrier; for `bar.arrive` only count them and go
        on.
        """
        stacks = self._stacks
        live = stacks.live()
        partial = stacks.mask[warps] != live[warps]
        if not arrival.blocking:
            for block in warps // stacks.warps_a_block:
                self._passed[int(block), arrival.number] += LANES
            stacks.jump(warps, arrival.after)
            self.release(warps)
            return
        stacks.block[warps] = arrival.after
        self._number[warps], self._threads[warps] = arrival.number, arrival.threads
        self._pc[warps] = arrival.pc
        if arrival.reduction is not None:
            self._reductions.update(dict.fromkeys(warps.tolist(), arrival.reduction))
        # A diverged warp runs its other entries first; it blocks when all its live lanes are here.
        split_warps = [w for w in warps[partial] if self._yield_to_other(int(w), int(live[w]))]
        self._block(np.setdiff1d(warps, split_warps, assume_unique=True) if split_warps else warps)

    def hold(self, warps: NDArray[np.intp], after: int, pc: int) -> None:
        """Block warps at the cluster's barrier; they continue at `after`."""
        self._stacks.block[warps] = after
        self._number[warps], self._threads[warps], self._pc[warps] = CLUSTER, 0, pc
        self._stacks.state[warps] = WAITING
        self._waits += len(warps)

    def release_warps(self, warps: NDArray[np.intp]) -> None:
        """Release warps that wait at the cluster's barrier."""
        self._free(warps)

    def _block(self, warps: NDArray[np.intp]) -> None:
        self._stacks.state[warps] = WAITING
        self._waits += len(warps)
        self.release(warps)

    def resume(self, warps: NDArray[np.intp]) -> None:
        """Re-block warps with a parked entry on top, after their other entries are gone."""
        if self._has_parked and warps.size:
            stacks = self._stacks
            parked = (stacks.mask[warps] & self.parked[warps]) != 0
            self._block(warps[parked & (stacks.state[warps] == READY)])

    def _yield_to_other(self, warp: int, live: int) -> bool:
        """Park the top entry, and put another entry of the warp on top; False if all live lanes are
        here.
        """
        self._has_parked = True
        self.parked[warp] |= self._stacks.mask[warp]
        if int(self.parked[warp]) == live:
            self._stacks.merge_siblings(warp, 0)
            return False
        return self._stacks.yield_to_other(warp, int(self.parked[warp]))

    def release(self, warps: NDArray[np.intp]) -> None:
        """Release the warps of all complete barriers in the blocks of `warps`; exited warps count
        as arrived.
        """
        if not self._waits:
            return
        self.cluster.release()
        stacks = self._stacks
        a_block = stacks.warps_a_block
        blocks = _distinct_blocks(warps // a_block)
        state = stacks.state.reshape(-1, a_block)[blocks]
        waiting = state == WAITING
        if not waiting.any():
            return
        numbers = self._number.reshape(-1, a_block)[blocks]
        threads = self._threads.reshape(-1, a_block)[blocks]
        ended = (state == EXITED).sum(axis=1)
        for number in set(numbers[waiting].tolist()) - {CLUSTER}:
            here = waiting & (numbers == number)
            arrived = here.sum(axis=1)
            passed = self._passed_by(blocks, number)
            needed = np.where(here, threads, 0).max(axis=1)
            enough = np.where(
                needed > 0, LANES * arrived + passed >= needed, arrived + ended == a_block
            )
            complete = (arrived > 0) & enough
            for block in blocks[complete].tolist() if self._passed else ():
                self._passed.pop((block, number), None)
            members = blocks[complete, None] * a_block + np.arange(a_block)
            self._free(members[here[complete]])

    def _passed_by(self, blocks: NDArray[np.intp], number: int) -> NDArray[np.int64] | int:
        """Return the threads of each block that arrived at a barrier without waiting."""
        if not self._passed:
            return 0
        return np.array([self._passed[block, number] for block in blocks.tolist()])

    def _free(self, warps: NDArray[np.intp]) -> None:
        if not warps.size:
            return
        stacks = self._stacks
        stacks.state[warps] = READY
        self._waits -= len(warps)
        for warp in warps.tolist() if self._reductions else ():
            reduction = self._reductions.pop(warp, None)
            if reduction is not None:
                self._reduce(warps, warp, reduction)
        self.parked[warps] = 0
        self.votes[warps] = 0
        stacks.pop(warps)

    def _reduce(self, freed: NDArray[np.intp], warp: int, reduction: Reduction) -> None:
        """Reduce the votes of a block's warps, for one of the warps."""
        a_block = self._stacks.warps_a_block
        block = freed[freed // a_block == warp // a_block]
        votes, live = self.votes[block], self._stacks.live()[block]
        outcome = {
            "popc": int(np.bitwise_count(votes).sum()),
            "and": int((votes == live).all()),
            "or": int(votes.any()),
        }[reduction.operation]
        self.outcomes.append((warp, reduction.slot, outcome))

    def require_done(
        self, name: str, source_line: Callable[[int], str], numbers: NDArray[np.int64]
    ) -> None:
        """Raise KernelFault if warps wait at barriers that cannot complete.

        `name` is the kernel's name in messages, `source_line` names that of a pc; `numbers`
        (blocks,) are the blocks' numbers in the grid.
        """
        stuck = np.flatnonzero(self._stacks.state == WAITING)
        if not stuck.size:
            return
        a_block = self._stacks.warps_a_block
        owners = numbers[stuck // a_block]
        stuck = stuck[owners == owners[0]]
        places = []
        at = {w: (int(self._number[w]), int(self._pc[w])) for w in stuck.tolist()}
        for number, pc in sorted(set(at.values())):
            there = [w for w in stuck.tolist() if at[w] == (number, pc)]
            listed = ", ".join(str(w % a_block) for w in there[:8])
            more = f" and {len(there) - 8} more" if len(there) > 8 else ""
            where = source_line(pc)
            which = f"barrier {number}" if number != CLUSTER else "the barrier of the cluster"
            places.append(f"warp {listed}{more} waits at {which} ({where})")
        raise KernelFault(
            f"kernel `{name}` cannot go on: in block {int(owners[0])} "
            f"{', '.join(places)}, and nobody is left to come"
        )


def _distinct_blocks(blocks: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the distinct values of ascending numbers."""
    return blocks[np.concatenate(([True], blocks[1:] != blocks[:-1]))] if blocks.size else blocks


class Holder(Protocol):
    """Blocks and releases warps: the barriers of the wave's blocks."""

    def hold(self, warps: NDArray[np.intp], after: int, pc: int) -> None:
        """Block warps, which continue at `after`."""

    def release_warps(self, warps: NDArray[np.intp]) -> None:
        """Release blocked warps."""


class ClusterBarrier:
    """State of the cluster barriers of a wave: masks over its W warps.

    `arrived` has the lanes that arrived in this phase, `owed` those that have to wait for it yet,
    `_parked` those whose entry let others of its warp run; `_waiting` are warps that cannot go on.
    Clusters are runs of `blocks_a_cluster` adjacent blocks.
    """

    def __init__(self, stacks: WarpStacks, holder: Holder, blocks_a_cluster: int) -> None:
        warps = len(stacks.state)
        self._stacks = stacks
        self._holder = holder
        self._warps = stacks.warps_a_block * blocks_a_cluster
        self._waiting: Mask = np.zeros(warps, dtype=np.bool_)
        self._parked: Bits = np.zeros(warps, dtype=np.uint32)
        self.arrived: Bits = np.zeros(warps, dtype=np.uint32)
        self.owed: Bits = np.zeros(warps, dtype=np.uint32)

    def arrive(self, warps: NDArray[np.intp], lanes: Bits, after: int) -> NDArray[np.intp]:
        """Mark `lanes` as arrived, and continue at `after`.

        Return the warps that break the rule: they arrived before and have not waited since.
        """
        wrong: NDArray[np.intp] = warps[(self.owed[warps] & lanes) != 0]
        if wrong.size:
            return wrong
        self.arrived[warps] |= lanes
        self.owed[warps] |= lanes
        self._stacks.jump(warps, after)
        self.release()
        return wrong

    def wait(self, warps: NDArray[np.intp], lanes: Bits, after: int, pc: int) -> NDArray[np.intp]:
        """Block `lanes` until their phase is complete.

        Return the warps that break the rule: they have not arrived.
        """
        wrong: NDArray[np.intp] = warps[(lanes & ~self.owed[warps]) != 0]
        if wrong.size:
            return wrong
        self.release()
        still = (self.arrived[warps] & lanes) != 0
        over = warps[~still]
        self.owed[over] &= ~lanes[~still]
        self._stacks.jump(over, after)
        self._parked[warps[still]] |= lanes[still]
        for warp in warps[still].tolist():
            # Other entries of the warp run first; those that are parked wait again once they may.
            if not self._stacks.yield_to_other(warp, int(self._parked[warp])):
                self._stacks.merge_siblings(warp, 0)
                self.owed[warp] &= ~self._stacks.mask[warp]
                self._waiting[warp] = True
                self._holder.hold(np.array([warp]), after, pc)
        self.release()
        return wrong

    def release(self) -> None:
        """Release clusters with a complete barrier phase.

        A waiting warp has no lane missing: its other lanes have exited, or wait at the
        reconvergence point of the waiting ones.
        """
        if not self.arrived.any():
            return
        stacks = self._stacks
        live = np.where(stacks.ended() | self._waiting, np.uint32(0), stacks.live())
        missing = (live & ~self.arrived).reshape(-1, self._warps)
        come = self.arrived.reshape(-1, self._warps)
        complete = (missing == 0).all(axis=1) & (come != 0).any(axis=1)
        if not complete.any():
            return
        members = np.repeat(complete, self._warps)
        self.arrived[members] = self._parked[members] = 0
        free = np.flatnonzero(members & self._waiting)
        self._waiting[free] = False
        self._holder.release_warps(free)


@dataclass(slots=True)
class SyncArrival:
    """A waiting entry of a warp: its lanes, their masks (32,) and values, each (32,), the result
    slots, and the function that computes the results (None if there are none).
    """

    key: Hashable
    lanes: int
    masks: Bits
    values: tuple[Array, ...]
    slots: tuple[int | None, ...]
    compute: Callable[..., tuple[Array, ...]] | None


@dataclass(frozen=True, slots=True)
class SyncOutcome:
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
        self.waiting: dict[int, list[SyncArrival]] = {}
        self.parked = stacks.meeting
        self.outcomes: list[SyncOutcome] = []

    def arrive(self, warp: int, arrival: SyncArrival) -> None:
        """Add a waiting entry; call `settle` for the warp afterwards."""
        self.waiting.setdefault(warp, []).append(arrival)
        self.parked[warp] |= np.uint32(arrival.lanes)

    def settle(self, warps: NDArray[np.intp]) -> None:
        """Release complete sets, and put entries on top that do not wait."""
        for warp in warps[self.parked[warps] != 0].tolist():
            is_released = self._release(warp, int(self._stacks.live()[warp]))
            # The top entry still waits: run another one. If none can run, no lane can arrive any
            # more, so the waiting lanes proceed without the rest of their mask (members 0).
            while int(self._stacks.mask[warp]) & int(self.parked[warp]):
                if not self._stacks.yield_to_other(warp, int(self._barriers.parked[warp])):
                    self._release(warp, 0)
            # Lanes that met go on together, as `.aligned` instructions after them require.
            parked = int(self._barriers.parked[warp])
            if is_released and not int(self._stacks.mask[warp]) & parked:
                self._stacks.merge_siblings(warp, parked | int(self.parked[warp]))

    def _release(self, warp: int, members: int) -> bool:
        """Release the waiting sets that lack no lane of `members`; return whether any does."""
        is_released = False
        for key, mask, come in self._sets(warp):
            if mask & members & ~come == 0:
                self._act(warp, key, mask, come)
                is_released = True
        arrivals = [arrival for arrival in self.waiting.pop(warp) if arrival.lanes]
        if arrivals:
            self.waiting[warp] = arrivals
        self.parked[warp] = sum(arrival.lanes for arrival in arrivals)
        return is_released

    def _sets(self, warp: int) -> list[tuple[Hashable, int, int]]:
        """Return the key, mask and arrived lanes of each set of lanes with the same key and
        mask.
        """
        lane_sets: dict[tuple[Hashable, int], int] = {}
        for arrival in self.waiting[warp]:
            for lane in _lanes(arrival.lanes):
                at = arrival.key, int(arrival.masks[lane])
                lane_sets[at] = lane_sets.get(at, 0) | 1 << lane
        return [(key, mask, lanes) for (key, mask), lanes in lane_sets.items()]

    def _act(self, warp: int, key: Hashable, mask: int, come: int) -> None:
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

    def _give(
        self, warp: int, arrival: SyncArrival, lanes: Mask, results: tuple[Array, ...]
    ) -> None:
        for slot, result in zip(arrival.slots, results, strict=True):
            if slot is not None:
                values = np.broadcast_to(result, (1, LANES))[0]
                self.outcomes.append(SyncOutcome(warp, slot, lanes, values))


def _lanes(mask: int) -> Iterator[int]:
    return (lane for lane in range(LANES) if mask >> lane & 1)


def _as_mask(lanes: int) -> Mask:
    mask: Mask = unpack(np.array([lanes], np.uint32))[0]
    return mask
