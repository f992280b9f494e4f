"""Products of tiles as the tensor cores of compute capability 10.0 and 12.0 compute them.

All products of 8-bit floats and narrower ones, and of f16, bf16 and tf32, are cut off 25 bits below
the largest exponent of a product or of the accumulator, and added exactly. With scaled blocks a
product counts with the exponents of its scales. Of 4-bit floats with scales 16 products are added
exactly, and the scaled sums are cut off 35 bits below the largest exponent of their scales or of
the accumulator. The sum is cut off to f32, or rounded to f16.

No such device was available. The rules are those of MMA-Sim (arXiv 2511.10909), whose authors found
a B200 and an RTX of capability 12.0 equal to them bit for bit. Sparse factors are not among them:
here they follow the same rules, for what is in memory.
"""

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop_codegen import compile_routines
from ....jit.structure import I64, Struct
from ....jit.value import bits_of, double_of, truncate
from .format import FORMATS, widen
from .lanes import Array
from .tensor import KEPT_BITS, LARGEST, LEAST, NOTHING, Format, exponent_of, narrow, real_format

GROUP, GROUP_BITS = 16, 35
"""Products of 4-bit floats that share a scale's exponent, and the bits that their sums keep."""

_LEAST = {"e4m3": -6, "e5m2": -14, "e2m1": 0, "e2m3": 0, "e3m2": -2}
"""The least exponents of the products' factors; other types have a number's own."""


class Tile(Struct):
    """D = A B + C of `tiles` tiles: A (rows, inner), the transpose of B (columns, inner), C and D
    (rows, columns) as the bits of doubles, with the exponents of the factors. Every row of A and
    every column of B has `blocks` scales; `group` products are added before they are scaled. A tile
    without scales has 0 blocks, B itself (inner, columns), and rows of sums.
    """

    a: I64
    b: I64
    c: I64
    d: I64
    a_exponents: I64
    b_exponents: I64
    a_scales: I64
    b_scales: I64
    a_scale_exponents: I64
    b_scale_exponents: I64
    largest: I64
    scale: I64
    total: I64
    plain: I64
    to: Format
    tiles: int
    rows: int
    columns: int
    inner: int
    blocks: int
    group: int
    kept: int


def multiply_tiles(tile: Tile) -> None:
    """Multiply tiles, one after another."""
    rows, columns = tile.rows, tile.columns
    for number in range(tile.tiles):
        for row in range(rows):
            line = number * rows + row
            if tile.blocks == 0:
                sum_row(tile, line, number * tile.inner * columns)
            for column in range(columns):
                other = number * columns + column
                own = line * columns + column
                if tile.blocks == 0:
                    exact = tile.total[column]
                else:
                    exact = sum_scaled(tile, line, other, tile.c[own])
                word = narrow(tile.to, exact, tile.to.width == 16)
                tile.d[own] = 0 if word << 65 - tile.to.width == 0 else word


def sum_row(tile: Tile, line: int, right: int) -> None:
    """Sum the products of a row and all columns, each cut off."""
    columns = tile.columns
    largest, scale, total, plain = tile.largest, tile.scale, tile.total, tile.plain
    for j in range(columns):
        largest[j] = exponent_of(tile.c[line * columns + j], -126)
    for k in range(tile.inner):
        exponent, row = tile.a_exponents[line * tile.inner + k], right + k * columns
        for j in range(columns):
            largest[j] = max(largest[j], exponent + tile.b_exponents[row + j])
    for j in range(columns):
        largest[j] = min(max(largest[j], LEAST), LARGEST)
        scale[j] = 1023 + tile.kept - largest[j] << 52
        plain[j] = tile.c[line * columns + j]
        total[j] = bits_of(truncate(double_of(plain[j]) * double_of(scale[j])))
    for k in range(tile.inner):
        factor, row = double_of(tile.a[line * tile.inner + k]), right + k * columns
        for j in range(columns):
            term = factor * double_of(tile.b[row + j])
            plain[j] = bits_of(double_of(plain[j]) + term)
            whole = truncate(term * double_of(scale[j]))
            total[j] = bits_of(double_of(total[j]) + whole)
    for j in range(columns):
        exact = double_of(total[j]) * double_of(1023 - tile.kept + largest[j] << 52)
        total[j] = bits_of(exact) if plain[j] >> 52 & 0x7FF != 0x7FF else plain[j]


