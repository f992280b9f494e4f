"""`ldmatrix`, `stmatrix`, `movmatrix`: 8 x 8 matrices of 16-bit elements (PTX ISA 9.7.14.5).

Lanes 8 j to 8 j + 7 hold the addresses of the rows of matrix j, 16 bytes each. In registers, lane l
holds elements 2 (l % 4) and the next of row l / 4, or of that column with `.trans`.

Matrices of bytes (compute capability 10.0): of 8 rows of 16 bytes (`m8n16`, a register) lane l
holds bytes 4 (l % 4) to the fourth of row l / 4. Of 16 x 16 bytes transposed (`m16n16`, two
registers) it holds in register j the bytes of rows 4 (l % 4) + 2 j and the next at column l / 4,
then at column l / 4 + 8; a stored `m16n8` has one such register, of rows 2 (l % 4) and the next of
8. CUTLASS's SM100_U8x8_LDSM_T and SM100_U8x4_STSM_T have these layouts. Elements of 4 or 6 bits, 16
of them packed at the start of a row, become the lower bits of bytes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...ptx.kernel import Instruction
from ..access.access import Access, read, write
from ..decode.address import describe, elements
from ..decode.decoder import Decoder, Fetch, StepTable
from ..decode.shuffle_vote import by_warp
from ..ops.lanes import LANES, Array, Mask, pack, unpack
from ..warp.program import Group, Step

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}
ROW_BYTES = 16
"""Bytes per row of a matrix."""

TRANSPOSE = tuple(8 * (k % 8) + k // 8 for k in range(64))
"""The element of a matrix, row by row, that is each element of its transpose."""

_NOTHING = np.uint64(0)

_PACKED = {"b4x16_p64": 4, "b6x16_p32": 6}
"""Bits of the elements that a load unpacks to bytes."""


def matrices_of(instruction: Instruction) -> int:
    """Return how many matrices an instruction moves; 0 if their shape or type is not known."""
    if "m8n8" not in instruction.modifiers or instruction.type != "b16":
        return 0
    is_move = instruction.opcode == "movmatrix"
    return next((_COUNTS[m] for m in instruction.modifiers if m in _COUNTS), int(is_move))


def _decode_move(decoder: Decoder, instruction: Instruction) -> Step:
    shape = next((m for m in instruction.modifiers if m in _BYTE_SHAPES), "")
    if shape:
        return _BYTE_SHAPES[shape](decoder, instruction)
    if not matrices_of(instruction):
        raise decoder.refuse("cutrace does not know this shape or type of matrix")
    return _MOVES[instruction.opcode](decoder, instruction)


def _transposed(registers: Array, transposed: bool) -> Array:
    """Return a matrix in registers (warps, 32), transposed if `transposed`."""
    if not transposed:
        return registers
    halves = np.ascontiguousarray(registers).view(np.uint16)
    return np.ascontiguousarray(halves[:, TRANSPOSE]).view(np.uint32)


def _transpose(decoder: Decoder, instruction: Instruction) -> Step:
    to, source = instruction.operands
    fetch, store = decoder.fetch(source, "b32"), decoder.store(to, "b32")
    return lambda group: store(group.frame, _transposed(by_warp(group, fetch(group.frame)), True))


def _rows(decoder: Decoder, instruction: Instruction, place: int) -> Access:
    access = describe(decoder, instruction, instruction.operands[place])
    return replace(access, dtype=np.dtype(np.uint64), count=2)


def _lanes(group: Group, guard: Fetch | None, count: int) -> Mask:
    """Return the lanes that hold addresses, in the group's shape."""
    active = pack(group.guarded_lanes(guard)) & np.uint32((1 << 8 * count) - 1)
    return unpack(active)


def _load(decoder: Decoder, instruction: Instruction) -> Step:
    count, access = matrices_of(instruction), _rows(decoder, instruction, 1)
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
            store(group.frame, _transposed(rows.reshape(-1, LANES), transposed))

    return load


def _store(decoder: Decoder, instruction: Instruction) -> Step:
    count, access = matrices_of(instruction), _rows(decoder, instruction, 0)
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


