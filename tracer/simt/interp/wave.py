"""A wave in the interpreter: registers, memory, SIMT stacks, and the loop that runs blocks.

The loop picks the warps at one basic block, runs the block's steps over them as arrays, and then
its terminator. Registers are arrays over all lanes of the wave. For a few warps they are gathered
into `CompactRegisters`, which stay valid while the same warps run block after block together.

The warps that run one basic block together are a `WarpGroup`, in one of three forms. Whole: all
warps of the wave, all lanes active; registers are written in place. Blended: all or most warps,
some lanes; the block's results are merged into the registers under the lanes. Compacted: few warps;
the registers that they read are gathered, (warps, 32), and scattered back later.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ....jit.ufunc import select
from ..kernel.launch import Sink
from ..memory.address_facts import AddressCache
from ..memory.memory import Shadow
from ..memory.wave_rows import WaveRows
from ..ops.lanes import ALL_LANES, LANES, Array, Bits, Mask, pack, scalar, unpack
from ..rows.pattern import PatternTable
from ..warp.instruction_limit import Budget, loop_line
from ..warp.invariant import asserted, require_alone, require_registers
from ..warp.program import BlockPlan, FrameStack, Program, Wave
from ..warp.simt_stack import SimtStacks


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

    def __init__(self, program: Program, blocks: int) -> None:
        launch = program.launch
        self.blocks = blocks
        self.warps_a_block = -(-launch.threads // LANES)
        self.warps = blocks * self.warps_a_block
        self.all_blocks = np.arange(blocks)
        self.all_warps = np.arange(self.warps)
        self.block_of_warp = self.all_warps // self.warps_a_block
        self.warp_of_block = (self.all_warps % self.warps_a_block).astype(np.uint16)
        self.step: NDArray[np.uint32] = np.zeros(self.warps, dtype=np.uint32)
        self.fenced: Mask = np.zeros(self.warps, dtype=np.bool_)
        columns = self.warps_a_block * LANES
        lanes = np.arange(columns).reshape(self.warps_a_block, LANES) < launch.threads
        ends = len(program.kernel.blocks)
        self.stacks = SimtStacks(
            program.entry, program.exit, ends, lanes, blocks, syncing_blocks(program)
        )

    def begin(self) -> None:
        """Reset for a new wave: no instruction has run, all warps are at the entry block."""
        self.step.fill(0)
        self.fenced.fill(False)
        self.stacks.begin()


def syncing_blocks(program: Program) -> int:
    """Return how many blocks share a cluster barrier: 1 for a sample of blocks, which is run as if
    its blocks were independent.
    """
    launch = program.launch
    return 1 if launch.sampled_blocks else launch.blocks_a_cluster


FAIR = 64
"""After this many picks of one block in a row the longest waiting warps run first."""

MASKS_REMEMBERED = 8


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
        wave_room = WaveState(program, len(numbers)) if wave_room is None else wave_room
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
        self.step, self.fenced, self.stacks = wave_room.step, wave_room.fenced, wave_room.stacks
        self.frames: FrameStack | None = None
        self.facts = AddressCache(patterns)
        self.asserts = asserted()
        self._owned: dict[int, Array] = {}
        self._compact: CompactRegisters | None = None
        self._masks: dict[tuple[bytes, int], Mask] = {}
        self._progress = 0
        self._budget = Budget(launch.options.max_instructions)
        block = numbers[self.block_of_warp].astype(np.uint64)
        self.rows = WaveRows(sink, patterns, block, wave_room.warp_of_block, len(program.ranks))

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

    def take_budget(self, budget: Budget) -> None:
        """Replace the instruction budget."""
        self._budget = budget

    def next_group(self) -> WarpGroup | None:
        """Return the warps that run next, or None if no warp is ready."""
        warps = self.stacks.choose(self.program.ranks, self.program.spin_blocks, FAIR)
        if warps is None:
            return None
        return WarpGroup(self, warps, self.stacks.mask[warps])

    def run(self) -> bool:
        """Run until every warp has exited (True), or every ready warp only spins (False)."""
        waiting = self.program.waiting
        while (group := self.next_group()) is not None:
            number = int(self.stacks.block[group.warps[0]])
            plan = self.program.blocks[number]
            self._enter(group, plan)
            for instruction in plan.steps:
                instruction(group)
            branch_masks = plan.terminator(group)
            self._leave(group, plan)
            if self.stacks.barriers.outcomes:
                self._take_outcomes()
            if self.stacks.meetings.outcomes:
                self._take_meetings()
            warps = None if group.whole else group.warps
            self.rows.history.add(warps, number, plan.length, group.active, branch_masks)
            self.step[group.warps] += np.uint32(plan.length)
            self._budget.spend(self, number, plan.length)
            if waiting:
                self._progress += number not in waiting
                self.stacks.count_spin(group.warps, number in waiting)
                if number in waiting and self.stacks.only_spins():
                    # Give other waves a turn: these warps may wait for them. Then spin again.
                    self.stacks.spins[:] = 0
                    return False
        self.stacks.barriers.require_done(self.program.kernel, self.program.name, self.numbers)
        self.rows.finish()
        return True

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
        """Store results of barrier votes into the registers of the released warps."""
        self.write_back()
        shape = (self.blocks, self.columns)
        for warp, slot, value in self.stacks.barriers.outcomes:
            register = np.array(np.broadcast_to(self.registers[slot], shape), order="C")
            bits = scalar(value, np.dtype(f"u{register.itemsize}")).view(register.dtype)
            register.reshape(-1, LANES)[warp] = bits
            self.registers[slot] = register
        self.stacks.barriers.outcomes.clear()

    def _take_meetings(self) -> None:
        """Store results of completed warp synchronizations into registers."""
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
        """A count that grows whenever a warp runs a block outside of spin loops."""
        return self._progress

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
