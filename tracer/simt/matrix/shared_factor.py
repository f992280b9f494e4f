"""Factors of `tcgen05` in shared memory, by their descriptors (PTX ISA 9.7.16.4.1, 9.7.16.10.6).

A row of a factor is 32 bytes, or 64 of one whose other factor is sparse. By rows, chunks of 16
bytes of eight rows make up an atom as for `wgmma` (9.7.15.5.1); by columns (a transposed factor) a
chunk has elements of several rows. The swizzle of 128 bytes in atoms of 32 exists by columns only.
With bit 52 of a descriptor (10.3) and the swizzle of 128 bytes the leading offset is the address of
another buffer, in which a row goes on behind its span of the swizzle.
"""

import numpy as np
from numpy.typing import NDArray

from ..tma.tensor_map import SWIZZLES, swizzled
from ..tma.transfer import Lane, Site
from .wgmma import CHUNK, Descriptor, Places, by_columns, by_rows, read_descriptor

_VERSION = 1
"""What bits 46 to 48 of a descriptor have to be."""

_SWIZZLES = {0: 0, 2: 1, 4: 2, 6: 3}
"""The swizzles of `wgmma` by the number in bits 61 to 63."""

_OF_128, _SPAN = 3, 128
"""The swizzle of 128 bytes as tensor maps number it, and its span."""

_BASE_32 = 1
"""The number of the swizzle of 128 bytes with atoms of 32."""


def factor_rows(
    lane: Lane, site: Site, block: int, bits: int, rows: int, row_bytes: int, size: int = 0
) -> NDArray[np.uint8]:
    """Return the rows (rows, row_bytes) of a factor in a block's shared memory; elements of `size`
    bytes of a transposed one."""
    bits &= (1 << 64) - 1
    number = bits >> 61
    if bits >> 46 & 7 != _VERSION or number not in (*_SWIZZLES, _BASE_32):
        raise site.fault(
            lane,
            f"takes {bits:#018x} as the descriptor of a matrix, whose bits 46 to 48 are "
            f"{bits >> 46 & 7}, not 1, or whose swizzle {number} is none of 0, 1, 2, 4 and 6,",
            "descriptor",
        )
    plain = read_descriptor(bits)
    descriptor = Descriptor(
        plain.start, plain.leading, plain.stride, plain.base, _SWIZZLES.get(number, _BASE_32)
    )
    if size:
        columns = _by_columns_of_32 if number == _BASE_32 else by_columns
        places = columns(descriptor, rows, row_bytes // size, size)
        places = (places[:, :, None] + np.arange(size)).reshape(rows, -1)
    elif number == _BASE_32:
        raise site.fault(
            lane,
            f"takes {bits:#018x} as the descriptor of a matrix by rows, which has no swizzle 1,",
            "descriptor",
        )
    elif bits >> 52 & 1 and descriptor.swizzle == 1:
        places = _across_buffers(descriptor, rows, row_bytes)
    else:
        places = by_rows(descriptor, rows, row_bytes)
    memory = lane.group.wave.shared[block]
    last = int(places.max())
    if last >= memory.size:
        raise site.fault(
            lane,
            f"reaches shared address {last:#x} by the descriptor {bits:#018x}, and the block has "
            f"{memory.size} bytes,",
        )
    octets: NDArray[np.uint8] = memory[places]
    return octets


def _across_buffers(descriptor: Descriptor, rows: int, row_bytes: int) -> Places:
    """Return the same as `by_rows` where rows may go on in the next buffer."""
    row, byte = np.arange(rows)[:, None], np.arange(row_bytes)[None]
    inside = descriptor.start % _SPAN + byte
    buffer = np.where(inside < _SPAN, descriptor.start // _SPAN * _SPAN, descriptor.leading)
    place = buffer + inside % _SPAN + row % 8 * _SPAN + row // 8 * descriptor.stride
    return swizzled(place, SWIZZLES[_OF_128], descriptor.base)


def _by_columns_of_32(descriptor: Descriptor, rows: int, inner: int, size: int) -> Places:
    """Return the same as `by_columns` with the swizzle of 128 bytes in atoms of 32."""
    row, k = np.arange(rows)[:, None], np.arange(inner)[None]
    chunk, within = row // (CHUNK // size), row % (CHUNK // size) * size
    place = chunk % 8 * CHUNK + chunk // 8 * descriptor.leading
    place = place + k % 4 * 8 * CHUNK + k // 4 * descriptor.stride + within + descriptor.start
    moved: Places = place ^ (((place >> 7) & 3) << 5)
    return moved
