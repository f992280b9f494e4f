"""Matrices in shared memory that `wgmma` reads by a descriptor (PTX ISA 9.7.15.5.1).

A descriptor has the start address (bits 0 to 13), two distances between parts of the matrix, the
leading and the stride one (16 to 29, 32 to 45), all in units of 16 bytes, and how chunks of 16
bytes are exchanged (62 and 63), by rows of 128 bytes that count from bits 49 to 51 on. A matrix by
rows has in each row 32 bytes of K side by side, one by columns 8 elements of the other dimension:
the chunks. Chunks of 8 rows, or of 8 columns, form an atom as wide as the swizzle.
"""

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ..bulk.box import swizzled

Places = NDArray[np.int64]

CHUNK = 16
_WIDTHS = (1, 8, 4, 2)
"""Chunks side by side in an atom, by the descriptor's number for the swizzle."""

_SWIZZLES = (0, 7, 3, 1)
"""Bits of a row's number that exchange its chunks."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor's fields: bytes, the row at which the swizzle begins, and its number."""

    start: int
    leading: int
    stride: int
    base: int
    swizzle: int


def read_descriptor(bits: int) -> Descriptor:
    """Read 64 bits."""
    start, leading, stride = (CHUNK * (bits >> at & 0x3FFF) for at in (0, 16, 32))
    return Descriptor(start, leading, stride, bits >> 49 & 7, bits >> 62 & 3)


def by_rows(descriptor: Descriptor, rows: int, row_bytes: int) -> Places:
    """Return where each byte of a row lies, (rows, row_bytes): K is the contiguous dimension."""
    row, byte = np.arange(rows)[:, None], np.arange(row_bytes)[None]
    width = _WIDTHS[descriptor.swizzle]
    across = CHUNK if descriptor.swizzle else descriptor.leading
    place = row % 8 * width * CHUNK + row // 8 * descriptor.stride
    return _moved(descriptor, place + byte // CHUNK * across + byte % CHUNK)


def by_columns(descriptor: Descriptor, rows: int, inner: int) -> Places:
    """Return where the first byte of each element of 16 bits lies, (rows, inner): the rows are the
    contiguous dimension."""
    row, k = np.arange(rows)[:, None], np.arange(inner)[None]
    width, chunk = _WIDTHS[descriptor.swizzle], row // 8
    if descriptor.swizzle:
        place = chunk % width * CHUNK + chunk // width * descriptor.leading
        place = place + k % 8 * width * CHUNK + k // 8 * descriptor.stride
    else:
        place = chunk * descriptor.stride + k % 8 * CHUNK + k // 8 * descriptor.leading
    return _moved(descriptor, place + row % 8 * 2)


def _moved(descriptor: Descriptor, places: Places) -> Places:
    places = places + descriptor.start
    return swizzled(places, _SWIZZLES[descriptor.swizzle], descriptor.base)
