"""A wave: thread blocks that are resident together, and the loop that runs their warps.

The scheduler (warp/scheduler.py) picks the warps at one basic block and moves them on after it. In
between the block runs in one of two ways, an `Executor`: as machine code, or as steps of the
interpreter. A wave begins with either, and goes over from the interpreter to machine code once its
launch is hot (tier.py); nothing that it has run is run again.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.interrupt import check_interrupt
from ...jit.machine_code import address
from .access.access_arrays import AccessArrays, Site, bind_memory
from .chain import MORE, WaveChain
from .interp.interpreter import Interpreter
from .kernel.launch import Sink
from .memory.memory import BufferPool, Memory, Shadow
from .ops.lanes import LANES, Array, Mask
from .rows.access_rows import AccessRows
from .rows.buffers import MOST_CLEARED, Buffers
from .rows.history import RUNS, Entries, PathTable
from .rows.pattern import PatternTable
from .rows.wave_rows import WaveRows
from .tier import NEVER, LaunchTier
from .warp.frame_stack import FrameStack
from .warp.instruction_limit import SLICE, instructions_left, loop_line
from .warp.instruction_set import Executor, InstructionSet
from .warp.invariant import asserted
from .warp.machine import Machine
from .warp.program import Group, Program
from .warp.schedule import DEEPEN, ENDING, FAULT, IDLE, INTERPRET, SPINS, WOKEN, YIELD
from .warp.simt_stack import SimtStacks, routines


class WaveState:
    """Per-wave state over the warps of `blocks` thread blocks, reused by waves of the same shape.

    Allocating the arrays of a wave takes as long as a launch of a few hundred instructions.
    `code_arrays` are those that machine code needs besides, by code.
    """

    def __init__(self, code: InstructionSet, blocks: int) -> None:
        program, launch = code.program, code.program.launch
        self.shape = shape_of(code, blocks)
        self.blocks = blocks
        self.warps_a_block = -(-launch.threads // LANES)
        self.warps = blocks * self.warps_a_block
        numbers = np.arange(self.warps)
        self.block_of_warp = numbers // self.warps_a_block
        self.warp_of_block = (numbers % self.warps_a_block).astype(np.uint16)
        self.fenced: Mask = np.zeros(self.warps, dtype=np.bool_)
        columns = self.warps_a_block * LANES
        lanes = np.arange(columns).reshape(self.warps_a_block, LANES) < launch.threads
        self.machine = Machine()
        together = syncing_blocks(program)
        self.stacks = SimtStacks(self.machine, code.flow, lanes, blocks, together)
        self.code_arrays: dict[object, Any] = {}
        self._fresh = self.machine.copy()

    def begin(self, fresh: Machine | None = None) -> None:
        """Reset for a new wave, with the arrays of a `fresh` machine, else without any."""
        self.machine.begin_as(fresh or self._fresh)
        self.fenced.fill(False)
        self.stacks.begin()

    @property
    def nbytes(self) -> int:
        """The approximate size of the state in bytes."""
        arrays = (self.stacks, *self.code_arrays.values())
        return sum(int(each.nbytes) for each in arrays)


def syncing_blocks(program: Program) -> int:
    """Return how many blocks share a cluster barrier: 1 for a sample of blocks, which is run as if
    its blocks were independent.
    """
    launch = program.launch
    return 1 if launch.sampled_blocks else launch.blocks_a_cluster


def shape_of(code: InstructionSet, blocks: int) -> Hashable:
    """Return the key of a state: all that its arrays and their initial values depend on."""
    program = code.program
    sizes = program.launch.threads, program.shared_bytes, program.local_bytes
    return code.key, blocks, syncing_blocks(program), *sizes


MOST_STATES = 4
"""States that the pool keeps. A launch has waves of two shapes: its last wave may have fewer
blocks."""


class WaveStatePool:
    """A pool of the last few unused states, by shape."""

    def __init__(self) -> None:
        self._free: dict[Hashable, WaveState] = {}

    @property
    def nbytes(self) -> int:
        """The approximate size of all states in bytes."""
        return sum(state.nbytes for state in self._free.values())

    def take(self, code: InstructionSet, blocks: int) -> WaveState:
        """Return a reset state for a wave of this many blocks."""
        state = self._free.pop(shape_of(code, blocks), None)
        return state or WaveState(code, blocks)

    def give(self, state: WaveState) -> None:
        """Return the state of a finished wave to the pool."""
        state.begin()
        self._free[state.shape] = state
        if len(self._free) > MOST_STATES:
            self._free.pop(next(iter(self._free)))


@dataclass(frozen=True, slots=True)
class WavePools:
    """What the waves of a thread use in turn."""

    states: WaveStatePool = field(default_factory=WaveStatePool)
    buffers: Buffers = field(default_factory=Buffers)
    patterns: PatternTable = field(default_factory=PatternTable)

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return self.states.nbytes + self.buffers.nbytes + self.patterns.nbytes


class SessionPools:
    """The pools of a session: one for each thread that runs waves."""

    def __init__(self) -> None:
        self._pools: list[WavePools] = []

    @property
    def nbytes(self) -> int:
        """The approximate size of all pools in bytes."""
        return sum(pools.nbytes for pools in self._pools)

    def of(self, thread: int) -> WavePools:
        """Return the pools of thread number `thread`, for a new launch."""
        while len(self._pools) <= thread:
            self._pools.append(WavePools())
        self._pools[thread].patterns.begin_launch()
        return self._pools[thread]


_POOLS = BufferPool(SessionPools)


def pools_of(memory: Memory, thread: int = 0) -> WavePools:
    """Return the pools of a session's thread, for a new launch; thread 0 writes the trace."""
    return _POOLS.of(memory).of(thread)


