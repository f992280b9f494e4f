"""`mma.sync`: the fragments of a warp's lanes to matrices, and the product back (ISA 9.7.14).

Lane l holds of A the rows l / 4 and, for 16 rows, l / 4 + 8; of a row it holds as many elements
side by side as a register takes, from column l % 4 times that many; further registers go on behind
those of the other lanes. B is the same with columns for rows. Of C and D it holds columns
2 (l % 4) and the next.
"""

import re
from dataclasses import dataclass

import numpy as np

from ...ptx.kernel import Instruction
from ..array.decoder import Decoder
from ..array.program import Group, Step
from ..array.shuffle_vote import by_warp, put
from ..array.slot import Fetch
from ..lanes import LANES, Array
from ..memory.address import elements
from ..op import tensor
from .mma_m8n8k4 import QuadProduct

BITS = {
    **{"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "e4m3": 8, "e5m2": 8},
    **{"u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1},
}
_QUAD_TYPES = (("f16", "f16"), ("f32", "f32"), ("f32", "f16"))
_SHAPE = re.compile(r"m(\d+)n8k(\d+)")
_LANE = np.arange(LANES)


@dataclass(frozen=True, slots=True)
class Fragment:
    """Where the elements of a matrix lie: for each of them lane, register and place in it.

    `lane`, `register` and `place` are (rows, columns) for a matrix that is read.
    """

    lane: Array
    register: Array
    place: Array
    bits: int

    def read(self, registers: Array) -> Array:
        """Return the elements' bits (rows, columns, warps) of registers (n, warps, 32)."""
        words: Array = registers[self.register, :, self.lane]
        if self.bits >= 8 * words.dtype.itemsize:
            return words
        shift = (self.place * self.bits).astype(words.dtype)[:, :, None]
        elements: Array = (words >> shift) & words.dtype.type((1 << self.bits) - 1)
        return elements


def factor(rows: int, columns: int, bits: int) -> Fragment:
    """Return the fragment of A; that of B is the transposed one of its columns (8 rows)."""
    width = max(32 // bits, 1)
    lane = 4 * (np.arange(rows)[:, None] % 8) + np.arange(columns)[None] // width % 4
    below = np.arange(rows)[:, None] // 8
    behind = np.arange(columns)[None] // (4 * width)
    register = below + behind * (rows // 8)
    place = np.broadcast_to(np.arange(columns)[None] % width, lane.shape)
    return Fragment(lane, register, place, bits)


def accumulator(rows: int, bits: int) -> Fragment:
    """Return the fragment of C and D, eight columns."""
    row, column = np.arange(rows)[:, None], np.arange(8)[None]
    lane = 4 * (row % 8) + column // 2
    number = 2 * (row // 8) + column % 2
    if bits == 16:
        return Fragment(lane, number // 2, number % 2, bits)
    return Fragment(lane, number, np.zeros_like(number), bits)


@dataclass(frozen=True, slots=True)
class Product:
    """The types and shape of one `mma`: D = A B + C."""

    rows: int
    inner: int
    types: tuple[str, str, str, str]
    saturate: bool
    both: bool

    @property
    def registers(self) -> tuple[int, int, int, int]:
        """How many registers a lane has of D, A, B and C."""
        to, left, right, start = (BITS[kind] for kind in self.types)
        products = self.rows * 8, self.rows * self.inner, 8 * self.inner, self.rows * 8
        bits = max(to, 16), left, right, max(start, 16)
        sizes = (n * b // LANES for n, b in zip(products, bits, strict=True))
        wide = 64 if left == 64 else 32
        d, a, b, c = (size // wide for size in sizes)
        return d, a, b, c

    def __call__(self, a: Array, b: Array, c: Array) -> Array:
        """Return the registers of D (n, warps, 32) from those of A, B and C."""
        to, left, right, _ = self.types
        first = factor(self.rows, self._steps(left), self._width(left)).read(a)
        second = factor(8, self._steps(right), self._width(right)).read(b).swapaxes(0, 1)
        start = accumulator(self.rows, BITS[self.types[3]]).read(c)
        return self._spread(self._multiply(first, second, start), to)

    def _width(self, kind: str) -> int:
        return 32 if kind == "b1" else BITS[kind]

    def _steps(self, kind: str) -> int:
        return self.inner // 32 if kind == "b1" else self.inner

    def _multiply(self, a: Array, b: Array, c: Array) -> Array:
        to, left, right, start = self.types
        if left == "f64":
            return tensor.multiply_doubles(*(x.view(np.float64) for x in (a, b, c))).view(np.uint64)
        if left == "b1":
            return tensor.multiply_bits(a, b, c.view(np.int32), self.both).view(np.uint32)
        if to == "s32":
            wide = _signed(a, left), _signed(b, right), c.view(np.int32)
            return tensor.multiply_integers(*wide, self.saturate).view(np.uint32)
        first, second, third = (
            tensor.of_bits(_narrow(x, BITS[kind]), kind)
            for x, kind in ((a, left), (b, right), (c, start))
        )
        return tensor.multiply_floats(first, second, third, to, octets=BITS[left] == 8)

    def _spread(self, d: Array, kind: str) -> Array:
        """Return D (rows, 8, warps) as registers (n, warps, 32)."""
        halves = 2 if kind == "f16" else 1
        count = self.rows // 4
        number = np.arange(count)[:, None]
        row = _LANE[None] // 4 + 8 * (number // 2)
        column = 2 * (_LANE[None] % 4) + number % 2
        elements: Array = d[row, column].swapaxes(1, 2)
        if halves == 1:
            return elements
        wide = elements.astype(np.uint32)
        packed: Array = wide[0::2] | wide[1::2] << np.uint32(16)
        return packed


def _narrow(bits: Array, width: int) -> Array:
    return bits.astype(f"u{width // 8}") if width < 32 else bits


def _signed(bits: Array, kind: str) -> Array:
    wide = bits.astype(np.int64)
    top = 1 << (BITS[kind] - 1)
    return (wide ^ top) - top if kind[0] == "s" else wide


def decode_matrix(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of an `mma`, or None if the instruction is none."""
    if instruction.opcode != "mma":
        return None
    product = _product(instruction)
    if product is None:
        raise decoder.refuse("cutrace does not know this shape or type of mma")
    to, *sources = instruction.operands
    kind = "b64" if product.types[1] == "f64" else "b32"
    if tuple(len(elements(o)) for o in (to, *sources)) != product.registers:
        raise decoder.refuse("expected {}, {}, {} and {} registers".format(*product.registers))
    fetches = [[decoder.fetch(e, kind) for e in elements(source)] for source in sources]
    stores = [decoder.store(e, kind) for e in elements(to)]

    def multiply(group: Group) -> None:
        a, b, c = (_registers(group, part) for part in fetches)
        for store, register in zip(stores, product(a, b, c), strict=True):
            put(group, store, register)

    return multiply


def _registers(group: Group, fetches: list[Fetch]) -> Array:
    return np.stack([by_warp(group, fetch(group.frame)) for fetch in fetches])


def _quad_product(
    instruction: Instruction, factors: tuple[str, str], others: tuple[str, str]
) -> QuadProduct | None:
    by_rows = tuple(m == "row" for m in instruction.modifiers if m in ("row", "col"))
    if factors != ("f16", "f16") or others not in _QUAD_TYPES or len(by_rows) != 2:
        return None
    return QuadProduct((by_rows[0], by_rows[1]), others)


def _product(instruction: Instruction) -> Product | QuadProduct | None:
    modifiers = instruction.modifiers
    shape = next((m for m in map(_SHAPE.fullmatch, modifiers) if m), None)
    types = tuple(m for m in modifiers if m in BITS)
    if shape is None or len(types) != 4 or "sp" in modifiers or len(instruction.operands) != 4:
        return None
    rows, inner = int(shape[1]), int(shape[2])
    to, left, right, start = types
    if (rows, inner) == (8, 4) and left != "f64":
        return _quad_product(instruction, (left, right), (to, start))
    return Product(
        rows, inner, (to, left, right, start), "satfinite" in modifiers, "and" in modifiers
    )
