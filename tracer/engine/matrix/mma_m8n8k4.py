"""`mma.m8n8k4` of f16: four products of 8 x 8 matrices, one by each two quads of a warp's lanes.

Lanes 4 q to 4 q + 3 and 16 more form product q (PTX ISA, 9.7.14.5.1). Of A and B a lane holds four
elements of one row or column (the lower quad rows or columns 0 to 3), of C and D eight: a row of
f16, or a pattern of f32. It was made for capability 7.0; later devices have it too, slower.
"""

from dataclasses import dataclass

import numpy as np

from ..lanes import LANES, Array
from ..op import tensor

_LANE = np.arange(LANES)
_QUAD = _LANE % 16 // 4
_OWN = _LANE % 4 + 4 * (_LANE // 16)
_ELEMENTS = np.arange(4)[:, None]


@dataclass(frozen=True, slots=True)
class QuadProduct:
    """D = A B + C; `rows` says whether A and B lie row by row, `types` are those of D and C."""

    rows: tuple[bool, bool]
    types: tuple[str, str]

    @property
    def registers(self) -> tuple[int, int, int, int]:
        """How many registers a lane has of D, A, B and C."""
        to, start = (8 if kind == "f32" else 4 for kind in self.types)
        return to, 2, 2, start

    def __call__(self, a: Array, b: Array, c: Array) -> Array:
        """Return the registers of D (n, warps, 32) from those of A, B and C."""
        left = _gather(_halves(a), *_factor(self.rows[0]), (8, 4))
        right = _gather(_halves(b), *_factor(not self.rows[1])[::-1], (4, 8))
        to, start = self.types
        start_at = _accumulator(start)
        third = _gather(c if start == "f32" else _halves(c), *start_at, (8, 8))
        shape = (-1, a.shape[1] * 4)
        products = tensor.multiply_floats(
            tensor.of_bits(left, "f16").reshape(8, *shape),
            tensor.of_bits(right, "f16").reshape(4, *shape),
            tensor.of_bits(third, start).reshape(8, *shape),
            to,
            octets=False,
        ).reshape(8, 8, -1, 4)
        row, column = _accumulator(to)
        elements: Array = products[row, column, :, _QUAD].transpose(0, 2, 1).astype(np.uint32)
        if to == "f32":
            return elements
        packed: Array = elements[0::2] | elements[1::2] << np.uint32(16)
        return packed


def _factor(by_rows: bool) -> tuple[Array, Array]:
    """Return row and column in A of each lane's elements (4, 32); B's are the transposed ones."""
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


def _halves(registers: Array) -> Array:
    """Return the f16 in registers (n, warps, 32) as (2 n, warps, 32)."""
    low, high = registers & np.uint32(0xFFFF), registers >> np.uint32(16)
    return np.stack([low, high], axis=1).reshape(-1, *registers.shape[1:]).astype(np.uint16)


def _gather(elements: Array, row: Array, column: Array, shape: tuple[int, int]) -> Array:
    """Return matrices (rows, columns, warps, 4) of elements (n, warps, 32)."""
    matrices: Array = np.zeros((*shape, elements.shape[1], 4), elements.dtype)
    matrices[row, column, :, _QUAD] = elements.transpose(0, 2, 1)
    return matrices
