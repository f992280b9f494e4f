"""SIMT stacks of warps: entries of (next block, reconvergence block, active mask), as arrays.

A divergent branch leaves the parent entry at the reconvergence point, the immediate
post-dominator, and pushes both sides, the taken one on top. An entry that reaches its
reconvergence block is popped:

    if (lane < 2) A; else B; C        branch        A done       B done, reconverged
    top     A  join C  mask 0011   |  A  0011   |             |
            B  join C  mask 1100   |  B  1100   |  B  1100    |
    bottom  C  join exit mask 1111 |  C  1111   |  C  1111    |  C  1111

Where some lanes escape the region (tracer/ptx/reconvergence.py), a further parent, the outer join,
waits for them at a later block. A call pushes an entry that reconverges at the callee's exit. A
warp with an empty stack has exited.
"""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....traces.unique import sorted_unique
from ..ops.lanes import Array, Bits, Mask, pack
from .barrier import Barriers, WarpSync
from .invariant import asserted, require_tree
from .stack_entry import (
    EXITED,
    READY,
    StackEntry,
    merge_siblings,
    rotate_stack,
    run_ahead,
    split_off,
)

_NEVER = np.iinfo(np.int32).max
OUTER_JOIN = 1 << 30

SPIN_BUDGET = 64
"""Blocks of a spin loop that an entry runs before its warp yields to another entry. The budget is
halved after each yield, down to LEAST_SPIN_BUDGET. It counts blocks, whatever the loop's length.
"""
LEAST_SPIN_BUDGET = 16

_Entries: TypeAlias = tuple[Array, Array, Array, Array]
"""One stack entry per warp: next block, reconvergence block, active mask, pushed by a call."""


