"""Blocks that are resident together: their registers, their shared and local memory, their warps.

Each warp is a stack of splits (block to run next, block where it joins its parent, lanes). Warps
whose top splits stand at the same basic block run it together; of the blocks where ready warps
stand, the first in reverse post-order is next.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ....native.ufunc import select
from ..call.frame_stack import FrameStack
from ..lanes import LANES, Array, Bits, Mask, scalar, unpack
from ..launch import Sink
from ..memory.address_facts import FactStore
from ..memory.shadow import Shadow
from ..rows.pattern import PatternTable
from ..rows.wave_rows import WaveRows
from .compact import CompactRegisters
from .group import WarpGroup
from .instruction_limit import Budget, loop_line
from .invariant import asserted, require_registers
from .program import BlockPlan, Program
from .room import Room

FAIR = 64
"""A block picked this many times running lets the warps that have waited longest go first."""

MASKS_REMEMBERED = 8


class ArrayWave:
    """Thread blocks with these `numbers` (blocks,) in the grid, (blocks, columns) lanes."""

    def __init__(
        self,
        program: Program,
        numbers: NDArray[np.int64],
        patterns: PatternTable,
        sink: Sink,
        room: Room | None = None,
    ) -> None:
        launch = program.launch
        room = Room(program, len(numbers)) if room is None else room
        self.program = program
        self.numbers = numbers
        blocks = self.blocks = room.blocks
        self.warps_a_block = room.warps_a_block
        self.columns = self.warps_a_block * LANES
        self.warps = room.warps
        self.all_blocks, self.all_warps = room.all_blocks, room.all_warps
        self.block_of_warp = room.block_of_warp
        self.zeros = program.zeros
        self.registers = program.initial_registers(numbers)
        self.shared = np.zeros((blocks, program.shared_bytes), dtype=np.uint8)
        self.local = np.zeros((self.warps * LANES, program.local_bytes), dtype=np.uint8)
        self.shadow: Shadow | None = None
        if launch.options.check_uninitialized:
            self.shadow = Shadow(self.shared, self.local, program.memory)
        self.step, self.fenced, self.stacks = room.step, room.fenced, room.stacks
        self.frames: FrameStack | None = None
        self.facts = FactStore(patterns)
        self.asserts = asserted()
        self._owned: dict[int, Array] = {}
        self._compact: CompactRegisters | None = None
        self._masks: dict[tuple[bytes, int], Mask] = {}
        self._progress = 0
        self._budget = Budget(launch.options.max_instructions)
        block = numbers[self.block_of_warp].astype(np.uint64)
        self.rows = WaveRows(sink, patterns, block, room.warp_of_block, len(program.ranks))

    def lanes_of(self, active: Bits, columns: int) -> Mask:
        """Return masks (warps,) as booleans (rows, columns), or (1, columns) if all rows agree.

        The same masks give the same array object while they are remembered, so that facts hold.
        """
        key = (active.tobytes(), columns)
        found = self._masks.get(key)
        if found is None:
            grid = active.reshape(-1, columns // LANES)
            if len(grid) > 1 and bool((grid == grid[0]).all()):
                grid = grid[:1]
            found = unpack(np.ascontiguousarray(grid).reshape(-1)).reshape(len(grid), columns)
            if len(self._masks) >= MASKS_REMEMBERED:
                self._masks.pop(next(iter(self._masks)))
            self._masks[key] = found
        return found

    def compact(self, warps: NDArray[np.intp]) -> CompactRegisters:
        """Return the registers of these warps only: those of the last time, if it is they again."""
        held = self._compact
        if held is None or not np.array_equal(held.warps, warps):
            self.write_back()
            held = self._compact = CompactRegisters(self, warps)
        return held

    def write_back(self) -> None:
        """Put what a few warps hold for themselves into the registers of the wave."""
        if self._compact is not None:
            self._compact.write_back()
            self._compact = None

    def own(self, slot: int, array: Array) -> None:
        """Remember that a register's array was made for it alone, and may change in place."""
        self._owned[slot] = array

    def owns(self, slot: int) -> bool:
        """Whether nothing else can hold the array of a register, or a view of it."""
        return self._owned.get(slot) is self.registers[slot]

    def lend(self, slots: Iterable[int]) -> None:
        """Let instructions see registers' own arrays: any of them may keep one, or a view of it.

        Those of a few warps see copies, and what they blend is copied, so this is for whole groups.
        """
        if self._owned:
            for slot in slots:
                self._owned.pop(slot, None)

    def take_budget(self, budget: Budget) -> None:
        """Have the basic blocks that run counted by another budget."""
        self._budget = budget

    def next_group(self) -> WarpGroup | None:
        """Return the warps that run next, or None when no warp is ready."""
        chosen = self.stacks.choose(self.program.ranks, self.program.waits, FAIR)
        if chosen is None:
            return None
        return WarpGroup(self, chosen, self.stacks.mask[chosen])

    def run(self) -> bool:
        """Run until every warp has ended (True), or all that can run only wait (False)."""
        waiting = self.program.waiting
        while (group := self.next_group()) is not None:
            number = int(self.stacks.block[group.warps[0]])
            plan = self.program.blocks[number]
            self._enter(group, plan)
            for instruction in plan.steps:
                instruction(group)
            taken = plan.terminator(group)
            self._leave(group, plan)
            if self.stacks.barriers.outcomes:
                self._take_outcomes()
            if self.stacks.meetings.outcomes:
                self._take_meetings()
            warps = None if group.whole else group.warps
            self.rows.history.add(warps, number, plan.length, group.active, taken)
            self.step[group.warps] += np.uint32(plan.length)
            self._budget.spend(self, number, plan.length)
            if waiting:
                self._progress += number not in waiting
                self.stacks.note_spin(group.warps, number in waiting)
                if number in waiting and self.stacks.only_spins():
                    self.stacks.spins[:] = 0
                    return False
        self.stacks.barriers.require_done(self.program.kernel, self.program.name, self.numbers)
        self.rows.finish()
        return True

    def _enter(self, group: WarpGroup, plan: BlockPlan) -> None:
        """Make the frame from which the block reads."""
        if group.compacted:
            group.frame = self.compact(group.warps).enter(plan, group.lanes)
            return
        self.write_back()
        group.frame = self.registers if group.lanes is None else list(self.registers)
        if group.lanes is None:
            self.lend(plan.reads)

    def _leave(self, group: WarpGroup, plan: BlockPlan) -> None:
        """Merge what outlives the block into the registers, and drop the rest."""
        registers, frame, lanes = self.registers, group.frame, group.lanes
        if self.asserts:
            require_registers(frame, self.zeros, plan.commits, (group.rows, group.columns))
        if group.compacted:
            self.compact(group.warps).leave(plan, lanes, frame)
        elif lanes is not None:
            for slot in plan.commits:
                if frame[slot] is not registers[slot]:
                    registers[slot] = select(lanes, frame[slot], registers[slot])
        else:
            for slot in plan.temporaries:
                registers[slot] = self.zeros[slot]

    def _take_outcomes(self) -> None:
        """Put what votes at barriers gave into the registers of the warps that go on."""
        self.write_back()
        shape = (self.blocks, self.columns)
        for warp, slot, value in self.stacks.barriers.outcomes:
            register = np.array(np.broadcast_to(self.registers[slot], shape), order="C")
            bits = scalar(value, np.dtype(f"u{register.itemsize}")).view(register.dtype)
            register.reshape(-1, LANES)[warp] = bits
            self.registers[slot] = register
        self.stacks.barriers.outcomes.clear()

    def _take_meetings(self) -> None:
        """Put what lanes that have met get into their registers."""
        self.write_back()
        shape = (self.blocks, self.columns)
        for each in self.stacks.meetings.outcomes:
            register = np.array(np.broadcast_to(self.registers[each.slot], shape), order="C")
            values = each.as_type(register.dtype)
            register.reshape(-1, LANES)[each.warp][each.lanes] = values[each.lanes]
            self.registers[each.slot] = register
        self.stacks.meetings.outcomes.clear()

    @property
    def progress(self) -> int:
        """A number that grows whenever a warp runs anything but a waiting loop."""
        return self._progress

    def state(self) -> Iterator[Array]:
        """Yield all that decides what its warps do next, but for the memory that blocks share."""
        self.write_back()
        yield from self.stacks.state_of_all()
        yield self.local
        for register in self.registers:
            yield np.ascontiguousarray(register)

    def waiting_lines(self) -> set[str]:
        """Return the source lines at which its ready warps wait."""
        kernel = self.program.kernel
        numbers = self.stacks.blocks_of_ready() & self.program.waiting
        return {loop_line(kernel, number) for number in numbers}

    def blocks_of(self, warps: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the numbers in the grid of the blocks that hold these warps."""
        return self.numbers[self.block_of_warp[warps]]
