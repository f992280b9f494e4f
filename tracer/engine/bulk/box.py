"""Boxes of a tensor map: which bytes of global memory they are, and where these lie in shared
memory.

A box is dense in shared memory, the innermost dimension first, but that rows take the whole span of
a swizzle. This exchanges its chunks of 16
bytes: bits 7 to 9 of a shared address go into bits 4 to 6 (the lower one or two of them for spans
of 32 and 64 bytes).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tensor_map import FLUSHED, ROUNDED, SWIZZLES, TensorMap

Places = NDArray[np.int64]


def elements_of(tensor: TensorMap, corner: tuple[int, ...]) -> tuple[Places, NDArray[np.bool_]]:
    """Return the global addresses of a box's elements, in their order in shared memory, and which
    of them are inside of the array. `corner` is the first element's place, innermost first."""
    addresses: Places = np.array([tensor.address], dtype=np.int64)
    inside = np.ones(1, dtype=np.bool_)
    strides = (tensor.size, *tensor.strides)
    for axis, count in enumerate(tensor.shape):
        step = tensor.steps[axis] if axis else 1
        place = corner[axis] + np.arange(count, dtype=np.int64) * step
        within = (place >= 0) & (place < tensor.extents[axis])
        addresses = (addresses[None] + (place * strides[axis])[:, None]).reshape(-1)
        inside = (inside[None] & within[:, None]).reshape(-1)
    return addresses, inside


def shared_places(tensor: TensorMap, start: int, count: int) -> Places:
    """Return where `count` elements lie in a block's shared memory, bytes, from `start` on."""
    row, column = np.divmod(np.arange(count, dtype=np.int64), tensor.shape[0])
    places = start + row * tensor.pitch + column * tensor.size
    return swizzled(places, SWIZZLES[tensor.swizzle])


def swizzled(places: Places, bits: int, first: int = 0) -> Places:
    """Return shared addresses as a swizzle has them; `bits` are those of the row that count, and
    `first` is the row that counts as 0."""
    moved: Places = places ^ (((places >> 7) - first & bits) << 4)
    return moved


@lru_cache(maxsize=64)
def box_bytes(tensor: TensorMap) -> int:
    """Return the bytes of a box, of which an mbarrier is told."""
    return int(np.prod(tensor.shape)) * tensor.size


@lru_cache(maxsize=64)
def box_span(tensor: TensorMap) -> int:
    """Return the bytes of shared memory in which a box lies."""
    return int(np.prod(tensor.shape[1:])) * tensor.pitch


def loaded(tensor: TensorMap, words: NDArray[Any]) -> NDArray[Any]:
    """Return elements as a load leaves them: of some types of f32 subnormal numbers are zeros, and
    others are rounded to tf32, to nearest."""
    if tensor.element in FLUSHED:
        is_small = words & np.uint32(0x7F80_0000) == 0
        words = np.where(is_small, words & np.uint32(0x8000_0000), words)
    if tensor.element in ROUNDED:
        is_number = words & np.uint32(0x7F80_0000) != np.uint32(0x7F80_0000)
        words = np.where(is_number, words + np.uint32(0x1000), words) & np.uint32(0xFFFF_E000)
    return words
