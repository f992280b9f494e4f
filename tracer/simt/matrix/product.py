"""D = A B + C by a warp: the layout of the operands in registers, and the arithmetic.

The elements of an operand are numbered by register, place in it and lane: element (register * each
+ place) * 32 + lane, where a register holds `each`. The compiled engine uses the same layout, see
codegen/emit_mma.py.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ..ops import tensor
from ..ops.lanes import LANES, Array

BITS = {
    **{"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "e4m3": 8, "e5m2": 8},
    **{"u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1},
}


def width(kind: str) -> int:
    """Return the bits of an element of a PTX type; elements of `b1` are words of 32."""
    return 32 if kind == "b1" else BITS[kind]


def each(kind: str) -> int:
    """Return the number of elements of a PTX type per register."""
    return max(32 // width(kind), 1)


def numbered(lane: Array, register: Array, place: Array, kind: str) -> NDArray[np.intp]:
    """Return the numbers of the elements at these lanes, registers and places."""
    indices: NDArray[np.intp] = (register * each(kind) + place) * LANES + lane
    return indices


@dataclass(frozen=True, slots=True)
class Layout:
    """Element numbers: `a` (rows, inner, products), `b` (inner, columns, products) and `c` (rows,
    columns, products); `d` is the place in `c` of each element of D, in the order of numbers."""

    a: NDArray[np.intp]
    b: NDArray[np.intp]
    c: NDArray[np.intp]
    d: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The layout of the metadata of a sparse A: 4 bits per row and group of four columns, 2 of
    which A stores; `lane` and `shift` are (rows, groups). A column is an element, two elements
    of 4 bits, or half of an element of 32 bits."""

    lane: NDArray[np.intp]
    shift: NDArray[np.uint32]
    bits: int

    def expand(self, stored: Array, metadata: Array) -> Array:
        """Return A (rows, 2 inner, warps), from its stored elements (rows, inner, warps) and the
        metadata (warps, 32); the other elements are zero."""
        codes = np.moveaxis(metadata[:, self.lane] >> self.shift & 15, 0, -1).astype(np.intp)
        start = 4 * np.arange(codes.shape[1])[None, :, None]
        columns = start + (codes & 3)
        if self.bits == 32:
            columns //= 2
        else:
            columns = np.stack([columns, start + (codes >> 2)], 2)
        if self.bits == 4:
            columns = 2 * columns[..., None, :] + np.arange(2)[:, None]
        whole = np.zeros((stored.shape[0], 2 * stored.shape[1], stored.shape[2]), stored.dtype)
        np.put_along_axis(whole, columns.reshape(stored.shape), stored, 1)
        return whole


@dataclass(frozen=True)
class Product:
    """The PTX types of D, A, B and C, their layout, and the number of registers per lane.

    Products are added in blocks of `terms`, each to the sum of the earlier ones. The layout of a
    sparse A is that of its stored elements.
    """

    types: tuple[str, str, str, str]
    layout: Layout
    registers: tuple[int, int, int, int]
    terms: int
    saturate: bool = False
    both: bool = False
    sparsity: Sparsity | None = None

    @cached_property
    def octets(self) -> bool:
        """True for factors of 8-bit floats."""
        return self.types[1] in ("e4m3", "e5m2")

    def __call__(self, a: Array, b: Array, c: Array, metadata: Array | None = None) -> Array:
        """Return the registers of D (n, warps, 32) from those of A, B, C, and the metadata (warps,
        32) of a sparse A."""
        to, *kinds = self.types
        layout = self.layout
        places = layout.a, layout.b, layout.c
        a_values, right, start = (
            _elements(registers, kind)[place].reshape(*place.shape[:2], -1)
            for registers, kind, place in zip((a, b, c), kinds, places, strict=True)
        )
        if self.sparsity and metadata is not None:
            a_values = self.sparsity.expand(a_values, metadata)
        product = self._multiply(a_values, right, start)
        return _packed(product.reshape(layout.c.size, -1)[layout.d], to)

    def _multiply(self, a: Array, b: Array, c: Array) -> Array:
        to, a_kind, right, start = self.types
        if a_kind == "f64":
            return tensor.multiply_doubles(*(x.view(np.float64) for x in (a, b, c))).view(np.uint64)
        if a_kind == "b1":
            return tensor.multiply_bits(a, b, c.view(np.int32), self.both).view(np.uint32)
        if to == "s32":
            wide = _signed(a, a_kind), _signed(b, right), c.view(np.int32)
            return tensor.multiply_integers(*wide, self.saturate).view(np.uint32)
        first, second, total = (
            tensor.of_bits(x.astype(f"u{width(kind) // 8}"), kind)
            for x, kind in ((a, a_kind), (b, right), (c, start))
        )
        if self.octets:
            return tensor.multiply_floats(first, second, total, to, 4 if self.sparsity else 2)
        for start_at in range(0, len(second), self.terms):
            some = slice(start_at, start_at + self.terms)
            bits = tensor.multiply_floats(first[:, some], second[some], total, to, 0)
            total = tensor.of_bits(bits, to)
        return bits


def _elements(registers: Array, kind: str) -> Array:
    """Return the bits of all elements (number, warps) of registers (n, warps, 32)."""
    count = each(kind)
    if count == 1:
        words: Array = registers.swapaxes(1, 2).reshape(-1, registers.shape[1])
        return words
    shifts = np.arange(count, dtype=np.uint32)[:, None, None] * np.uint32(width(kind))
    parts = registers[:, None] >> shifts & np.uint32((1 << width(kind)) - 1)
    elements: Array = parts.swapaxes(2, 3).reshape(-1, registers.shape[1])
    return elements


def _packed(elements: Array, kind: str) -> Array:
    """Return elements (number, warps) as registers (n, warps, 32)."""
    count = each(kind)
    parts = elements.reshape(-1, count, LANES, elements.shape[1]).swapaxes(2, 3)
    if count == 1:
        only: Array = parts[:, 0]
        return only
    shifts = np.arange(count, dtype=np.uint32)[:, None, None] * np.uint32(width(kind))
    packed: Array = np.bitwise_or.reduce(parts.astype(np.uint32) << shifts, axis=1)
    return packed


def _signed(bits: Array, kind: str) -> Array:
    wide = bits.astype(np.int64)
    top = 1 << (BITS[kind] - 1)
    return (wide ^ top) - top if kind[0] == "s" else wide
