"""Machine code as the executor of a wave's basic blocks.

`CompiledBlocks` gives machine code what it needs: frames for the registers, the memories, room for
rows. Where the code returns, or calls back, it runs an instruction or the end of a block in the
interpreter, or raises a fault.
"""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ....base.interrupt import check_interrupt
from ....jit.loop_codegen import compile_routines
from ....jit.machine_code import address
from ..access.bounds import fault_of
from ..access.reach import finish_some
from ..call.argument_passing import grow, stack_of
from ..decode.address import parameter_image
from ..decode.ptx_program import PtxProgram
from ..ops.lanes import LANES, Array
from ..rows.access_rows import FEW_ROWS, ROWS
from ..warp.instruction_limit import never_ends
from ..warp.instruction_set import Restart
from ..warp.program import Group, Wave
from .compiled_kernel import CompiledKernel
from .emit_block import NEEDS_ROWS
from .emit_call import NEEDS_FRAMES
from .fallback import Fallbacks, stored_as
from .register_frame import LAUNCH, THREAD, Place

_ESCAPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

WIDEST = 16
"""Maximum bytes of a load: padding, since a load may read past the last parameter."""


class CompiledBlocks:
    """Runs the blocks of a wave as machine code; see `Executor`.

    If the interpreter has run the wave so far, its `registers` are taken over.
    """

    def __init__(
        self,
        wave: Wave,
        program: PtxProgram,
        code: CompiledKernel,
        escapes: Fallbacks,
        registers: Sequence[Array] | None,
    ) -> None:
        self.wave = wave
        self.program, self.stacks = program, wave.stacks
        self._code = code
        m = self._machine = wave.machine
        self._escapes = escapes
        self._raised: BaseException | None = None
        m.bind(code.tables)
        wave.bind_accesses(code, code.made.sites)
        m.lanes_on = np.zeros(len(code.made.counted) * wave.blocks + 1, np.int64)
        self._bind_memory()
        self._bind_rows()
        self._bind_registers()
        if registers is not None:
            self._take_registers(registers)

    def _bind_memory(self) -> None:
        m, program = self._machine, self.program
        memory = program.memory
        m.parameters = np.concatenate((parameter_image(program), np.zeros(WIDEST, np.uint8)))
        m.global_bytes = address(memory.global_.bytes) - memory.global_.base
        m.const_bytes = address(memory.const.bytes) - memory.const.base
        own = self.wave.shared, self.wave.local
        m.shared_bytes, m.local_bytes = (address(each) if each.size else 0 for each in own)

    def _bind_rows(self) -> None:
        m, self._rows = self._machine, self.wave.rows.accesses
        self._row_limit = m.row_limit = FEW_ROWS
        room = m.rows + self._code.capacity(m.warps)
        self._rows.reserve(room, room)

    def _bind_registers(self) -> None:
        """Allocate the frames, and the special register tables of these blocks."""
        m, frame = self._machine, self._code.frame
        m.frame_bytes = frame.size
        buffers = self.wave.buffers
        crosses = self._code.made.crosses_lanes
        take = buffers.take_zeros if crosses else buffers.take
        m.frames = take("frames", self.wave.warps * frame.size + 64, "u1")
        m.frame_words = m.frames[: self.wave.warps * frame.size].view(np.int64)
        tables = frame.specials.tables(self.program.launch)
        m.launch_table, m.warp_table = tables[LAUNCH], tables[THREAD]
        self._begin_registers()
        if frame.passing.recursive:
            stack_of(self.wave, self.program.decoder.spills)
            self._bind_frames()

    def _begin_registers(self) -> None:
        """Bind the special registers of the wave's blocks, and clear the registers read first."""
        specials = self._code.frame.specials
        table = specials.table_of_blocks(self.program.launch, self.wave.numbers)
        self._machine.block_table = table
        for place in self._code.zeroed:
            self.lanes_of_place(place)[:] = 0

    def begin_again(self) -> None:
        """Set the registers for the wave's new blocks."""
        m = self._machine
        m.row_limit = self._row_limit
        m.lanes_on[:] = 0
        if self._code.made.crosses_lanes:
            m.frames[: self.wave.warps * m.frame_bytes] = 0
        self._begin_registers()

    def restart(self, numbers: NDArray[np.int64]) -> Restart | None:
        """Return what waves of the blocks `numbers` (n,) begin with; None if machine code alone
        cannot begin or end a wave."""
        made, m, frame = self._code.made, self._machine, self._code.frame
        if made.counted or frame.passing.recursive:
            return None
        tables = frame.specials.table_of_blocks(self.program.launch, numbers)
        clears = [(address(m.frames), self.wave.warps * frame.size)] if made.crosses_lanes else []
        zeros = [(place.offset, place.size * LANES) for place in self._code.zeroed]
        return Restart(clears, zeros, tables)

    def _bind_frames(self) -> None:
        """Take the depth of each lane, and the registers saved so far, from the wave's stack."""
        m, stack = self._machine, self.wave.frames
        if stack is not None:
            self.lanes_of_place(self._code.frame.depth)[:] = stack.depth.reshape(-1, LANES)
            m.aside, m.aside_levels = stack.saved, stack.levels

    def lanes_of_place(self, place: Place) -> NDArray[Any]:
        """Return the lanes of a place in all frames, (warps, 32)."""
        m = self._machine
        dtype = np.dtype(np.complex128) if place.size == 16 else np.dtype(f"u{place.size}")
        steps = (m.frame_bytes, dtype.itemsize)
        return np.ndarray((self.wave.warps, LANES), dtype, m.frames, place.offset, steps)

    def _take_registers(self, registers: Sequence[Array]) -> None:
        """Write the registers of the interpreter, by slot, into the frames.

        Registers that share a place are live in different lanes. Each lane therefore gets those
        that are live where it goes on: at its top entry, and further down the stack, at the blocks
        after its calls.
        """
        slots, frame = self.program.decoder.slots, self._code.frame
        live: dict[tuple[int, str], tuple[Place, Array]] = {}
        for slot, value in enumerate(registers):
            key = slots.key_of(slot)
            place = frame.lasting_place(key)
            if place is None:
                continue
            if key in frame.overlaid:
                live[key] = place, self._all_lanes(value, place)
            else:
                self.lanes_of_place(place)[:] = self._all_lanes(value, place)
        for block, lanes in self.stacks.entries() if live else ():
            for key in self.program.kernel.live_in[block] & live.keys():
                place, values = live[key]
                frame_lanes = self.lanes_of_place(place)
                frame_lanes[lanes] = values[lanes]

    def _all_lanes(self, value: Array, place: Place) -> Array:
        """Return a register of the interpreter as lanes of a place."""
        wave = self.wave
        lanes = np.array(np.broadcast_to(value, (wave.warps, LANES)), order="C")
        return lanes.view(stored_as(place))

    def enter(self) -> object:
        """Return the callback that machine code calls for an instruction without code."""
        call_back = _ESCAPE(self._escape)
        pointer = ctypes.c_void_p.from_buffer(call_back)  # a cast would hold itself, and the wave
        self._machine.escape = pointer.value or 0
        return call_back

    def state(self) -> Iterator[NDArray[Any]]:
        """Yield the values of all registers."""
        m = self._machine
        yield m.frames[: self.wave.warps * m.frame_bytes]

    def prepare(self) -> None:
        """Reserve patterns for the rows that may come before the next write."""
        m = self._machine
        if m.rows >= m.row_limit:
            self._row_limit = m.row_limit = ROWS
        self._rows.begin_blocks(self._code.capacity(self.wave.warps, m.row_limit))

    def _make_room_for_rows(self) -> None:
        """Make room for the rows of the rest of the block, after rows that it has not reserved."""
        m = self._machine
        self._rows.reserve(m.rows + (self._code.most_sites + 1) * m.warps, m.runs + FEW_ROWS)
        self._rows.patterns.store.reserve(self._code.capacity(self.wave.warps, m.row_limit))

    def _group(self) -> Group:
        """Return the warps that run now, as the interpreter's steps need them."""
        if self.wave.frames is not None:
            depth = self.lanes_of_place(self._code.frame.depth)
            self.wave.frames.depth[:] = depth.reshape(-1)
        return self.wave.group()

    def run_block(self) -> NoReturn:
        """Raise the error for a loop without an exit: only such blocks have no machine code."""
        never_ends(self._machine.number)(self._group())
        raise AssertionError(f"block {self._machine.number} is in no endless loop")

    def end_block(self) -> None:
        """End the block in the interpreter."""
        group = self._group()
        escaped = self._escapes.find(self.program.kernel.blocks[self._machine.number].last - 1)
        self._escapes.enter(self.lanes_of_place, group, escaped)
        assert escaped.ending is not None
        escaped.ending(group)
        self._escapes.leave(self.lanes_of_place, group, escaped)

    def take_outcomes(self) -> None:
        """Write the results of barrier votes and warp syncs to the frames of their warps."""
        for warp, slot, value in self.stacks.barriers.outcomes:
            self.lanes_of_place(self._escapes.place_of(slot))[warp] = value
        self.stacks.barriers.outcomes.clear()
        for each in self.stacks.meetings.outcomes:
            frame_lanes = self.lanes_of_place(self._escapes.place_of(each.slot))
            frame_lanes[each.warp][each.lanes] = each.values[each.lanes]
        self.stacks.meetings.outcomes.clear()

    def _escape(self, pc: int, accesses: int) -> int:
        """Run an instruction in the interpreter for the current group; return 1 if it raises."""
        try:
            check_interrupt()
            self.wave.enter_escape()
            if accesses == NEEDS_FRAMES:
                self._group()
                grow(stack_of(self.wave, self.program.decoder.spills), self.wave.program, pc)
                self._bind_frames()
            elif accesses == NEEDS_ROWS:
                self._make_room_for_rows()
            else:
                self._run_step(pc, accesses)
            self.wave.leave_escape()
        except BaseException as problem:  # it must not be lost on its way through machine code
            self._raised = problem
            self._machine.fault_site = 0
            return 1
        return 0

    def _run_step(self, pc: int, accesses: int) -> None:
        # Take the rows of earlier accesses first: those of the step follow them.
        self._machine.upto = accesses
        (finish,) = compile_routines(finish_some)
        finish(self._machine.address)
        group, escaped = self._group(), self._escapes.find(pc)
        self._escapes.enter(self.lanes_of_place, group, escaped)
        run = escaped.step or escaped.ending
        assert run is not None
        run(group)
        self._escapes.leave(self.lanes_of_place, group, escaped)
        self._bind_frames()
        self._make_room_for_rows()

    def raise_fault(self) -> NoReturn:
        """Raise what a callback raised, or the fault of an access."""
        if self._raised is not None:
            raise self._raised
        raise fault_of(self.wave)

    def finish(self) -> None:
        """Hand over what machine code has counted."""
        if not self._code.made.counted:
            return
        sums = self._machine.lanes_on[:-1].reshape(-1, self.wave.blocks)
        for pc, lanes in zip(self._code.made.counted, sums, strict=True):
            self.wave.rows.count_lanes_on(pc, lanes.astype(np.uint64))
