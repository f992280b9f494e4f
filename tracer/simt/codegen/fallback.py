"""Fallback: run an instruction with the array engine in the middle of compiled code.

Rare or long instructions (texture samples, `printf`, matrix loads) are written once, for arrays.
Compiled code reaches such an instruction with all warps of the group. The fallback copies their
registers from the frames into arrays, runs the array engine's step, and writes the results back
under the active mask.
"""

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...ptx.kernel import BasicBlock
from ..decode import shuffle_vote
from ..decode.decoder import Decoder
from ..decode.ptx_program import PtxProgram
from ..decode.special_register import special_registers
from ..interp.decode import decode_instruction
from ..ops.lanes import Array
from ..warp.program import Group, Step, Terminator
from .emit_kernel import KernelText
from .register_frame import Place

LanesOf: TypeAlias = Callable[[Place], NDArray[Any]]
"""Returns the lanes of all warps at a place of the frame, (warps, 32)."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A slot of the array engine, its place in the frame and its NumPy type."""

    number: int
    place: Place
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Fallback:
    """A decoded instruction: the step, or the terminator of its block, with its reads and writes.

    `specials` are pairs of a slot and the name of a special register.
    """

    step: Step | None
    ending: Terminator | None
    reads: tuple[_Slot, ...]
    writes: tuple[_Slot, ...]
    specials: tuple[tuple[int, str], ...]


class Fallbacks:
    """The fallbacks of a kernel for one launch; instructions are decoded when first needed."""

    def __init__(self, program: PtxProgram, kernel_text: KernelText) -> None:
        self._program = program
        self._made = kernel_text
        self._ready: dict[int, Fallback] = {}
        self._lock = Lock()

    def find(self, pc: int) -> Fallback:
        """Return the fallback at `pc`."""
        if pc not in self._ready:
            with self._lock:  # waves may run on several threads, and share the decoder
                self._ready[pc] = self._decode(self._program.decoder, pc)
        return self._ready[pc]

    def place_of(self, slot: int) -> Place:
        """Return the place of the register that takes the result of a barrier's vote."""
        slots = self._program.decoder.slots
        function, name = cast("tuple[int, str]", slots.key_of(slot))
        return self._made.frame.place(function, name)

    def _decode(self, decoder: Decoder, pc: int) -> Fallback:
        block = _block_of(self._program.kernel.blocks, pc)
        slots = decoder.slots
        decoder.function, decoder.block = block.function, block
        slots.begin_block()
        step, ending = decode_instruction(decoder, pc)
        if pc in decoder.kernel.meetings:  # without waiting: all lanes are here
            instruction = decoder.kernel.instructions[pc]
            step = shuffle_vote.STEPS[instruction.opcode](decoder, instruction)
        places = self._made.places[pc]
        specials: list[tuple[int, str]] = []
        reads = []
        for number in sorted(slots.read_first | slots.written):
            key = slots.key_of(number)
            if isinstance(key, str):
                specials.append((number, key))
            elif (place := self._place(key, places)) is not None:
                reads.append(_Slot(number, place, slots.zeros[number].dtype))
        writes = tuple(slot for slot in reads if slot.number in slots.written)
        return Fallback(step, ending, tuple(reads), writes, tuple(specials))

    def _place(self, key: Any, places: Mapping[str, Place]) -> Place | None:
        """Return the place of a slot; None for a kernel argument, which is constant."""
        if key in self._made.frame.others:
            return self._made.frame.others[key]
        if len(key) == 4:
            return None
        return places.get(key[1]) or self._made.frame.place(*key)

    def enter(self, lanes_of: LanesOf, group: Group, escaped: Fallback) -> None:
        """Load the registers that the instruction reads into the group's array frame."""
        frame = list(self._program.decoder.slots.zeros)
        for slot in escaped.reads:
            frame[slot.number] = _group_lanes(lanes_of(slot.place), group, slot.dtype)
        if escaped.specials:
            wave, names = group.wave, [name for _, name in escaped.specials]
            values = special_registers(wave.program.launch, wave.numbers, names)
            for number, name in escaped.specials:
                value = values[name]
                frame[number] = value if len(value) == 1 else value[group.warps]
        group.frame, group.committed = frame, list(frame)

    def leave(self, lanes_of: LanesOf, group: Group, escaped: Fallback) -> None:
        """Write the results of the instruction to the frames of the warps."""
        for slot in escaped.writes:
            value = group.frame[slot.number]
            if value is group.committed[slot.number]:
                continue
            lane_values = np.broadcast_to(value, group.shape)
            lane_values = np.ascontiguousarray(lane_values).view(stored_as(slot.place))
            frame_lanes = lanes_of(slot.place)
            if group.lanes is None:
                frame_lanes[group.warps] = lane_values
            else:
                old = frame_lanes[group.warps]
                frame_lanes[group.warps] = np.where(group.lanes, lane_values, old)


def _block_of(blocks: tuple[BasicBlock, ...], pc: int) -> BasicBlock:
    return next(block for block in blocks if block.first <= pc < block.last)


def stored_as(place: Place) -> np.dtype[Any]:
    """Return the NumPy type that copies the lanes of a place bit for bit."""
    return np.dtype(np.complex128) if place.size == 16 else np.dtype(f"u{place.size}")


def _group_lanes(frame_lanes: NDArray[Any], group: Group, dtype: np.dtype[Any]) -> Array:
    """Return the lanes of a place (warps, 32) of the warps of a group."""
    values = frame_lanes[group.warps]
    return values != 0 if dtype == np.bool_ else values.view(dtype)
