"""The requests of `wmma.load` and `wmma.store`: which lane moves which elements of a matrix.

PTX leaves the layout of a fragment to the assembler. That of `mma` is taken: lane l has elements of
row l / 4 of each tile of 8 rows, as `front/headers/mma.cuh` has it. Factors in shared memory are
loaded as `ldmatrix` does it, a row of 16 bytes a lane, where elements lie along the sum or have 16
bits.
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_BITS = {
    **{"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8},
    **{"s4": 4, "u4": 4, "b1": 1},
}
ROW_BYTES = 16
"""Bytes of a row of a matrix that `ldmatrix` loads."""
_LANE = np.arange(32)


class Requests(NamedTuple):
    """Requests of a warp, each of `width` bytes a lane from an element on, (requests, lanes).

    The element is at `column` of the line `line` of the matrix in memory.
    """

    width: int
    line: Places
    column: Places


@lru_cache(maxsize=256)
def requests_of(modifiers: tuple[str, ...]) -> Requests:
    """Return the requests of a `wmma.load` or `wmma.store` with these modifiers."""
    m, n, k = next(tuple(map(int, s.groups())) for s in map(_SHAPE.fullmatch, modifiers) if s)
    bits = next(_BITS[word] for word in reversed(modifiers) if word in _BITS)
    if modifiers[1] in ("a", "b"):
        along = (modifiers[1] == "a") == ("row" in modifiers)
        outer = m if modifiers[1] == "a" else n
        rows = 8 if (m == 8) == (modifiers[1] == "a") else 16
        return _factor((outer, k, min(rows, outer)), bits, along, "shared" in modifiers)
    return _sum(m * n, n, bits, "row" in modifiers)


def _factor(size: tuple[int, int, int], bits: int, along: bool, shared: bool) -> Requests:
    """Return the requests of A or B: so many rows and terms of the sum, in tiles of some rows.

    The lines of memory run `along` the sum, or across it.
    """
    outer, k, rows = size
    packed = max(1, 32 // bits)  # elements of a register
    tiles, words = outer // rows, max(1, rows // 8 * k // (4 * packed))
    word = np.arange(tiles * words)[:, None]
    row = word // words * rows + 8 * (word % words % (rows // 8))
    term = word % words // (rows // 8) * 4 * packed
    if shared and (bits == 16 or (bits == 8 and along)):
        count = min(tiles * words, 4)
        many = word[::count] + _LANE // 8 % count
        row, term = row[many, 0], term[many, 0]
        first, across = (row, term) if along else (term, row)
        lanes = slice(0, 8 * count)
        return Requests(ROW_BYTES, (first + _LANE % 8)[:, lanes], across[:, lanes])
    group, part = _LANE // 4, _LANE % 4 * packed
    if along:
        return Requests(max(bits // 8, 4), row + group, term + part)
    if packed == 2:
        return Requests(4, term + group, row + part)
    each = np.arange(packed)[:, None, None]
    lines, columns = np.broadcast_arrays(term + part + each, row + group)
    return Requests(bits // 8, lines.reshape(-1, 32), columns.reshape(-1, 32))


def _sum(size: int, columns: int, bits: int, by_rows: bool) -> Requests:
    """Return the requests of an accumulator: two neighbours of a row a lane."""
    turned = columns == 32
    across = 1 if turned else columns // 8
    pair = np.arange(size // 64)[:, None]
    down, right = pair // 2 // across * 16 + 8 * (pair % 2), pair // 2 % across * 8
    group, part = _LANE // 4, _LANE % 4 * 2
    if by_rows != turned:
        return Requests(2 * bits // 8, down + group, right + part)
    if bits == 16:
        return Requests(4, right + group, down + part)
    each = np.arange(2)[:, None, None]
    lines, places = np.broadcast_arrays(right + part + each, down + group)
    return Requests(bits // 8, lines.reshape(-1, 32), places.reshape(-1, 32))
