"""The interpreter: runs the steps of a basic block over the warps of a group, in NumPy.

It is the definition: every other way to run a block leaves the same registers, memory and rows.
Registers are arrays over all lanes of the wave, by slot. For a few warps they are gathered into
`CompactRegisters`, which stay valid while the same warps run block after block together.
"""

from collections.abc import Iterable, Iterator
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ....jit.ufunc import select
from ..ops.lanes import LANES, Array, Mask, scalar
from ..warp.invariant import require_alone, require_registers
from ..warp.program import BlockPlan, WarpGroup, Wave
from ..warp.schedule import BARRIER, ENDING, OTHER, WARP_SYNC


class CompactRegisters:
    """Gathered registers of `warps` (n,), ascending, as (n or 1, 32 or 1) arrays by slot."""

    def __init__(self, owner: "Interpreter", warps: NDArray[np.intp]) -> None:
        self._owner = owner
        self._wave = owner.wave
        self.warps = warps
        self.frame: list[Array] = list(owner.registers)
        self._here: set[int] = set()
        self._changed: set[int] = set()

    def enter(self, plan: BlockPlan, lanes: Mask | None) -> list[Array]:
        """Return the frame of a block: a copy if only some lanes are active."""
        needed = plan.reads if lanes is None else plan.reads_and_commits
        for slot in needed:
            if slot not in self._here:
                self.frame[slot] = self._gather(self._owner.registers[slot])
                self._here.add(slot)
        return self.frame if lanes is None else list(self.frame)

    def leave(self, plan: BlockPlan, lanes: Mask | None, frame: list[Array]) -> None:
        """Keep the registers that outlive the block."""
        # With some lanes inactive the temporaries stay valid: for the inactive lanes of these warps
        # the same slots may hold live values.
        self._here.update(plan.commits)
        self._changed.update(plan.commits)
        if lanes is None:
            self._here.difference_update(plan.temporaries)
            return
        for slot in plan.commits:
            if frame[slot] is not self.frame[slot]:
                self.frame[slot] = select(lanes, frame[slot], self.frame[slot])

    def write_back(self) -> None:
        """Scatter the changed registers into the wave's."""
        registers = self._owner.registers
        for slot in sorted(self._changed):
            registers[slot] = self._scatter(slot, self.frame[slot])

    def _gather(self, value: Array) -> Array:
        wave = self._wave
        if value.size == 1:
            return value
        if value.shape[1] == 1:
            return value[wave.block_of_warp[self.warps]]
        by_warp = value.reshape(-1, LANES)
        if value.shape[0] == 1:
            return by_warp[self.warps % wave.warps_a_block]
        return by_warp[self.warps]

    def _scatter(self, slot: int, new: Array) -> Array:
        """Return the wave's array with the new bits of the warps; changed in place if solely
        owned.
        """
        wave, owner = self._wave, self._owner
        old = owner.registers[slot]
        if not owner.owns(slot):
            old = np.array(np.broadcast_to(old, (wave.blocks, wave.columns)), order="C")
            owner.own(slot, old)
        # The cache knows arrays by identity: facts of an array that changes in place would be
        # stale.
        wave.facts.drop(old)
        if wave.asserts:
            registers = (r for n, r in enumerate(owner.registers) if n != slot)
            require_alone(old, (*registers, *wave.facts.values()))
        old.reshape(-1, LANES)[self.warps] = new.view(old.dtype)
        return old


class Interpreter:
    """Runs the blocks of a wave that have no machine code; see `Executor`."""

    def __init__(self, wave: Wave) -> None:
        self.wave = wave
        self.registers = wave.program.initial_registers(wave.numbers)
        self._owned: dict[int, Array] = {}
        self._compact: CompactRegisters | None = None

    def enter(self) -> None:
        """Do nothing: no machine code calls back."""

    def prepare(self) -> None:
        """Do nothing: steps write their rows themselves."""

    def run_block(self) -> int:
        """Run the steps of the group's block; return as `end_group` does."""
        wave = self.wave
        group, plan = wave.group(), wave.program.blocks[wave.stacks.schedule.number]
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
        self.write_back()
        for register in self.registers:
            yield np.ascontiguousarray(register)

    def compact(self, warps: NDArray[np.intp]) -> CompactRegisters:
        """Return the gathered registers of these warps; the previous ones if the warps are
        the same.
        """
        registers = self._compact
        if registers is None or not np.array_equal(registers.warps, warps):
            self.write_back()
            registers = self._compact = CompactRegisters(self, warps)
        return registers

    def write_back(self) -> None:
        """Scatter the compact registers into the wave's."""
        if self._compact is not None:
            self._compact.write_back()
            self._compact = None

    def own(self, slot: int, array: Array) -> None:
        """Mark a register as the only owner of its array, which may then change in place."""
        self._owned[slot] = array

    def owns(self, slot: int) -> bool:
        """Return whether a register is the only owner of its array."""
        return self._owned.get(slot) is self.registers[slot]

    def lend(self, slots: Iterable[int]) -> None:
        """Give up sole ownership: instructions that see a register's array may keep it, or a view
        of it.

        Needed for whole groups only: compact groups see copies, and blended results are copied.
        """
        if self._owned:
            for slot in slots:
                self._owned.pop(slot, None)

    def _enter(self, group: WarpGroup, plan: BlockPlan) -> None:
        """Make the frame that the block reads."""
        if group.compacted:
            group.frame = self.compact(group.warps).enter(plan, group.lanes)
            return
        self.write_back()
        # With all lanes on, steps write the registers directly. Else they write a copy of the list,
        # and `_leave` merges under the lanes.
        group.frame = self.registers if group.lanes is None else list(self.registers)
        if group.lanes is None:
            self.lend(plan.reads)

    def _leave(self, group: WarpGroup, plan: BlockPlan) -> None:
        """Merge live-out values into the registers, and drop temporaries."""
        registers, frame, lanes = self.registers, group.frame, group.lanes
        if self.wave.asserts:
            require_registers(
                frame, self.wave.program.zeros, plan.commits, (group.rows, group.columns)
            )
        if group.compacted:
            self.compact(group.warps).leave(plan, lanes, frame)
        elif lanes is not None:
            for slot in plan.commits:
                if frame[slot] is not registers[slot]:
                    registers[slot] = select(lanes, frame[slot], registers[slot])
        else:
            for slot in plan.temporaries:
                registers[slot] = self.wave.program.zeros[slot]

    def take_outcomes(self) -> None:
        """Write the results of barrier votes and warp syncs to the registers of their warps."""
        barriers, meetings = self.wave.stacks.barriers, self.wave.stacks.meetings
        for warp, slot, value in barriers.outcomes:
            register = self._own_register(slot)
            bits = scalar(value, np.dtype(f"u{register.itemsize}")).view(register.dtype)
            register.reshape(-1, LANES)[warp] = bits
        for each in meetings.outcomes:
            register = self._own_register(each.slot)
            values = each.as_type(register.dtype)
            register.reshape(-1, LANES)[each.warp][each.lanes] = values[each.lanes]
        barriers.outcomes.clear()
        meetings.outcomes.clear()

    def _own_register(self, slot: int) -> Array:
        """Replace a register by a full copy, and return it."""
        self.write_back()
        value = np.broadcast_to(self.registers[slot], (self.wave.blocks, self.wave.columns))
        self.registers[slot] = register = np.array(value, order="C")
        return register
