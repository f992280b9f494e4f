"""`wmma`: matrices with an unspecified layout in a warp's registers (PTX ISA 9.7.14.3).

The ISA leaves the layout to the hardware. Here a fragment is the matrix in memory order: register k
of lane l holds the elements from (32 k + l) times the elements per register on; A and B in their
own layout, C and D row-major. Registers beyond the matrix repeat the first ones. The arithmetic is
that of `mma`, for tf32 four terms at a time. The accesses write the rows of `isa/fragments.py`: in
machine code a lane moves the elements that it multiplies.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...isa.fragments import requests_of
from ...ptx.kernel import Instruction
from ..access.access import Access, as_addresses, read, resolve, write
from ..decode.address import describe, elements
from ..decode.decoder import Decoder, Fetch, StepTable
from ..decode.shuffle_vote import by_warp
from ..ops.lanes import LANES, Array, scalar
from ..warp.program import Group, Step
from .mma import multiply_step, registers_of
from .product import BITS, Layout, Product, each, numbered, width

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of `rows` by `columns` elements of a PTX type, row-major or column-major in
    memory."""

    rows: int
    columns: int
    kind: str
    by_rows: bool

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return BITS[self.kind]

    @property
    def unit(self) -> np.dtype[np.unsignedinteger]:
        """The type of a register: 64 bits for doubles, else 32."""
        return np.dtype(np.uint64 if self.bits == 64 else np.uint32)

    @property
    def used(self) -> int:
        """Registers per lane that the whole matrix takes."""
        return max(self.rows * self.columns * self.bits // (8 * self.unit.itemsize * LANES), 1)

    def turned(self, registers: Array) -> Array:
        """Return registers (n, warps, 32) with a matrix of this order in the other one."""
        words = np.ascontiguousarray(registers[: self.used].swapaxes(0, 1))
        shape = (self.rows, self.columns) if self.by_rows else (self.columns, self.rows)
        lines = words.view(f"u{self.bits // 8}").reshape(len(words), *shape)
        back: Array = np.ascontiguousarray(lines.swapaxes(1, 2)).reshape(len(words), -1)
        return back.view(self.unit).reshape(words.shape).swapaxes(0, 1)


def _decode_wmma(decoder: Decoder, instruction: Instruction) -> Step:
    if instruction.modifiers[0] == "load":
        return _load(decoder, instruction)
    if instruction.modifiers[0] == "store":
        return _store(decoder, instruction)
    return multiply_step(decoder, product_of(instruction), instruction)


STEPS: StepTable = {"wmma": _decode_wmma}


def _extent(instruction: Instruction) -> tuple[int, int, int]:
    shape = next(m for m in map(_SHAPE.fullmatch, instruction.modifiers) if m)
    return int(shape[1]), int(shape[2]), int(shape[3])


def _matrix(instruction: Instruction) -> Matrix:
    """Return the matrix of a load or store."""
    m, n, k = _extent(instruction)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(instruction.modifiers[1], (m, n))
    return Matrix(rows, columns, _kind(instruction), "row" in instruction.modifiers)


def _kind(instruction: Instruction) -> str:
    return next(m for m in reversed(instruction.modifiers) if m in BITS)


def _places(
    decoder: Decoder, instruction: Instruction, matrix: Matrix, place: int
) -> tuple[Access, Fetch]:
    """Return the access of a register, and the stride between lines of the matrix in elements."""
    access = describe(decoder, instruction, instruction.operands[place])
    access = replace(access, dtype=matrix.unit, count=1, hidden=True)
    if len(instruction.operands) > 2:
        stride = decoder.fetch(instruction.operands[2], "u32")
    else:
        line = matrix.columns if matrix.by_rows else matrix.rows
        number = scalar(line, np.dtype(np.uint32))
        stride = lambda frame: number  # noqa: E731
    return access, stride


def _addresses(group: Group, matrix: Matrix, access: Access, stride: Fetch, number: int) -> Array:
    """Return the address of each lane's register of this number."""
    line = (matrix.columns if matrix.by_rows else matrix.rows) * matrix.bits // 8
    at = (number * LANES + np.arange(LANES)) * matrix.unit.itemsize
    start = as_addresses(np.asarray(access.address(group.frame)))
    pitch = stride(group.frame).astype(np.int64) * matrix.bits // 8
    addresses: Array = start + at // line * pitch + at % line
    return addresses


def _requests(
    instruction: Instruction, matrix: Matrix, access: Access, stride: Fetch
) -> Callable[[Group], None]:
    """Return a function that writes the rows of a load or store."""
    requests = requests_of(instruction.modifiers)
    words, lanes = max(requests.width // 4, 1), requests.line.shape[1]
    kind = np.dtype(f"u{min(requests.width, 4)}")
    few = np.arange(LANES) < lanes

    def record(group: Group) -> None:
        start = as_addresses(np.asarray(access.address(group.frame)))
        pitch = stride(group.frame).astype(np.int64)
        mine = group.guarded_lanes(access.guard) & few
        for part, (line, column) in enumerate(zip(requests.line, requests.column, strict=True)):
            places = np.zeros((2, LANES), np.int64)
            places[:, :lanes] = line, column
            at = start + (places[0] * pitch + places[1]) * matrix.bits // 8
            own = replace(access, dtype=kind, count=words, part=part, hidden=False)
            resolve(group, mine, own, own.addresses(group, at))

    return record


def _load(decoder: Decoder, instruction: Instruction) -> Step:
    matrix = _matrix(instruction)
    kind = "b64" if matrix.bits == 64 else "b32"
    stores = [decoder.store(e, kind) for e in elements(instruction.operands[0])]
    access, stride = _places(decoder, instruction, matrix, 1)
    is_sum = instruction.modifiers[1] == "c"
    record = _requests(instruction, matrix, access, stride)

    def load(group: Group) -> None:
        record(group)
        parts = []
        lanes = group.guarded(access.guard)
        for number in range(matrix.used):
            places = _addresses(group, matrix, access, stride, number)
            parts.append(by_warp(group, read(group, lanes, access, places)[0]))
        register_words = np.stack(parts)
        if is_sum and not matrix.by_rows:
            register_words = matrix.turned(register_words)
        for number, store in enumerate(stores):
            store(group.frame, register_words[number % len(register_words)])

    return load


def _store(decoder: Decoder, instruction: Instruction) -> Step:
    matrix = _matrix(instruction)
    kind = "b64" if matrix.bits == 64 else "b32"
    fetches = [decoder.fetch(e, kind) for e in elements(instruction.operands[1])]
    access, stride = _places(decoder, instruction, matrix, 0)
    record = _requests(instruction, matrix, access, stride)

    def store(group: Group) -> None:
        record(group)
        lanes = group.guarded(access.guard)
        register_words = registers_of(group, fetches)
        if not matrix.by_rows:
            register_words = replace(matrix, by_rows=True).turned(register_words)
        for number in range(matrix.used):
            places = _addresses(group, matrix, access, stride, number)
            value = np.ascontiguousarray(register_words[number])
            write(group, lanes, access, places, [value])

    return store


def product_of(instruction: Instruction) -> Product:
    """Return the product of a `wmma.mma`."""
    by_rows = [word == "row" for word in instruction.modifiers if word in ("row", "col")]
    types = [word for word in instruction.modifiers if word in BITS]
    if len(types) == 2:
        types = [types[0], "f16", "f16", types[1]]
    to, a_kind, right, start = types
    counts = [len(elements(operand)) for operand in instruction.operands]
    return _product(
        _extent(instruction),
        (by_rows[0], by_rows[1]),
        (to, a_kind, right, start),
        (counts[0], counts[1], counts[2], counts[3]),
        "satfinite" in instruction.modifiers,
        "and" in instruction.modifiers,
    )


@cache
def _product(
    extent: tuple[int, int, int], by_rows: tuple[bool, bool], types: tuple[str, str, str, str],
    registers: tuple[int, int, int, int], saturate: bool, both: bool,
) -> Product:  # fmt: skip
    m, n, k = extent
    to, a_kind, right, start = types
    inner = k * BITS[a_kind] // width(a_kind)
    used = max(m * n * width(to) // (64 if BITS[to] == 64 else 32) // LANES, 1)
    register = np.arange(registers[0])[:, None, None] % used
    place = np.arange(each(to))[:, None]
    layout = Layout(
        _numbers((m, inner), a_kind, by_rows[0])[None],
        _numbers((inner, n), right, by_rows[1])[None],
        _numbers((m, n), start, True)[None],
        ((register * LANES + np.arange(LANES)) * each(to) + place).reshape(-1),
    )
    return Product(types, layout, registers, 4 if a_kind == "tf32" else inner, saturate, both)


def _numbers(shape: tuple[int, int], kind: str, by_rows: bool) -> NDArray[np.intp]:
    """Return the element numbers of a matrix in row-major or column-major memory."""
    place = np.arange(shape[0] * shape[1])
    place = place.reshape(shape) if by_rows else place.reshape(shape[::-1]).T
    register, lane = np.divmod(place // each(kind), LANES)
    return numbered(lane, register, place % each(kind), kind)