class SimtStacks:
    """SIMT stacks of the W warps of a wave. `block`, `join` and `mask` are the top entries.

    The end blocks of functions are the block numbers from `ends` on.
    """

    def __init__(
        self, entry: int, exit_: int, ends: int, lanes: Mask, blocks: int, blocks_a_cluster: int
    ) -> None:
        self._all = np.tile(pack(lanes), blocks)
        warps = len(self._all)
        self.warps_a_block = len(lanes)
        self.block: NDArray[np.int32] = np.empty(warps, dtype=np.int32)
        self.join: NDArray[np.int32] = np.empty(warps, dtype=np.int32)
        self.mask: Bits = np.empty(warps, dtype=np.uint32)
        self.state: NDArray[np.uint8] = np.empty(warps, dtype=np.uint8)
        self.depth: NDArray[np.int32] = np.empty(warps, dtype=np.int32)
        self.spins: NDArray[np.int32] = np.empty(warps, dtype=np.int32)
        self.patience: NDArray[np.int32] = np.empty(warps, dtype=np.int32)
        self.called: Mask = np.empty(warps, dtype=np.bool_)
        self._top = (self.block, self.join, self.mask, self.called)
        self._below: list[_Entries] = []
        self._waited: NDArray[np.int64] = np.empty(warps, dtype=np.int64)
        self._span = entry, exit_
        self._blocks_a_cluster = blocks_a_cluster
        self._asserts = asserted()
        self._ends = ends
        self.begin()

    def begin(self) -> None:
        """Reset all warps to the entry block, with all their lanes active."""
        entry, exit_ = self._span
        self.block.fill(entry)
        self.join.fill(exit_)
        self.mask[:] = self._all
        self.patience.fill(SPIN_BUDGET)
        for zeros in (self.state, self.depth, self.spins, self.called, self._waited):
            zeros.fill(0)
        self.barriers = Barriers(self, self._blocks_a_cluster)
        self.meetings = WarpSync(self, self.barriers)
        self._has_waited = False
        self._tick = 0
        self._picked = (-1, 0)
        self._leader = (0, 0)

    def choose(
        self, ranks: NDArray[np.int32], spin_blocks: Mask, fair: int
    ) -> NDArray[np.intp] | None:
        """Return the warps (ascending) that run next: those at the first ready block in order of
        `ranks`.

        Running the lowest rank first gives warps at earlier blocks time to catch up, so that more
        warps run a block together. After `fair` picks of one block in a row, the block of the warp
        that has waited longest runs instead. Blocks of spin loops (`spin_blocks`) come last for
        warps that have already been through them. If only those are ready, the warp that has waited
        longest leads for `fair` picks; warps at the leader's block run along. So each warp makes
        progress, however many blocks its loop has.
        """
        self._tick += 1
        order = ranks[self.block]
        if self._has_waited:
            # Above every rank and below _NEVER: a spinning warp runs only if no other warp can.
            order += (spin_blocks[self.block] & (self.spins > 0)) * np.int32(OUTER_JOIN)
        order[self.state != READY] = _NEVER
        rank = int(order.min())
        if rank == _NEVER:
            return None
        block, times = self._picked
        if rank >= OUTER_JOIN:
            rank = self._leading_order(order, fair)
        elif rank == block and times >= fair:
            # Without this, a loop of low rank would starve the warps it waits for.
            others = np.flatnonzero((order != _NEVER) & (order != rank))
            if others.size:
                rank = int(order[others[np.argmin(self._waited[others])]])
        self._picked = (rank, times + 1 if rank == block else 1)
        ready_warps = np.flatnonzero(order == rank)
        self._waited[ready_warps] = self._tick
        return ready_warps

    def _leading_order(self, order: NDArray[np.int32], fair: int) -> int:
        """Return the order of the warp that leads when every ready warp spins."""
        warp, picks = self._leader
        if not picks or order[warp] == _NEVER:
            ready = np.flatnonzero(order != _NEVER)
            warp, picks = int(ready[np.argmin(self._waited[ready])]), fair
        self._leader = (warp, picks - 1)
        return int(order[warp])

    def jump(self, warps: NDArray[np.intp], block: int) -> None:
        """Move the top entries of `warps` to `block`, and pop those that reconverge there."""
        self.block[warps] = block
        self.pop(warps)

    def diverge(
        self, warps: NDArray[np.intp], branch_lanes: Bits, target: int, other: int, join: int
    ) -> None:
        """Branch: lanes `branch_lanes` (a mask per warp) go to `target`, the others to `other`.

        A top entry with the same reconvergence block as the branch is replaced by one side. A loop
        that lanes leave one by one therefore keeps a stack depth of one.
        """
        active = self.mask[warps]
        fallthrough = active & ~branch_lanes
        self.block[warps[fallthrough == 0]] = target
        self.block[warps[branch_lanes == 0]] = other
        mixed = (branch_lanes != 0) & (fallthrough != 0)
        # A side that begins at the reconvergence block has nothing to run: it needs no entry.
        sides = [
            (b, lanes) for b, lanes in ((other, fallthrough), (target, branch_lanes)) if b != join
        ]
        last = self.join[warps] == join
        for subset, replaces in ((mixed & last, True), (mixed & ~last, False)):
            if subset.any():
                here = [(block, lanes[subset]) for block, lanes in sides]
                self._stack_sides(warps[subset], here, join, replaces)
        self.pop(warps)

    def push_outer_join(self, warps: NDArray[np.intp], join_blocks: tuple[int, ...]) -> None:
        """Push an entry that waits at each outer join, before `warps` diverge."""
        for block in join_blocks:
            first = warps[~self._is_inside(warps, block)]
            if first.size:
                here, lanes = self.block[first], self.mask[first]
                self.block[first] = block
                self.push(first, 0, block, lanes)
                self.block[first] = here

    def _is_inside(self, warps: NDArray[np.intp], join_block: int) -> Mask:
        """Return which warps already have an entry that reconverges at `join_block`.

        Entries count from the top one down to the innermost call.
        """
        inside: Mask = self.join[warps] == join_block
        looks = ~inside & ~self.called[warps]
        own = self.mask[warps]
        for level in range(len(self._below) - 1, -1, -1):
            _, join, mask, called = self._below[level]
            here = looks & (self.depth[warps] > level) & ((mask[warps] & own) != 0)
            matches = here & (join[warps] == join_block)
            inside |= matches
            looks &= ~(matches | (here & called[warps]))
        return inside

    def leave_region(
        self, warps: NDArray[np.intp], lanes: Bits, leaving: int, stay: int, join_block: int
    ) -> None:
        """Move lanes (a mask per warp) that escape the region to `leaving`, the others to `stay`.

        The escaping lanes are removed from all entries that wait for them within the region, and
        run as an entry of their own until both reconverge at the outer join `join_block`.
        """
        self.block[warps] = np.where(lanes == self.mask[warps], leaving, stay)
        leaves = (lanes != 0) & self._is_inside(warps, join_block)
        for warp, mask in zip(warps[leaves].tolist(), lanes[leaves].tolist(), strict=True):
            self._restore(warp, split_off(self._stack_of(warp), mask, leaving, join_block))
        self.pop(warps)

    def diverge_many(
        self,
        warps: NDArray[np.intp],
        sides: list[tuple[int, Bits]],
        join: int,
        join_blocks: tuple[int, ...] = (),
    ) -> None:
        """Branch disjoint lanes (a mask per warp) to several blocks; they reconverge at `join`."""
        several = np.sum([lanes != 0 for _, lanes in sides], axis=0) > 1
        self.push_outer_join(warps[several], join_blocks)
        for block, lanes in sides:
            self.block[warps[~several & (lanes != 0)]] = block
        self.block[warps[several]] = join
        replaced = several & (self.join[warps] == join)  # as in `diverge`
        called = replaced & self.called[warps]
        for block, lanes in reversed(sides):
            subset = several & (lanes != 0) & (block != join)
            first, further = subset & replaced, subset & ~replaced
            self.block[warps[first]], self.mask[warps[first]] = block, lanes[first]
            replaced &= ~first
            if further.any():
                self.push(warps[further], block, join, lanes[further], called[further])
        self.pop(warps)

    def _stack_sides(
        self, warps: NDArray[np.intp], sides: list[tuple[int, Bits]], join: int, replaces: bool
    ) -> None:
        """Push the sides above the top entries, which wait at `join` or are replaced by the first
        side.
        """
        self.block[warps] = join
        called = self.called[warps] & replaces
        if replaces and sides:
            block, lanes = sides.pop(0)
            self.block[warps], self.mask[warps] = block, lanes
        for block, lanes in sides:
            self.push(warps, block, join, lanes, called)

    def push(
        self,
        warps: NDArray[np.intp],
        block: int,
        join: int,
        lanes: Bits,
        called: bool | Mask = False,
    ) -> None:
        """Push an entry on the stack of each of `warps`."""
        self._deepen(int(self.depth[warps].max()) + 1)
        for level in sorted_unique(self.depth[warps]):
            at = warps[self.depth[warps] == level]
            for below, top in zip(self._below[int(level)], self._top, strict=True):
                below[at] = top[at]
        self.block[warps], self.join[warps] = block, join
        self.mask[warps], self.called[warps] = lanes, called
        self.depth[warps] += 1

    def reserve(self, levels: int) -> _Entries:
        """Allocate `levels` entries below the top, and keep the present ones.

        Return block, join, mask and whether a call pushed the entry, each (levels * W,).
        """
        whole = tuple(np.zeros(levels * len(column), dtype=column.dtype) for column in self._top)
        parts = [column.reshape(levels, -1) for column in whole]
        for level, splits in enumerate(self._below):
            for part, column in zip(parts, splits, strict=True):
                part[level] = column
        self._below = list(zip(*parts, strict=True))
        return whole[0], whole[1], whole[2], whole[3]

    @property
    def levels(self) -> int:
        """The number of allocated entries below the top."""
        return len(self._below)

    def _deepen(self, levels: int) -> None:
        while len(self._below) < levels:
            block, join, mask, called = map(np.zeros_like, self._top)
            self._below.append((block, join, mask, called))

    def count_spin(self, warps: NDArray[np.intp], is_spin_wait: bool) -> None:
        """Count the spin-loop blocks that `warps` ran; rotate the stacks of those past their
        budget.

        Any other block is progress and resets the count.
        """
        if not is_spin_wait:
            self.spins[warps] = 0
            return
        self._has_waited = True
        self.spins[warps] += 1
        self.rotate_spinning(warps)

    def rotate_spinning(self, warps: NDArray[np.intp]) -> None:
        """Rotate the stacks of those of `warps` that have just used up their spin budget."""
        due = self.spins[warps] % self.patience[warps] == 0
        for warp in warps[due & (self.state[warps] == READY) & (self.depth[warps] > 0)].tolist():
            threshold = int(self.patience[warp])
            turned = self.rotate(warp, parts=threshold <= LEAST_SPIN_BUDGET)
            self.patience[warp] = max(threshold // 2, LEAST_SPIN_BUDGET) if turned else SPIN_BUDGET

    def only_spins(self) -> bool:
        """Return whether every ready warp has only run spin loops for twice the spin budget."""
        return bool((self.spins[self.state == READY] >= 2 * SPIN_BUDGET).all())

    def rotate(self, warp: int, parts: bool) -> bool:
        """Rotate the stack so that another runnable entry is on top; False if there is none.

        Lanes already at the reconvergence point run ahead as an entry of their own if no other
        entry can run, or at once with `parts`. Both reconverge at the parent's join block.
        """
        stack = self._entries_of(warp)
        turned = run_ahead(stack) if parts else None
        parked = int(self.barriers.parked[warp] | self.meetings.parked[warp])
        turned = turned or rotate_stack(stack, parked) or run_ahead(stack)
        if turned is None or turned[-1].mask & int(self.meetings.parked[warp]):
            return False
        self._restore(warp, turned)
        return True

    def yield_to_other(self, warp: int, parked: int) -> bool:
        """Put another runnable entry on top; False if there is none.

        None of its lanes may be in `parked`, or wait for other lanes of the warp.
        """
        turned = rotate_stack(self._entries_of(warp), parked | int(self.meetings.parked[warp]))
        if turned is not None:
            self._restore(warp, turned)
        return turned is not None

    def ended(self) -> Mask:
        """Return which warps have exited."""
        end_mask: Mask = self.state == EXITED
        return end_mask

    def merge_siblings(self, warp: int) -> None:
        """Merge the top entry with its siblings at the same block."""
        self._restore(warp, merge_siblings(self._stack_of(warp)))

    def live(self) -> Bits:
        """Return the live lanes of each warp: the union of the masks of its entries."""
        deepest = int(self.depth.max())
        if not deepest:
            return self.mask
        lanes = self.mask.copy()
        for level in range(deepest):
            lanes |= np.where(self.depth > level, self._below[level][2], np.uint32(0))
        return lanes

    def _stack_of(self, warp: int) -> list[StackEntry]:
        levels = (*self._below[: int(self.depth[warp])], self._top)
        stack = [StackEntry(*(int(column[warp]) for column in level)) for level in levels]
        if self._asserts:
            require_tree(stack)
        return stack

    def _entries_of(self, warp: int) -> list[StackEntry]:
        """Return a warp's entries with lanes: all lanes of an entry below the top may have
        exited.
        """
        return [split for split in self._stack_of(warp) if split.mask]

    def _restore(self, warp: int, stack: list[StackEntry]) -> None:
        self._deepen(len(stack) - 1)
        for level, split in zip((*self._below[: len(stack) - 1], self._top), stack, strict=True):
            for column, value in zip(level, split, strict=True):
                column[warp] = value
        self.depth[warp] = len(stack) - 1

    def state_of_all(self) -> Iterator[Array]:
        """Yield the state and all stack entries of all warps, for a digest."""
        yield from (self.state, self.depth, *self._top)
        for level in range(int(self.depth.max())):
            yield from (np.where(self.depth > level, column, 0) for column in self._below[level])

    def blocks_of_ready(self) -> set[int]:
        """Return the next blocks of all entries of ready warps."""
        ready = self.state == READY
        blocks = set(self.block[ready].tolist())
        for level in range(int(self.depth.max())):
            blocks.update(self._below[level][0][ready & (self.depth > level)].tolist())
        return blocks

    def leave(self, warps: NDArray[np.intp], lanes: Bits, returns: bool = False) -> None:
        """Remove exiting lanes from every entry of their warps, and pop the empty entries.

        Lanes that only return from a function are removed down to the entry of its call.
        """
        self._remove_lanes(warps, lanes, returns)
        self.pop(warps)

    def _remove_lanes(self, warps: NDArray[np.intp], lanes: Bits, returns: bool) -> None:
        depth, remainder = self.depth[warps], lanes.copy()
        # From the top down, so that lanes that return stop at the innermost call that they are in.
        for level in range(int(depth.max(initial=0)), -1, -1):
            parts = [(self._top, depth == level)]
            if level < len(self._below):
                parts.append((self._below[level], depth > level))
            for (_, _, mask, called), subset in parts:
                at = warps[subset]
                here = mask[at]
                mask[at] = here & ~remainder[subset]
                if returns:
                    remainder[subset] &= ~np.where(called[at], here, np.uint32(0))

    def pop(self, warps: NDArray[np.intp]) -> None:
        """Pop the top entries of `warps` that have reconverged or are empty; a warp without entries
        exits.

        Lanes at the end of a function are first removed from the entries that wait for them inside
        it.
        """
        self._pop(warps)
        if self.meetings.waiting:
            self.meetings.settle(warps)

    def _pop(self, warps: NDArray[np.intp]) -> None:
        popped = warps[:0]
        strays = warps[(self.block[warps] >= self._ends) & (self.join[warps] != self.block[warps])]
        if strays.size:
            self._remove_lanes(strays, self.mask[strays], returns=True)
        while True:
            # A popped entry uncovers its parent, possibly at its reconvergence block:
            # repeat.
            joined = (self.block[warps] == self.join[warps]) | (self.mask[warps] == 0)
            warps = warps[joined]
            if not warps.size:
                self.barriers.resume(popped)
                return
            depth = self.depth[warps]
            self.state[warps[depth == 0]] = EXITED
            if (depth == 0).any():
                self.barriers.release(warps[depth == 0])
            warps = warps[depth > 0]
            if not warps.size:
                self.barriers.resume(popped)
                return
            popped = warps if not popped.size else popped
            self.depth[warps] -= 1
            for level in sorted_unique(self.depth[warps]):
                at = warps[self.depth[warps] == level]
                for below, top in zip(self._below[int(level)], self._top, strict=True):
                    top[at] = below[at]