LOG = {"log_warp": "i4", "log_block": "i4", "log_masks": "i8", "log_repeat": "i4"}
"""The columns of the log of what ran: room for RUNS entries and one more per warp."""


class Wave:
    """A wave: the thread blocks `numbers` (blocks,) of the grid, with (blocks, columns) lanes."""

    def __init__(
        self,
        code: InstructionSet,
        numbers: NDArray[np.int64],
        pools: WavePools,
        sink: Sink,
        tier: LaunchTier,
    ) -> None:
        program, launch = code.program, code.program.launch
        self.program, self.flow, self._moves = program, code.flow, code.traits.moves
        self.numbers = numbers
        patterns, buffers = pools.patterns, pools.buffers
        self.sink, self.patterns, self.buffers, self._states = sink, patterns, buffers, pools.states
        state = self._state = self._states.take(code, len(numbers))
        self.blocks = state.blocks
        self.warps_a_block = state.warps_a_block
        self.columns = self.warps_a_block * LANES
        self.warps = state.warps
        self.block_of_warp = state.block_of_warp
        self.shared = buffers.zeros("shared", self.blocks, program.shared_bytes)
        self.local = buffers.zeros("local", self.warps * LANES, program.local_bytes)
        self.shadow: Shadow | None = None
        if launch.options.check_uninitialized:
            self.shadow = Shadow(self.shared, self.local, program.memory)
        self.fenced, self.stacks, self.step = state.fenced, state.stacks, state.stacks.step
        self.machine, self.code_arrays = state.machine, state.code_arrays
        self.machine.log_limit, self.machine.clock_leap = RUNS, 0
        buffers.bind(self.machine, LOG, RUNS + self.warps)
        self.tensors: dict[int, Any] = {}
        self.frames: FrameStack | None = None
        self.asserts = asserted()
        block = numbers[self.block_of_warp].astype(np.uint64)
        warp = state.warp_of_block
        bind_memory(self.machine, self)
        memory = program.memory  # whose bytes must live as long as the machine points at them
        self._bytes = memory.global_.bytes, memory.const.bytes, memory.surface.bytes
        accesses = AccessRows(sink, patterns, block, warp, self.machine, buffers)
        if self.machine.mapped:
            accesses.report_outside(code.traits.instructions)
        m = self.machine
        log = Entries(m.log_warp, m.log_block, m.log_masks, m.log_repeat)
        paths = PathTable(log, self.warps, m.lengths, m.branches, buffers)
        self.rows = WaveRows(sink, patterns, block, warp, accesses, paths)
        self._tier = tier
        self._granted = self.machine.budget
        self._grant(launch.options.max_instructions)
        self.executor: Executor
        own_bytes = max(self.shared.size, self.local.size)
        self._may_repeat = tier.is_compiled and not self.machine.mapped and self.shadow is None
        self._may_repeat &= own_bytes <= MOST_CLEARED
        self._fresh: Machine | None = None
        self._chain: WaveChain | None = None
        self._present = 0
        if tier.is_compiled:
            self.executor = tier.executor(self, None)
        else:
            self.bind_accesses(None, ())
            self.executor = Interpreter(self, code)

    def bind_accesses(self, code: object, sites: Sequence[Site]) -> None:
        """Give the machine the arrays for the accesses of some machine code, or of no code."""
        if code not in self.code_arrays:
            self.code_arrays[code] = AccessArrays(sites, self.program, self.warps)
        self._accesses: AccessArrays = self.code_arrays[code]
        self._accesses.bind(self.machine)

    def begin_again(self, numbers: NDArray[np.int64], sink: Sink) -> None:
        """Begin again with as many other blocks, in the same arrays; see `may_begin_again`."""
        self.numbers, self.sink, self.tensors = numbers, sink, {}
        self._state.begin(self._fresh)
        self._accesses.begin()
        self.shared.fill(0)
        self.local.fill(0)
        self.rows.begin_again(sink, numbers[self.block_of_warp].astype(np.uint64))
        self._granted = self.machine.budget
        self._grant(self.program.launch.options.max_instructions)
        self.executor.begin_again()

    def chain(self, waves: Sequence[NDArray[np.int64]], stop: NDArray[np.int64]) -> int:
        """Have this wave, the first of these, go on as those after it; return how many it is."""
        many = 1
        while many < len(waves) and len(waves[many]) == self.blocks:
            many += 1
        self._chain, self._present, restart = None, 0, None
        if many > 1 and self._may_repeat:
            restart = self.executor.restart(np.concatenate(waves[:many]))
        if restart is None:
            return 1
        copies = self.stacks.initial_span, self._accesses.initial_span
        clears = [(address(each), each.nbytes) for each in (self.shared, self.local) if each.size]
        numbers = np.stack(waves[:many])
        limit = self.machine.log_limit if stop is NO_STOP else NEVER  # else another thread looks
        self._chain = WaveChain(
            numbers, self.block_of_warp, self.machine, copies, clears, restart, stop, limit
        )
        return many

    @property
    def may_begin_again(self) -> bool:
        """Whether all that an ended wave has written is reset by `begin_again`."""
        return self._fresh is not None and self.frames is None

    def release(self) -> None:
        """Give the arrays of an ended wave back."""
        del self.executor  # or the two would hold each other until the collector comes
        self._fresh = None
        self._states.give(self._state)

    def guard_stores(self, guard: int, stored: NDArray[np.int32]) -> None:
        """Note the allocations with a store in `stored`, or refuse stores to others (reach.py)."""
        m, moves = self.machine, self._moves
        if moves is not None:
            m.guard, m.moves, m.stored = guard, moves, stored

    @property
    def steps(self) -> int:
        """The instructions of all warps, once it has run."""
        return self.rows.history.steps

    def run(self) -> bool:
        """Run until every warp has exited (True), or every warp that can run only spins (False)."""
        try:
            return self._run()
        except BaseException:
            del self.executor
            raise

    def _run(self) -> bool:
        routine, m, stacks = routines(), self.machine, self.stacks
        hold = self.executor.enter()
        if self._may_repeat and self._fresh is None:
            self._fresh = m.copy()
        routine.place_warps(stacks.address)
        chain = self._chain
        if chain is not None:
            assert self._fresh is not None
            chain.enter(self._fresh, self.rows.history.paths)
        while True:
            if self._tier.is_compiled and isinstance(self.executor, Interpreter):
                self.executor = self._tier.executor(self, self.executor.registers)
                hold = self.executor.enter()
            self.executor.prepare()
            reason = routine.run_warps(stacks.address) if chain is None else chain.run()
            check_interrupt()
            if chain is not None:
                self._follow(chain)
            if reason == MORE and chain is not None:
                self._tier.spend(0)
                chain.write_paths(self.rows.history)
                continue
            if reason == DEEPEN:
                # Machine code has run the block, but the group has not moved on.
                reason = stacks.end_group()
            if reason == IDLE:
                if chain is None or not chain.may_go_on:
                    break
                self._write_history()
                chain.go_on()
                self._follow(chain)
                continue
            if reason == INTERPRET:
                reason = self.executor.run_block()
            elif reason == ENDING:
                self.executor.end_block()
            elif reason == FAULT:
                self.executor.raise_fault()
            if self.asserts:
                for warp in stacks.group.tolist():
                    stacks.stack_of(warp)
            if reason == ENDING:
                routine.account(stacks.address)
            elif reason == WOKEN:
                stacks.wake(stacks.group)
            if reason in (ENDING, WOKEN):
                self.executor.take_outcomes()
                reason = routine.note_spins(stacks.address)
                routine.place_warps(stacks.address)
            if reason == YIELD:
                stacks.rotate_spinning(stacks.group)
                routine.place_warps(stacks.address)
            if self.rows.accesses.is_full:
                self._write_rows(final=False)
            if m.logged >= m.log_limit:
                self._write_history()
                if chain is not None:
                    chain.end_by_python()
            if m.budget < 0:
                self._grant(instructions_left(self, m.number))
            if reason == SPINS or (reason == YIELD and routine.only_spins(stacks.address)):
                # Give other waves a turn: these warps may wait for them. Then spin again.
                stacks.spins[:] = 0
                self._tier.heat()
                return False
        del hold
        program = self.program
        if not stacks.ended().all():
            stacks.barriers.require_done(program.name, program.source_line, self.numbers)
        self._tier.spend(self._granted - m.budget)
        self.executor.finish()
        self._write_rows(final=True)
        self._write_history()
        self.rows.finish()
        return True

    def _grant(self, left: int) -> None:
        """Grant the instructions to run before the next check of the limit, of which `left` are
        left; those granted before count for the tier."""
        m = self.machine
        self._tier.spend(self._granted - m.budget)
        self._granted = m.budget = min(left, SLICE, self._tier.left)

    def enter_escape(self) -> None:
        """Take over the blocks that run now: a chain may be at a later wave than when Python called
        its machine code."""
        chain = self._chain
        if chain is not None and self._present != chain.present:
            self._present = chain.present
            self.numbers, self.tensors = chain.numbers[chain.present], {}
            self.fenced.fill(False)
            self.stacks.forget()

    def leave_escape(self) -> None:
        """Let later waves of a chain have the arrays that Python has made larger meanwhile."""
        if self._chain is not None:
            self._chain.keep_arrays()

    def _follow(self, chain: WaveChain) -> None:
        """Take over the wave that the chain runs now, if it is another one."""
        self.enter_escape()
        if not chain.has_moved:
            return
        assert self._fresh is not None
        self._granted = self._fresh.budget
        chain.write_paths(self.rows.history)
        self.rows.set_blocks(chain.block[chain.present])

    def _write_rows(self, final: bool) -> None:
        accesses = self.rows.accesses
        if self._chain is None:
            accesses.write(final)
            return
        blocks, ended = self._chain.take_row_ends()
        accesses.set_blocks(blocks)
        accesses.write(final, ended)

    def _write_history(self) -> None:
        self.rows.history.write_log(self.stacks.take_log())

    def group(self) -> Group:
        """Return the warps that run now."""
        m = self.machine
        return Group(self, self.stacks.group, m.active[: m.count].copy())

    @property
    def progress(self) -> int:
        """A count that grows whenever a warp runs a block outside of spin loops."""
        return int(self.machine.progress)

    def pass_time(self, cycles: int) -> None:
        """Advance the clocks, without instructions: all warps of the launch wait."""
        self.machine.clock_leap += cycles

    def state(self) -> Iterator[Array]:
        """Yield all state that decides how its warps go on, but for memory shared between
        blocks.
        """
        yield from self.stacks.state_of_all()
        yield self.local
        yield from self.executor.state()

    def waiting_lines(self) -> set[str]:
        """Return the source lines of the spin loops of its ready warps."""
        numbers = self.stacks.blocks_of_ready() & self.flow.waiting
        return {loop_line(self.program, self.flow, number) for number in numbers}

    def blocks_of(self, warps: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the grid numbers of the blocks of these warps."""
        return self.numbers[self.block_of_warp[warps]]


NO_STOP: NDArray[np.int64] = np.zeros(1, np.int64)
"""Waves that run to their ends."""


class WaveMaker:
    """Makes the waves of a launch that a thread runs in turn; an ended wave begins again as one of
    as many other blocks, which takes a tenth of the time."""

    def __init__(
        self, code: InstructionSet, pools: WavePools, tier: LaunchTier, guard: int = 0,
        stored: NDArray[np.int32] | None = None,
    ) -> None:  # fmt: skip
        self._code, self._pools, self._tier = code, pools, tier
        self._guard, self._stored = guard, stored
        self._ended: Wave | None = None

    def run(
        self, waves: Sequence[NDArray[np.int64]], sink: Sink, stop: NDArray[np.int64] = NO_STOP
    ) -> None:
        """Run waves of a kernel without spin loops; if `stop` (1,) is 1, the tier may end them."""
        done = 0
        while done < len(waves):
            wave = self.make(waves[done], sink)
            done += wave.chain(waves[done:], stop)
            if not wave.run():
                raise AssertionError(f"{wave.program.name} waits in no loop, and does not end")
            self.end(wave)

    def make(self, numbers: NDArray[np.int64], sink: Sink) -> Wave:
        """Return a wave of these blocks."""
        if self._ended is not None and self._ended.blocks == len(numbers):
            wave, self._ended = self._ended, None
            wave.begin_again(numbers, sink)
            return wave
        self.close()
        pools = self._pools
        if self._code.flow.waiting:  # others may begin before it ends
            pools = replace(pools, buffers=Buffers())
        wave = Wave(self._code, numbers, pools, sink, self._tier)
        if self._stored is not None:
            wave.guard_stores(self._guard, self._stored)
        return wave

    def end(self, wave: Wave) -> None:
        """Take a wave that has run to its end."""
        if self._ended is None and wave.may_begin_again:
            self._ended = wave
        else:
            wave.release()

    def close(self) -> None:
        """Release the ended wave."""
        if self._ended is not None:
            self._ended.release()
            self._ended = None
