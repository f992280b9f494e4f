"""The interpreter: runs the steps of a basic block over the warps of a group, in NumPy.

It is the definition: every other way to run a block leaves the same registers, memory and rows.
Registers are arrays over the warps and lanes of the wave, by slot. If only some warps run a block,
the registers that it reads are gathered, and those that outlive it are scattered afterwards.
"""

from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from ....jit.ufunc import select
from ..ops.lanes import LANES, Array, scalar
from ..warp.instruction_set import InstructionSet
from ..warp.invariant import require_registers
from ..warp.program import BlockPlan, Group, Wave
from ..warp.schedule import BARRIER, ENDING, OTHER, WARP_SYNC


class Interpreter:
    """Runs the blocks of a wave that have no machine code; see `Executor`."""

    def __init__(self, wave: Wave, code: InstructionSet) -> None:
        self.wave = wave
        self._code = code
        self._at_first = code.registers(wave.numbers)
        self.registers = list(self._at_first)

    def enter(self) -> None:
        """Do nothing: no machine code calls back."""

    def restart(self, numbers: Array) -> None:
        """Machine code alone begins no wave."""

    def begin_again(self) -> NoReturn:
        """Not used: only waves of machine code begin again."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Reserve nothing: each access of a step does."""
        self.wave.rows.accesses.begin_blocks(0)

    def run_block(self) -> int:
        """Run the steps of the group's block; return as `end_group` does."""
        wave = self.wave
        group, plan = wave.group(), self._code.plan(wave.stacks.schedule.number)
        if plan.slots > len(self.registers):
            self._add_registers()
        self._enter(group, plan)
        for instruction in plan.steps:
            instruction(group)
        terminator = plan.terminator
        if terminator is not None and plan.ending not in (BARRIER, OTHER, WARP_SYNC):
            terminator(group)  # sets the lanes of each side
        reason = ENDING if plan.ending == WARP_SYNC else wave.stacks.end_group()
        if terminator is not None and reason == ENDING:
            terminator(group)  # moves the warps
        self._leave(group, plan)
        return reason

    def end_block(self) -> NoReturn:
        """Not used: `run_block` ends the block, too."""
        raise NotImplementedError

    def raise_fault(self) -> NoReturn:
        """Not used: steps raise."""
        raise NotImplementedError

    def finish(self) -> None:
        """Do nothing: steps have written and counted all."""

    def state(self) -> Iterator[Array]:
        """Yield the values of all registers."""
        for register in self.registers:
            yield np.ascontiguousarray(register)

    def _add_registers(self) -> None:
        """Add the registers of blocks that were planned since."""
        more = self._code.registers(self.wave.numbers, len(self.registers))
        self._at_first += more
        self.registers += more

    def _enter(self, group: Group, plan: BlockPlan) -> None:
        """Make the frame that the block reads."""
        if group.whole and group.lanes is None:
            group.frame = self.registers  # written directly
            return
        group.frame = list(self.registers)
        if not group.whole:
            for slot in plan.reads if group.lanes is None else plan.reads_and_commits:
                register = self.registers[slot]
                if len(register) > 1:
                    group.frame[slot] = register[group.warps]
        if group.lanes is not None:
            group.committed = list(group.frame)

    def _leave(self, group: Group, plan: BlockPlan) -> None:
        """Merge live-out values into the registers, and drop temporaries."""
        registers, frame, lanes = self.registers, group.frame, group.lanes
        if self.wave.asserts:
            shape = group.shape
            require_registers(frame, self._at_first, plan.commits, shape)
        if frame is registers:
            for slot in plan.temporaries:
                registers[slot] = self._at_first[slot]
            return
        for slot in plan.commits:
            value = frame[slot]
            if lanes is not None:
                if value is group.committed[slot]:
                    continue
                value = select(lanes, value, group.committed[slot])
            if not group.whole:
                whole = self._own_register(slot)
                whole[group.warps] = value.view(whole.dtype)
            else:
                registers[slot] = value

    def take_outcomes(self) -> None:
        """Write the results of barrier votes and warp syncs to the registers of their warps."""
        barriers, meetings = self.wave.stacks.barriers, self.wave.stacks.meetings
        for warp, slot, value in barriers.outcomes:
            register = self._own_register(slot)
            bits = scalar(value, np.dtype(f"u{register.itemsize}")).view(register.dtype)
            register[warp] = bits
        for each in meetings.outcomes:
            register = self._own_register(each.slot)
            values = each.as_type(register.dtype)
            register[each.warp][each.lanes] = values[each.lanes]
        barriers.outcomes.clear()
        meetings.outcomes.clear()

    def _own_register(self, slot: int) -> Array:
        """Replace a register by a full copy, and return it."""
        value = np.broadcast_to(self.registers[slot], (self.wave.warps, LANES))
        self.registers[slot] = register = np.array(value, order="C")
        return register
