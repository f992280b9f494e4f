"""`ldmatrix`, `stmatrix`, `movmatrix`: 8 x 8 matrices of 16-bit elements (PTX ISA 9.7.14.5).

Lanes 8 j to 8 j + 7 hold the addresses of the rows of matrix j, 16 bytes each. In registers, lane l
holds elements 2 (l % 4) and the next of row l / 4, or of that column with `.trans`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...ptx.kernel import Instruction
from ..access.access import Access, read, write
from ..decode.address import describe, elements
from ..decode.decoder import Decoder, Fetch, StepTable
from ..decode.shuffle_vote import active_lanes, by_warp, put
from ..ops.lanes import LANES, Array, Mask, pack, unpack
from ..warp.program import Group, Step

COUNTS = {"x1": 1, "x2": 2, "x4": 4}
"""Number of matrices by the modifier."""

ROW_BYTES = 16
"""Bytes per row of a matrix."""


_NOTHING = np.uint64(0)


def _decode_move(decoder: Decoder, instruction: Instruction) -> Step:
    if "m8n8" not in instruction.modifiers or instruction.type != "b16":
        raise decoder.refuse("cutrace does not know this shape or type of matrix")
    return _MOVES[instruction.opcode](decoder, instruction)


def _transposed(registers: Array, transposed: bool) -> Array:
    """Return a matrix in registers (warps, 32), transposed if `transposed`."""
    if not transposed:
        return registers
    halves = np.ascontiguousarray(registers).view(np.uint16).reshape(-1, 8, 8)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(-1, 64).view(np.uint32)


def _transpose(decoder: Decoder, instruction: Instruction) -> Step:
    to, source = instruction.operands
    fetch, store = decoder.fetch(source, "b32"), decoder.store(to, "b32")
    return lambda group: put(group, store, _transposed(by_warp(group, fetch(group.frame)), True))


def _rows(decoder: Decoder, instruction: Instruction, place: int) -> Access:
    access = describe(decoder, instruction, instruction.operands[place])
    return replace(access, dtype=np.dtype(np.uint64), count=2)


def _lanes(group: Group, guard: Fetch | None, count: int) -> Mask:
    """Return the lanes that hold addresses, in the group's shape."""
    active = pack(active_lanes(group, guard)) & np.uint32((1 << 8 * count) - 1)
    return unpack(active)


def _load(decoder: Decoder, instruction: Instruction) -> Step:
    count = next(COUNTS[m] for m in instruction.modifiers if m in COUNTS)
    access = _rows(decoder, instruction, 1)
    stores = [decoder.store(e, "b32") for e in elements(instruction.operands[0])]
    if len(stores) != count:
        raise decoder.refuse(f"expected {count} registers")
    transposed = "trans" in instruction.modifiers

    def load(group: Group) -> None:
        lanes = _lanes(group, access.guard, count)
        loaded = read(group, lanes, access, access.address(group.frame))
        rows = np.stack([by_warp(group, half) for half in loaded], axis=-1)
        words = np.where(by_warp(group, lanes)[:, :, None], rows, _NOTHING).view(np.uint32)
        for matrix, store in enumerate(stores):
            rows = np.ascontiguousarray(words[:, 8 * matrix : 8 * matrix + 8])
            put(group, store, _transposed(rows.reshape(-1, LANES), transposed))

    return load


def _store(decoder: Decoder, instruction: Instruction) -> Step:
    count = next(COUNTS[m] for m in instruction.modifiers if m in COUNTS)
    access = _rows(decoder, instruction, 0)
    fetches = [decoder.fetch(e, "b32") for e in elements(instruction.operands[1])]
    if len(fetches) != count:
        raise decoder.refuse(f"expected {count} registers")
    transposed = "trans" in instruction.modifiers

    def store(group: Group) -> None:
        frame = group.frame
        lanes = _lanes(group, access.guard, count)
        matrices = [_transposed(by_warp(group, fetch(frame)), transposed) for fetch in fetches]
        write(group, lanes, access, access.address(frame), _row_halves(matrices))

    return store


def _row_halves(matrices: Sequence[Array]) -> list[Array]:
    """Return the first and second eight bytes of the row at each lane's address."""
    words = np.zeros((matrices[0].shape[0], LANES, 4), dtype=np.uint32)
    for number, matrix in enumerate(matrices):
        words[:, 8 * number : 8 * number + 8] = matrix.reshape(-1, 8, 4)
    halves = words.view(np.uint64)
    return [np.ascontiguousarray(halves[:, :, k]) for k in range(2)]


_MOVES = {"ldmatrix": _load, "stmatrix": _store, "movmatrix": _transpose}
STEPS: StepTable = dict.fromkeys(_MOVES, _decode_move)
