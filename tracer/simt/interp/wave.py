"""A wave in the interpreter: registers, memory, SIMT stacks, and the loop that runs blocks.

The scheduler (warp/scheduler.py) picks the warps at one basic block; the wave runs the block's
steps over them as arrays, and then its terminator. Registers are arrays over all lanes of the wave.
For a few warps they are gathered into `CompactRegisters`, which stay valid while the same warps run
block after block together.

The warps that run one basic block together are a `WarpGroup`, in one of three forms. Whole: all
warps of the wave, all lanes active; registers are written in place. Blended: all or most warps,
some lanes; the block's results are merged into the registers under the lanes. Compacted: few warps;
the registers that they read are gathered, (warps, 32), and scattered back later.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ....jit.ufunc import select
from ...ptx.kernel import key_of
from ..kernel.launch import Sink
from ..memory.address_facts import AddressCache
from ..memory.memory import Shadow
from ..memory.wave_rows import WaveRows
from ..ops.lanes import ALL_LANES, LANES, Array, Bits, Mask, pack, scalar, unpack
from ..rows.history import RUNS
from ..rows.pattern import PatternTable
from ..warp.control_flow import control_flow
from ..warp.instruction_limit import SLICE, instructions_left, loop_line
from ..warp.invariant import asserted, require_alone, require_registers
from ..warp.program import BlockPlan, FrameStack, Program, Wave
from ..warp.schedule import (
    BARRIER,
    DEEPEN,
    ENDING,
    FAULT,
    IDLE,
    INTERPRET,
    OTHER,
    SPINS,
    WARP_SYNC,
    WOKEN,
    YIELD,
    Schedule,
)
from ..warp.simt_stack import SimtStacks, routines


class WarpGroup:
    """Warps (indices in the wave, ascending) at one basic block, and the layout of their values.

    `frame` holds a value per register slot, broadcastable to (rows, columns); `lanes` the active
    lanes in that shape, None for all; `active` the same as a mask for each of `warps`. `step` is
    the running instruction number of each warp of the shape.
    """

    def __init__(self, wave: Wave, warps: NDArray[np.intp], active: Bits) -> None:
        self.wave = wave
        self.warps = warps
        self.active = active
        # Below half of the warps a gather and scatter costs less than computing on all of them.
        self.compacted = 2 * len(warps) < wave.warps
        self.whole = len(warps) == wave.warps
        if self.compacted:
            self.rows, self.columns = len(warps), LANES
            self.row_block = wave.block_of_warp[warps]
        else:
            self.rows, self.columns = wave.blocks, wave.columns
            self.row_block = wave.all_blocks
        self.lanes = self._lanes()
        self.step: NDArray[np.uint32] = wave.step[self.place]
        first = self.step[0]
        self.common_step = int(first) if bool((self.step == first).all()) else None
        self.frame: list[Array] = []
        self.committed: list[Array] = []

    def _lanes(self) -> Mask | None:
        if self.compacted:
            full = bool((self.active == ALL_LANES).all())
            return None if full else self.wave.lanes_of(self.active, LANES)
        if self.whole and bool((self.active == ALL_LANES).all()):
            return None
        active = np.zeros(self.wave.warps, dtype=np.uint32)
        active[self.warps] = self.active
        return self.wave.lanes_of(active, self.columns)

    @property
    def warps_a_row(self) -> int:
        """Warps side by side in a row."""
        return self.columns // LANES

    @property
    def blocks_in_wave(self) -> int:
        """Thread blocks of the wave."""
        return self.wave.blocks

    @property
    def place(self) -> NDArray[np.intp]:
        """The index in the wave of each warp of the shape (rows * warps per row)."""
        return self.warps if self.compacted else self.wave.all_warps

    def pack(self, lanes: Mask) -> Bits:
        """Pack booleans of the group's shape to a mask for each of `warps`, active lanes only."""
        if lanes.size == 1:
            return self.active if lanes[0, 0] else np.zeros_like(self.active)
        if lanes.shape[1] == 1:
            bits = np.where(lanes, np.uint32(ALL_LANES), np.uint32(0))
            bits = np.broadcast_to(bits, (self.rows, self.warps_a_row)).reshape(-1)
        elif lanes.shape[0] == 1:
            bits = np.tile(pack(lanes.reshape(-1, LANES)), self.rows)
        else:
            bits = pack(lanes.reshape(-1, LANES))
        if not self.compacted and not self.whole:
            bits = bits[self.warps]
        return bits & self.active

    def guarded(self, guard: Mask | None) -> Mask | None:
        """Return the active lanes with a true `guard`; None means all."""
        if guard is None or (guard.size == 1 and guard[0, 0]):
            return self.lanes
        return guard if self.lanes is None else self.lanes & guard


