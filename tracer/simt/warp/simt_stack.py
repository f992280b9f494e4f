"""The SIMT stacks of a wave as Python uses them: barriers, lanes that wait, and turns of entries.

The rules of divergence and reconvergence are in scheduler.py; its compiled functions change the
same arrays. Here is what needs more than one warp's stack, or happens too rarely to be compiled.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....jit.loop_codegen import compile_routines
from ....jit.machine_code import address
from ....jit.structure import Binding
from ..ops.lanes import LANES, Array, Bits, Mask, pack, unpack
from ..rows.buffers import InitialArrays
from .barrier import Barriers, WarpSync
from .control_flow import ControlFlow
from .invariant import asserted, require_tree
from .schedule import (
    DEEPEN,
    EXITED,
    LEAST_SPIN_BUDGET,
    NEVER,
    READY,
    SPIN_BUDGET,
    STALE,
    Schedule,
)
from .scheduler import (
    account,
    end_group,
    live_lanes,
    note_spins,
    only_spins,
    place_warps,
    reconverge_warps,
    run_warps,
)
from .stack_entry import StackEntry, merge_siblings, rotate_stack, run_ahead

TOP = "block", "join", "mask", "called"
BELOW = "below_block", "below_join", "below_mask", "below_called"

ROWS_OF_PYTHON = 1 << 62
"""No limit: rows that Python adds are written when the scheduler returns, after each block."""


class Routines(NamedTuple):
    """The scheduler's compiled functions; the first argument of each is the address of a
    Schedule."""

    run_warps: Callable[[int], int]
    end_group: Callable[[int], int]
    account: Callable[[int], int]
    note_spins: Callable[[int], int]
    place_warps: Callable[[int], int]
    only_spins: Callable[[int], int]
    reconverge_warps: Callable[[int, int, int], int]
    live_lanes: Callable[[int, int], int]


@cache
def routines() -> Routines:
    """Return the compiled functions of the scheduler."""
    exported = (run_warps, end_group, account, note_spins, place_warps, only_spins)
    return Routines(*compile_routines(*exported, reconverge_warps, live_lanes))


class SimtStacks:
    """The stacks of `blocks` thread blocks, whose warps have `lanes`, (warps per block, 32).

    `block`, `join` and `mask` are the top entries. All arrays are those of `schedule`, which has
    the tables of `flow`.
    """

    def __init__(
        self,
        schedule: Schedule,
        flow: ControlFlow,
        lanes: Mask,
        blocks: int,
        blocks_a_cluster: int,
    ) -> None:
        m = self.schedule = schedule
        m.take_fields(flow.schedule)
        self.address = m.address
        warps = self.warps = blocks * len(lanes)
        self.warps_a_block = len(lanes)
        m.warps, m.a_block, m.blocks = warps, len(lanes), blocks
        self._meeting_blocks = flow.meeting_blocks
        self._blocks_a_cluster = blocks_a_cluster
        self._asserts = asserted()
        parts = -(-warps // LANES)
        stale = np.arange(-(-parts // LANES) * LANES) < parts
        self._initial = InitialArrays(
            {
                **_zeros(warps, np.uint32, "step", "parked", "meeting", "active", "taken"),
                **_zeros(warps, np.int32, "depth", "spins", "chosen"),
                **_zeros(warps, np.uint8, "state", "called"),
                "waited": np.zeros(warps, np.int64),
                "sides": np.zeros(warps * flow.most_sides + 1, np.uint32),
                "block": np.full(warps, flow.entry, np.int32),
                "join": np.full(warps, flow.exit, np.int32),
                "mask": np.tile(pack(lanes), blocks),
                "patience": np.full(warps, SPIN_BUDGET, np.int32),
                "order": np.full(parts * LANES, NEVER, np.int32),
                "part_order": np.where(stale, STALE, NEVER).astype(np.int32),
                "last_entry": np.full(warps, -1, np.int32),
                "alternate": np.full(warps, -1, np.int32),
            }
        )
        own = self._initial.arrays
        m.bind(Binding(type(m), own))
        self.block, self.join, self.mask, self.called = (own[name] for name in TOP)
        self.state, self.depth, self.step = own["state"], own["depth"], own["step"]
        self.spins, self.patience = own["spins"], own["patience"]
        self.parked, self.meeting = own["parked"], own["meeting"]
        self._top = (self.block, self.join, self.mask, self.called)
        self._below: tuple[Array, ...] = ()
        m.picked, m.row_limit = -1, ROWS_OF_PYTHON
        self.deepen(2 * m.first_end + 2)
        self.begin()

    def begin(self) -> None:
        """Reset all warps of a new or restored schedule to the entry block, all lanes active."""
        self._initial.begin()
        self.schedule.bind(self._bound_below)
        self.forget()

    def forget(self) -> None:
        """Forget the barriers and the lanes that wait, once the arrays are reset."""
        self._barriers: Barriers | None = None
        self._meetings: WarpSync | None = None

    @property
    def initial_span(self) -> tuple[int, int, int]:
        """The arrays that are reset for a wave, as `InitialArrays.span`."""
        return self._initial.span

    @property
    def barriers(self) -> Barriers:
        """The barriers of the wave."""
        if self._barriers is None:
            self._barriers = Barriers(self, self._blocks_a_cluster)
        return self._barriers

    @property
    def meetings(self) -> WarpSync:
        """The lanes that wait for others of their warp."""
        if self._meetings is None:
            self._meetings = WarpSync(self, self.barriers)
        return self._meetings

    def take_log(self) -> int:
        """Return the number of entries of the log, and empty it."""
        m = self.schedule
        entries = m.entries
        m.entries = m.logged = 0
        m.last_entry.fill(-1)
        return entries

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return self._initial.nbytes + sum(array.nbytes for array in self._below)

    @property
    def group(self) -> NDArray[np.intp]:
        """The warps that run now."""
        m = self.schedule
        chosen: NDArray[np.intp] = m.chosen[: m.count].astype(np.intp)
        return chosen

    def set_taken(self, lanes: Bits) -> None:
        """Set the lanes of each warp of the group that take the branch of its block."""
        m = self.schedule
        m.taken[: m.count] = lanes

    def set_side(self, side: int, lanes: Bits) -> None:
        """Set the lanes of each warp of the group that enter this callee or switch target."""
        m = self.schedule
        m.sides[side * self.warps :][: m.count] = lanes

    def deepen(self, levels: int) -> None:
        """Reserve this many entries below the top, and keep the present ones."""
        below = tuple(np.zeros(levels * self.warps, column.dtype) for column in self._top)
        for column, old in zip(below, self._below, strict=False):
            column[: len(old)] = old
        self._below = below
        fields = dict(zip(BELOW, below, strict=True))
        self._bound_below = Binding(type(self.schedule), {"levels": levels, **fields})
        self.schedule.bind(self._bound_below)

    def end_group(self) -> int:
        """Move the group, which has run its block, on; return why Python is needed, or -1."""
        while (reason := routines().end_group(self.address)) == DEEPEN:
            self.deepen(2 * self.schedule.levels)
        return reason

    def jump(self, warps: NDArray[np.intp], block: int) -> None:
        """Move the top entries of `warps` to `block`, and pop those that reconverge there."""
        self.block[warps] = block
        self.pop(warps)

    def pop(self, warps: NDArray[np.intp]) -> None:
        """Pop the top entries of `warps` that have reconverged or are empty; a warp without entries
        exits.
        """
        self.schedule.has_woken = 0
        numbers = warps.astype(np.int32)
        routines().reconverge_warps(self.address, address(numbers), len(numbers))
        if self.schedule.has_woken:
            self.wake(warps)
        elif self.meetings.waiting:
            self.meetings.settle(warps)

    def wake(self, warps: NDArray[np.intp]) -> None:
        """Let others go on after `warps` exited, or popped entries: barriers and warp syncs may
        need fewer lanes now."""
        self.barriers.resume(warps)
        self.barriers.release(warps[self.state[warps] == EXITED])
        self.meetings.settle(warps)

    def rotate_spinning(self, warps: NDArray[np.intp]) -> None:
        """Rotate the stacks of those of `warps` that have just used up their spin budget."""
        due = self.spins[warps] % self.patience[warps] == 0
        for warp in warps[due & (self.state[warps] == READY) & (self.depth[warps] > 0)].tolist():
            threshold = int(self.patience[warp])
            turned = self.rotate(warp, parts=threshold <= LEAST_SPIN_BUDGET)
            self.patience[warp] = max(threshold // 2, LEAST_SPIN_BUDGET) if turned else SPIN_BUDGET

    def rotate(self, warp: int, parts: bool) -> bool:
        """Rotate the stack so that another runnable entry is on top; False if there is none.

        Lanes already at the reconvergence point run ahead as an entry of their own if no other
        entry can run, or at once with `parts`. Both reconverge at the parent's join block.
        """
        stack = self._entries_of(warp)
        turned = run_ahead(stack, self._meeting_blocks) if parts else None
        parked = int(self.parked[warp] | self.meeting[warp])
        turned = turned or rotate_stack(stack, parked) or run_ahead(stack, self._meeting_blocks)
        if turned is None or turned[-1].mask & int(self.meeting[warp]):
            return False
        self._restore(warp, turned)
        return True

    def yield_to_other(self, warp: int, parked: int) -> bool:
        """Put another runnable entry on top; False if there is none.

        None of its lanes may be in `parked`, or wait for other lanes of the warp.
        """
        turned = rotate_stack(self._entries_of(warp), parked | int(self.meeting[warp]))
        if turned is not None:
            self._restore(warp, turned)
        return turned is not None

    def merge_siblings(self, warp: int, waiting: int) -> None:
        """Merge the top entry with its siblings at the same block, none of whose lanes may be in
        `waiting`.
        """
        self._restore(warp, merge_siblings(self.stack_of(warp), waiting))

    def ended(self) -> Mask:
        """Return which warps have exited."""
        end_mask: Mask = self.state == EXITED
        return end_mask

    def live(self) -> Bits:
        """Return the live lanes of each warp: the union of the masks of its entries."""
        lanes: Bits = np.empty(self.warps, np.uint32)
        routines().live_lanes(self.address, address(lanes))
        return lanes

    def stack_of(self, warp: int) -> list[StackEntry]:
        """Return the entries of a warp, the top one last."""
        places = slice(warp, int(self.depth[warp]) * self.warps, self.warps)
        columns = (column[places].tolist() for column in self._below)
        stack = [StackEntry(*entry) for entry in zip(*columns, strict=True)]
        stack.append(StackEntry(*(int(column[warp]) for column in self._top)))
        if self._asserts:
            require_tree(stack)
        return stack

    def _entries_of(self, warp: int) -> list[StackEntry]:
        """Return a warp's entries with lanes: all lanes of an entry below the top may have
        exited.
        """
        return [entry for entry in self.stack_of(warp) if entry.mask]

    def _restore(self, warp: int, stack: list[StackEntry]) -> None:
        m, depth = self.schedule, len(stack) - 1
        if depth > m.levels:
            self.deepen(2 * depth)
        *below, top = stack
        for level, entry in enumerate(below):
            for column, value in zip(self._below, entry, strict=True):
                column[level * self.warps + warp] = value
        for column, value in zip(self._top, top, strict=True):
            column[warp] = value
        self.depth[warp] = depth
        m.most_depth = max(m.most_depth, depth)

    def state_of_all(self) -> Iterator[Array]:
        """Yield the state and all stack entries of all warps, for a digest."""
        yield from (self.state, self.depth, *self._top)
        for level in range(int(self.depth.max())):
            yield from (np.where(self.depth > level, column, 0) for column in self._level(level))

    def blocks_of_ready(self) -> set[int]:
        """Return the next blocks of all entries of ready warps."""
        ready = self.state == READY
        blocks = set(self.block[ready].tolist())
        for level in range(int(self.depth.max())):
            blocks.update(self._level(level)[0][ready & (self.depth > level)].tolist())
        return blocks

    def entries(self) -> Iterator[tuple[int, Mask]]:
        """Yield the basic blocks at which entries go on, each with its lanes (warps, 32), the
        lowest entries first."""
        for level in range(int(self.depth.max(initial=0)) + 1):
            block, mask = self.block, np.where(self.depth == level, self.mask, np.uint32(0))
            if level < self.schedule.levels:
                block_below, _, mask_below, _ = self._level(level)
                is_below = self.depth > level
                block = np.where(is_below, block_below, block)
                mask = np.where(is_below, mask_below, mask)
            for number in sorted(set(block[mask != 0].tolist())):
                if number < self.schedule.first_end:
                    yield number, unpack(np.where(block == number, mask, np.uint32(0)))

    def _level(self, level: int) -> list[Array]:
        return [column[level * self.warps :][: self.warps] for column in self._below]


def _zeros(size: int, dtype: type[np.generic], *names: str) -> dict[str, NDArray[Any]]:
    """Return arrays of zeros by name."""
    return dict.fromkeys(names, np.zeros(size, dtype))