def _load_bytes(decoder: Decoder, instruction: Instruction) -> Step:
    modifiers = instruction.modifiers
    count = next(_COUNTS[m] for m in modifiers if m in _COUNTS)
    transposed, bits = (
        "trans" in modifiers,
        next((_PACKED[m] for m in modifiers if m in _PACKED), 8),
    )
    if transposed != ("m16n16" in modifiers) or (bits == 8 and not transposed):
        raise decoder.refuse("cutrace does not know this shape or type of matrix")
    access = _rows(decoder, instruction, 1)
    stores = [decoder.store(e, "b32") for e in elements(instruction.operands[0])]
    rows = 16 if transposed else 8
    if len(stores) != count * rows // 8:
        raise decoder.refuse(f"expected {count * rows // 8} registers")

    def load(group: Group) -> None:
        lanes = _lanes(group, access.guard, count * rows // 8)
        loaded = read(group, lanes, access, access.address(group.frame))
        halves = np.stack([by_warp(group, half) for half in loaded], axis=-1)
        whole = np.where(by_warp(group, lanes)[:, :, None], halves, _NOTHING)
        octets = unpack_bytes(np.ascontiguousarray(whole).view(np.uint8), bits)
        for register, store in enumerate(stores):
            row, column = _places(register, transposed)
            words = np.ascontiguousarray(octets[:, row, column]).view(np.uint32)
            store(group.frame, words[:, :, 0])

    return load


def unpack_bytes(octets: Array, bits: int) -> Array:
    """Return rows (warps, 32, 16) of bytes from rows of 16 elements of 8 or fewer bits."""
    if bits == 8:
        return octets
    places = np.arange(16 * bits).reshape(16, bits)
    single = octets[:, :, places // 8] >> (places % 8).astype(np.uint8) & np.uint8(1)
    elements_: Array = (single << np.arange(bits, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8)
    return elements_


def _places(register: int, transposed: bool) -> tuple[Array, Array]:
    """Return the row, by the lane that addresses it, and the column of each byte of a register of
    each lane, (32, 4)."""
    lane, octet = np.arange(LANES)[:, None], np.arange(4)[None]
    if not transposed:
        return np.broadcast_to(8 * register + lane // 4, (LANES, 4)), 4 * (lane % 4) + octet
    row = 16 * (register // 2) + 4 * (lane % 4) + 2 * (register % 2) + octet % 2
    return row, lane // 4 + 8 * (octet // 2)


def _store_bytes(decoder: Decoder, instruction: Instruction) -> Step:
    count = next(_COUNTS[m] for m in instruction.modifiers if m in _COUNTS)
    access = _rows(decoder, instruction, 0)
    fetches = [decoder.fetch(e, "b32") for e in elements(instruction.operands[1])]
    if len(fetches) != count or "trans" not in instruction.modifiers:
        raise decoder.refuse(f"expected {count} registers of a transposed matrix")
    lane, octet = np.arange(LANES)[:, None], np.arange(4)[None]

    def store(group: Group) -> None:
        frame = group.frame
        lanes = _lanes(group, access.guard, count)
        rows = np.zeros((group.rows, LANES, ROW_BYTES), np.uint8)
        for number, fetch in enumerate(fetches):
            words = np.ascontiguousarray(by_warp(group, fetch(frame)))
            row = 8 * number + 2 * (lane % 4) + octet % 2
            rows[:, row, lane // 4 + 8 * (octet // 2)] = words.view(np.uint8).reshape(-1, LANES, 4)
        halves = rows.view(np.uint64)
        values = [np.ascontiguousarray(halves[:, :, k]) for k in range(2)]
        write(group, lanes, access, access.address(frame), values)

    return store


_BYTE_SHAPES = {"m8n16": _load_bytes, "m16n16": _load_bytes, "m16n8": _store_bytes}
_MOVES = {"ldmatrix": _load, "stmatrix": _store, "movmatrix": _transpose}
STEPS: StepTable = dict.fromkeys(_MOVES, _decode_move)