class CompactRegisters:
    """Gathered registers of `warps` (n,), ascending, as (n or 1, 32 or 1) arrays by slot."""

    def __init__(self, wave: Wave, warps: NDArray[np.intp]) -> None:
        self._wave = wave
        self.warps = warps
        self.frame: list[Array] = list(wave.registers)
        self._here: set[int] = set()
        self._changed: set[int] = set()

    def enter(self, plan: BlockPlan, lanes: Mask | None) -> list[Array]:
        """Return the frame of a block: a copy if only some lanes are active."""
        needed = plan.reads if lanes is None else plan.reads_and_commits
        for slot in needed:
            if slot not in self._here:
                self.frame[slot] = self._gather(self._wave.registers[slot])
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
        registers = self._wave.registers
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
        wave = self._wave
        old = wave.registers[slot]
        if not wave.owns(slot):
            old = np.array(np.broadcast_to(old, (wave.blocks, wave.columns)), order="C")
            wave.own(slot, old)
        # The cache knows arrays by identity: facts of an array that changes in place would be
        # stale.
        wave.facts.drop(old)
        if wave.asserts:
            registers = (r for n, r in enumerate(wave.registers) if n != slot)
            require_alone(old, (*registers, *wave.facts.values()))
        old.reshape(-1, LANES)[self.warps] = new.view(old.dtype)
        return old


