"""Tensor maps: the addresses of a box's elements in global memory, and their places in shared
memory.

A box is dense in shared memory, the innermost dimension first, except that a swizzled row takes the
whole span of the swizzle. The swizzle permutes chunks of 16 bytes: it XORs bits 7 to 9 of a shared
address into bits 4 to 6 (the lower one or two of them for spans of 32 and 64 bytes).
"""

import struct
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass

BYTES = 128
MARK = 0xC7

LAYOUT = "<Q8B5I4Q5H5B3h3hHH"
"""Address; type, rank, interleave, swizzle, hint, fill, kind, mark; extents less one; strides;
boxes; steps; corners; channels and pixels of an im2col box."""

TYPES = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16"),
    *("f32", "f32", "f32"),
)
"""PTX types of reductions by CUtensorMapDataType; the last are f32.ftz, tf32 and tf32.ftz."""

_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
_FIRST_FLOAT = 6
_NAN = 0x7FF7_7FF7_7FF7_7FF7
"""The fill of floats out of bounds on an H200, truncated to their size, if NaNs are requested."""

FLUSHED, ROUNDED = (10, 12), (11, 12)
"""Types for which loads flush subnormal numbers to zero, and types for which they round to tf32."""

SWIZZLES = (0, 1, 3, 7)
"""Bits of the 128-byte row number that are XORed into a 16-byte chunk's number, by
CUtensorMapSwizzle."""

_SPANS = (0, 32, 64, 128)

TILED, IM2COL = 0, 1


@dataclass(frozen=True, slots=True)
class TensorMap:
    """An array of `rank` dimensions, the innermost first: `extents` in elements, `strides` in bytes
    of all dimensions but the innermost. `box` is in elements of the array, and takes every
    `steps`-th of them. `swizzle` is an index of SWIZZLES."""

    address: int
    kind: int
    element: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    fills_nan: bool = False
    interleave: int = 0
    lower: tuple[int, ...] = ()
    upper: tuple[int, ...] = ()
    channels: int = 0
    pixels: int = 0

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.extents)

    @property
    def size(self) -> int:
        """Bytes per element."""
        return _SIZES[self.element]

    @property
    def type(self) -> str:
        """The PTX type, for reductions."""
        return TYPES[self.element]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of a box in shared memory, the innermost dimension first."""
        if self.kind == IM2COL:
            return self.channels, self.pixels
        steps = (1, *self.steps[1:])
        return tuple(-(-n // by) for n, by in zip(self.box, steps, strict=True))

    @property
    def fill(self) -> int:
        """The bits of elements out of bounds."""
        bits = _NAN & (1 << 8 * self.size) - 1
        return bits if self.fills_nan and self.element >= _FIRST_FLOAT else 0

    @property
    def pitch(self) -> int:
        """Bytes from one row of a box to the next in shared memory: with a swizzle, its span."""
        inner = (self.channels if self.kind == IM2COL else self.box[0]) * self.size
        return max(inner, _SPANS[self.swizzle])

    def encode(self) -> bytes:
        """Return the 128 bytes of the map."""

        def padded(values: tuple[int, ...], count: int) -> tuple[int, ...]:
            return (*values, *(0,) * (count - len(values)))

        packed = struct.pack(
            LAYOUT, self.address, self.element, self.rank, self.interleave, self.swizzle, 0,
            int(self.fills_nan), self.kind, MARK,
            *padded(tuple(n - 1 for n in self.extents), 5), *padded(self.strides, 4),
            *padded(self.box, 5), *padded(self.steps, 5), *padded(self.lower, 3),
            *padded(self.upper, 3), self.channels, self.pixels,
        )  # fmt: skip
        return packed.ljust(BYTES, b"\0")


def decode(data: bytes) -> TensorMap | None:
    """Decode 128 bytes; return None if they are no tensor map."""
    fields = struct.unpack_from(LAYOUT, data)
    address, element, rank, interleave, swizzle, _, fill, kind, mark = fields[:9]
    if mark != MARK or not 1 <= rank <= 5 or element >= len(TYPES) or swizzle >= len(SWIZZLES):
        return None
    tail = fields[9:]
    dimensions = max(rank - 2, 0) if kind == IM2COL else 0
    return TensorMap(
        address,
        kind,
        element,
        tuple(n + 1 for n in tail[:rank]),
        tail[5 : 5 + rank - 1],
        tail[9 : 9 + rank],
        tail[14 : 14 + rank],
        swizzle,
        bool(fill),
        interleave,
        tail[19 : 19 + dimensions],
        tail[22 : 22 + dimensions],
        tail[25],
        tail[26],
    )


Places = NDArray[np.int64]


def elements_of(tensor: TensorMap, corner: tuple[int, ...]) -> tuple[Places, NDArray[np.bool_]]:
    """Return the global addresses of a box's elements, in the order of shared memory, and which of
    them are in bounds. `corner` is the first element's coordinates, innermost first."""
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
    """Return the byte offsets of `count` elements in a block's shared memory, from `start` on."""
    row, column = np.divmod(np.arange(count, dtype=np.int64), tensor.shape[0])
    places = start + row * tensor.pitch + column * tensor.size
    return swizzled(places, SWIZZLES[tensor.swizzle])


def swizzled(places: Places, bits: int, first: int = 0) -> Places:
    """Return swizzled shared addresses; `bits` are the bits of the row number in use, and `first`
    is row 0."""
    moved: Places = places ^ (((places >> 7) - first & bits) << 4)
    return moved


@lru_cache(maxsize=64)
def box_bytes(tensor: TensorMap) -> int:
    """Return the bytes of a box: the amount that completes at an mbarrier."""
    return int(np.prod(tensor.shape)) * tensor.size


@lru_cache(maxsize=64)
def box_span(tensor: TensorMap) -> int:
    """Return the bytes of shared memory that a box spans."""
    return int(np.prod(tensor.shape[1:])) * tensor.pitch


def loaded(tensor: TensorMap, words: NDArray[Any]) -> NDArray[Any]:
    """Return elements as a load writes them: some types of f32 flush subnormal numbers to zero,
    others round to nearest tf32."""
    if tensor.element in FLUSHED:
        is_small = words & np.uint32(0x7F80_0000) == 0
        words = np.where(is_small, words & np.uint32(0x8000_0000), words)
    if tensor.element in ROUNDED:
        is_number = words & np.uint32(0x7F80_0000) != np.uint32(0x7F80_0000)
        words = np.where(is_number, words + np.uint32(0x1000), words) & np.uint32(0xFFFF_E000)
    return words
