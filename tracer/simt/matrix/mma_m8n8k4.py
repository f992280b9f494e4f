"""`mma.m8n8k4` of f16: four products of 8 x 8 matrices, one per pair of quads of a warp.

Lanes 4 q to 4 q + 3, and those plus 16, compute product q (PTX ISA, 9.7.14.5.1). Of A and B a lane
holds four elements of one row or column (the lower quad rows or columns 0 to 3), of C and D eight:
a row of f16, or a pattern of f32. It was made for compute capability 7.0; later devices have it
too, slower.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..ops.lanes import LANES, Array
from .product import Layout, Product, each, numbered

_LANE = np.arange(LANES)
_QUAD = _LANE % 16 // 4
_OWN = _LANE % 4 + 4 * (_LANE // 16)
_ELEMENTS = np.arange(4)[:, None]


@cache
def quad_product(by_rows: tuple[bool, bool], types: tuple[str, str]) -> Product:
    """Return D = A B + C; `by_rows` says whether A and B are row-major, `types` are those of D and
    C."""
    to, start = types
    row, column = _accumulator(to)
    layout = Layout(
        _numbers(*_factor(by_rows[0]), (8, 4), "f16"),
        _numbers(*_factor(not by_rows[1])[::-1], (4, 8), "f16"),
        _numbers(*_accumulator(start), (8, 8), start),
        ((row * 8 + column) * 4 + _QUAD).reshape(-1),
    )
    registers = 8 // each(to), 2, 2, 8 // each(start)
    return Product((to, "f16", "f16", start), layout, registers, 4)


def _numbers(row: Array, column: Array, shape: tuple[int, int], kind: str) -> NDArray[np.intp]:
    """Return the element numbers of four matrices (rows, columns, 4); `row` and `column` (n, 32)
    are the coordinates of each lane's elements."""
    element = np.arange(len(row))[:, None]
    register, place = np.divmod(element, each(kind))
    numbers: NDArray[np.intp] = np.zeros((*shape, 4), np.intp)
    numbers[row, column, _QUAD] = numbered(_LANE, register, place, kind)
    return numbers


def _factor(by_rows: bool) -> tuple[Array, Array]:
    """Return row and column in A of each lane's elements (4, 32); B's are transposed."""
    own, other = np.broadcast_arrays(_OWN[None], _ELEMENTS)
    if by_rows:
        return own, other
    return other + 4 * (_LANE[None] // 16), np.broadcast_to(_LANE[None] % 4, own.shape)


def _accumulator(kind: str) -> tuple[Array, Array]:
    """Return row and column in C and D of each lane's elements (8, 32)."""
    number = np.arange(8)[:, None]
    if kind == "f16":
        return np.broadcast_to(_OWN[None], (8, LANES)), np.broadcast_to(number, (8, LANES))
    row = (_LANE[None] & 1) + (number & 2) + 4 * (_LANE[None] // 16)
    return row, (number & 4) + (_LANE[None] & 2) + (number & 1)