class WaveState:
    """Per-wave state over the warps of `blocks` thread blocks, reused by waves of the same
    shape.
    """

    def __init__(self, program: Program, blocks: int, schedule: Schedule) -> None:
        launch = program.launch
        self.blocks = blocks
        self.warps_a_block = -(-launch.threads // LANES)
        self.warps = blocks * self.warps_a_block
        self.all_blocks = np.arange(blocks)
        self.all_warps = np.arange(self.warps)
        self.block_of_warp = self.all_warps // self.warps_a_block
        self.warp_of_block = (self.all_warps % self.warps_a_block).astype(np.uint16)
        self.fenced: Mask = np.zeros(self.warps, dtype=np.bool_)
        columns = self.warps_a_block * LANES
        lanes = np.arange(columns).reshape(self.warps_a_block, LANES) < launch.threads
        flow, span = control_flow(key_of(program.kernel)), (program.entry, program.exit)
        together = syncing_blocks(program)
        self.stacks = SimtStacks(schedule, flow, span, lanes, blocks, together)

    def begin(self) -> None:
        """Reset for a new wave: no instruction has run, all warps are at the entry block."""
        self.fenced.fill(False)
        self.stacks.begin()


def syncing_blocks(program: Program) -> int:
    """Return how many blocks share a cluster barrier: 1 for a sample of blocks, which is run as if
    its blocks were independent.
    """
    launch = program.launch
    return 1 if launch.sampled_blocks else launch.blocks_a_cluster


MASKS_REMEMBERED = 8


LOG = {"log_warp": "i4", "log_block": "i4", "log_masks": "i8", "log_repeat": "i4"}
"""The columns of the log of what ran: room for RUNS entries and one more per warp."""


class ArrayWave:
    """A wave: the thread blocks `numbers` (blocks,) of the grid, with (blocks, columns) lanes."""

    def __init__(
        self,
        program: Program,
        numbers: NDArray[np.int64],
        patterns: PatternTable,
        sink: Sink,
        wave_room: WaveState | None = None,
    ) -> None:
        launch = program.launch
        if wave_room is None:
            wave_room = WaveState(program, len(numbers), Schedule())
        self.program = program
        self.numbers = numbers
        blocks = self.blocks = wave_room.blocks
        self.warps_a_block = wave_room.warps_a_block
        self.columns = self.warps_a_block * LANES
        self.warps = wave_room.warps
        self.all_blocks, self.all_warps = wave_room.all_blocks, wave_room.all_warps
        self.block_of_warp = wave_room.block_of_warp
        self.zeros = program.zeros
        self.registers = program.initial_registers(numbers)
        self.shared = np.zeros((blocks, program.shared_bytes), dtype=np.uint8)
        self.local = np.zeros((self.warps * LANES, program.local_bytes), dtype=np.uint8)
        self.shadow: Shadow | None = None
        if launch.options.check_uninitialized:
            self.shadow = Shadow(self.shared, self.local, program.memory)
        self.fenced, self.stacks = wave_room.fenced, wave_room.stacks
        self.step = self.stacks.step
        self.schedule = self.stacks.schedule
        self.schedule.budget = min(launch.options.max_instructions, SLICE)
        self._bind_log(*(np.empty(RUNS + self.warps, kind) for kind in LOG.values()))
        self.frames: FrameStack | None = None
        self.facts = AddressCache(patterns)
        self.asserts = asserted()
        self._owned: dict[int, Array] = {}
        self._compact: CompactRegisters | None = None
        self._masks: dict[tuple[bytes, int], Mask] = {}
        block = numbers[self.block_of_warp].astype(np.uint64)
        self.rows = WaveRows(sink, patterns, block, wave_room.warp_of_block)

    def lanes_of(self, active: Bits, columns: int) -> Mask:
        """Return masks (warps,) as booleans (rows, columns), or (1, columns) if all rows agree.

        Recent masks return the same array object, so that address facts cached by identity are
        found.
        """
        key = (active.tobytes(), columns)
        mask = self._masks.get(key)
        if mask is None:
            grid = active.reshape(-1, columns // LANES)
            if len(grid) > 1 and bool((grid == grid[0]).all()):
                grid = grid[:1]
            mask = unpack(np.ascontiguousarray(grid).reshape(-1)).reshape(len(grid), columns)
            # Evict the oldest mask.
            if len(self._masks) >= MASKS_REMEMBERED:
                self._masks.pop(next(iter(self._masks)))
            self._masks[key] = mask
        return mask

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

    def run(self) -> bool:
        """Run until every warp has exited (True), or every warp that can run only spins (False)."""
        routine, m, stacks = routines(), self.schedule, self.stacks
        routine.place_warps(stacks.address)
        while True:
            self._prepare()
            reason = routine.run_warps(stacks.address)
            if reason == DEEPEN:
                # Machine code has run the block, but the group has not moved on.
                reason = stacks.end_group()
            if reason == IDLE:
                break
            if reason == INTERPRET:
                reason = self._run_block()
            elif reason == ENDING:
                self._end_block()
            elif reason == FAULT:
                self._raise_fault()
            if self.asserts:
                for warp in stacks.group.tolist():
                    stacks.stack_of(warp)
            if reason == ENDING:
                routine.account(stacks.address)
            elif reason == WOKEN:
                stacks.wake(stacks.group)
            if reason in (ENDING, WOKEN):
                self._take_outcomes()
                reason = routine.note_spins(stacks.address)
                routine.place_warps(stacks.address)
            if reason == YIELD:
                stacks.rotate_spinning(stacks.group)
                routine.place_warps(stacks.address)
            self._write()
            if m.budget < 0:
                m.budget = self.renew_budget()
            if reason == SPINS or (reason == YIELD and routine.only_spins(stacks.address)):
                # Give other waves a turn: these warps may wait for them. Then spin again.
                stacks.spins[:] = 0
                return False
        stacks.barriers.require_done(self.program.kernel, self.program.name, self.numbers)
        self._finish()
        return True

    def _bind_log(self, *columns: NDArray[Any]) -> None:
        """Take arrays for the log, as LOG names them."""
        self.schedule.log_limit = RUNS
        for name, column in zip(LOG, columns, strict=True):
            setattr(self.schedule, name, column)

    def _prepare(self) -> None:
        """Do what is needed before the scheduler runs."""

    def _raise_fault(self) -> NoReturn:
        """Raise the fault that machine code met."""
        raise NotImplementedError

    def renew_budget(self) -> int:
        """Return the instructions to run before the next check of the limit; KernelFault if a warp
        has passed it."""
        return min(instructions_left(self, self.schedule.number), SLICE)

    def _group(self) -> WarpGroup:
        m = self.schedule
        return WarpGroup(self, self.stacks.group, m.active[: m.count].copy())

    def _run_block(self) -> int:
        """Run the steps of the group's block; return as `end_group` does."""
        group, plan = self._group(), self.program.blocks[self.schedule.number]
        self._enter(group, plan)
        for instruction in plan.steps:
            instruction(group)
        terminator = plan.terminator
        if terminator is not None and plan.ending not in (BARRIER, OTHER, WARP_SYNC):
            terminator(group)  # sets the lanes of each side
        reason = ENDING if plan.ending == WARP_SYNC else self.stacks.end_group()
        if terminator is not None and reason == ENDING:
            terminator(group)  # moves the warps
        self._leave(group, plan)
        return reason

    def _end_block(self) -> None:
        """End the group's block, which machine code has run."""
        raise NotImplementedError

    def _write(self) -> None:
        """Write the rows that fill their buffers."""
        if self.schedule.logged >= self.schedule.log_limit:
            self._write_history()

    def _write_history(self) -> None:
        m = self.schedule
        self.rows.history.write_log(self.stacks.take_log(), m.lengths, m.branches)

    def _finish(self) -> None:
        """Write all rows that are left."""
        self.rows.accesses.flush()
        self._write_history()
        self.rows.finish()

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
        """Write the results of barrier votes and warp syncs to the registers of their warps."""
        barriers, meetings = self.stacks.barriers, self.stacks.meetings
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
        value = np.broadcast_to(self.registers[slot], (self.blocks, self.columns))
        self.registers[slot] = register = np.array(value, order="C")
        return register

    @property
    def progress(self) -> int:
        """A count that grows whenever a warp runs a block outside of spin loops."""
        return int(self.schedule.progress)

    def state(self) -> Iterator[Array]:
        """Yield all state that decides how its warps go on, but for memory shared between
        blocks.
        """
        self.write_back()
        yield from self.stacks.state_of_all()
        yield self.local
        for register in self.registers:
            yield np.ascontiguousarray(register)

    def waiting_lines(self) -> set[str]:
        """Return the source lines of the spin loops of its ready warps."""
        kernel = self.program.kernel
        numbers = self.stacks.blocks_of_ready() & self.program.waiting
        return {loop_line(kernel, number) for number in numbers}

    def blocks_of(self, warps: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the grid numbers of the blocks of these warps."""
        return self.numbers[self.block_of_warp[warps]]