def sum_scaled(tile: Tile, line: int, other: int, start: int) -> int:
    """Return the sum of the scaled groups of products of a row and a column, each group cut off.

    A product by itself counts with the exponents of its factors, too.
    """
    block = tile.inner // tile.blocks
    left, right = line * tile.inner, other * tile.inner
    largest = exponent_of(start, -126)
    for first in range(0, tile.inner, tile.group):
        at = first // block
        exponent = tile.a_scale_exponents[line * tile.blocks + at]
        exponent = exponent + tile.b_scale_exponents[other * tile.blocks + at]
        if tile.group == 1:
            exponent = exponent + tile.a_exponents[left + first] + tile.b_exponents[right + first]
        elif bits_of(group_of(tile, left + first, right + first)) << 1 == 0:
            exponent = NOTHING
        largest = max(largest, exponent)
    largest = min(max(largest, LEAST), LARGEST)
    scale = double_of(1023 + tile.kept - largest << 52)
    plain = double_of(start)
    total = truncate(plain * scale)
    for first in range(0, tile.inner, tile.group):
        at = first // block
        term = group_of(tile, left + first, right + first)
        term = term * double_of(tile.a_scales[line * tile.blocks + at])
        term = term * double_of(tile.b_scales[other * tile.blocks + at])
        plain = plain + term
        total = total + truncate(term * scale)
    exact = bits_of(total * double_of(1023 - tile.kept + largest << 52))
    return bits_of(plain) if bits_of(plain) >> 52 & 0x7FF == 0x7FF else exact


def group_of(tile: Tile, left: int, right: int) -> float:
    """Return the sum of a group's products, which is exact."""
    total = 0.0
    for k in range(tile.group):
        total = total + double_of(tile.a[left + k]) * double_of(tile.b[right + k])
    return total


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of the rows of A and of the columns of B, (tiles, rows, blocks), in a format:
    `ue8m0` has an exponent only, `ue4m3` is a positive `e4m3`."""

    kind: str
    a: Array
    b: Array


def multiply_floats(
    types: tuple[str, str, str, str], a: Array, b: Array, c: Array,
    scales: Scales | None = None, group: int = 1,
) -> NDArray[np.int64]:  # fmt: skip
    """Return the patterns of D (tiles, rows, columns) from those of A (tiles, rows, inner), of the
    transpose of B and of C, of the PTX types of D, A, B and C."""
    to, left, right, start = types
    tile = Tile()
    tile.tiles, tile.rows, tile.inner = a.shape
    tile.columns = b.shape[1]
    tile.a, tile.a_exponents = _numbers(a, left)
    tile.b, tile.b_exponents = _numbers(b if scales else b.swapaxes(1, 2), right)
    tile.c = _numbers(c, start)[0]
    tile.d = np.zeros(c.size, np.int64)
    tile.group, tile.kept = group, KEPT_BITS if group == 1 else GROUP_BITS
    if scales is None:
        tile.blocks = 0
        tile.a_scales = tile.b_scales = np.zeros(1, np.int64)
        tile.a_scale_exponents = tile.b_scale_exponents = np.zeros(1, np.int64)
    else:
        tile.blocks = scales.a.shape[2]
        tile.a_scales, tile.a_scale_exponents = _scales(scales.a, scales.kind)
        tile.b_scales, tile.b_scale_exponents = _scales(scales.b, scales.kind)
    tile.largest, tile.scale, tile.total, tile.plain = np.zeros((4, tile.columns), np.int64)
    tile.to = real_format(to)
    (run,) = compile_routines(multiply_tiles, vectors=True)
    run(tile.address)
    return tile.d.reshape(c.shape)


def _numbers(patterns: Array, kind: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return patterns as the bits of doubles, and their exponents."""
    value = np.ascontiguousarray(widen(patterns.astype(np.uint64), FORMATS[kind]).reshape(-1))
    return value.view(np.int64), _exponents(value, _LEAST.get(kind, -2000))


def _exponents(value: Array, least: int) -> NDArray[np.int64]:
    exponent = np.frexp(value)[1].astype(np.int64) - 1
    return np.where(value == 0, NOTHING, np.maximum(exponent, least))


def _scales(patterns: Array, kind: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return scales as the bits of doubles, and their exponents."""
    if kind == "ue8m0":
        exponent = patterns.astype(np.int64).reshape(-1) - 127
        value = np.where(exponent == 128, np.nan, np.exp2(exponent.astype(np.float64)))
        return value.view(np.int64), exponent
    return _numbers(patterns & 127, "e4m3")
