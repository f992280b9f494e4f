"""Tensor maps: the addresses of a box's elements in global memory, and their places in shared
memory.

A box is dense in shared memory, the innermost dimension first, except that a swizzled row takes the
whole span of the swizzle. The swizzle permutes chunks of 16 bytes: it XORs bits 7 to 9 of a shared
address into bits 4 to 6 (the lower one or two of them for spans of 32 and 64 bytes). On 10.0 and
later it may permute atoms of 32 or 64 bytes instead.

Numbers of 4 and 6 bits of 10.0 are moved as words of one or four bytes. In shared memory 16 of
them take 8 bytes, or 16 bytes with a gap at their end (PTX ISA 5.5.1: b4x16, b4x16_p64, b6x16_p32).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass

BYTES = 128

FIELDS = {
    "global_address": (0, 64),
    "is_im2col": (64, 1),
    "rank": (68, 3),
    "elemtype": (71, 4),
    "interleave_layout": (75, 2),
    "swizzle_mode": (77, 2),
    "fill_mode": (79, 1),
    "rounds_to_tf32": (80, 1),
    "swizzle_atomicity": (83, 2),
    "global_stride": (96, 32),
    "global_stride_high": (224, 4),
    "global_dim": (256, 32),
    "element_stride": (416, 3),
    "box_dim": (440, 8),
    "channels": (440, 8),
    "pixels": (480, 10),
}
"""First bit and number of bits of a CUtensorMap's fields, named as PTX's tensormap.replace does; a
dimension's field follows that of the one before. Rank, dimensions, boxes, steps, channels and
pixels are less one; strides are in 16 bytes. Found by 5,533 maps that a driver for an H100 encoded
(release 580; tests/validate/test_tensor_map_layout.py). No H100 has the swizzle's atomicity: those
bits are our choice."""

_LOWER, _UPPER, _CORNER_BITS = 448, 464, (0, 16, 8, 5)
"""First bits of an im2col box's corners, and bits of a number by the number of dimensions."""

FORMATS = (*range(8), 9, 10, 8, 7, 8, 13, 14, 15)
"""`elemtype` by CUtensorMapDataType; 11 and 12 round to tf32 besides, those from 13 on are packed.
"""

_FIRST_TF32, _FIRST_PACKED = 11, 13

TYPES = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16"),
    *("f32", "f32", "f32", "b4x16", "b4x16_p64", "b6x16_p32"),
)
"""PTX types of reductions by CUtensorMapDataType; 10 to 12 are f32.ftz, tf32 and tf32.ftz."""

_SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 4, 4)
"""Bytes of the words that are moved: an element's, or those of several packed ones."""

_PACKED_BITS = {13: 4, 14: 4, 15: 6}
_WORDS_A_CHUNK = {14: 2, 15: 3}
"""Words in each 16 bytes of shared memory, of types that leave a gap."""

_FIRST_FLOAT = 6
_NAN = 0x7FF7_7FF7_7FF7_7FF7
"""The fill of floats out of bounds on an H200, truncated to their size, if NaNs are requested."""

FLUSHED, ROUNDED = (10, 12), (11, 12)
"""Types for which loads flush subnormal numbers to zero, and types for which they round to tf32."""

SWIZZLES = (0, 1, 3, 7)
"""Bits of the 128-byte row number that are XORed into a 16-byte chunk's number, by
CUtensorMapSwizzle."""

_ATOMS = {4: (3, 5), 5: (3, 5), 6: (1, 6)}
"""The same bits of swizzles with larger atoms, and the address bit that they are XORed into."""

_FLIPPED = 5
"""The swizzle that swaps the halves of every chunk in odd rows besides."""

_SPANS = (0, 32, 64, 128, 128, 128, 128)

_LARGEST_MODE = 3
"""The mode of all swizzles of 128 bytes; those with larger atoms differ in their atomicity."""

TILED, IM2COL = 0, 1
_MOST_DIMENSIONS, _LEAST_OF_IMAGES = 5, 3
_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class TensorMap:
    """An array of `rank` dimensions, the innermost first: `extents` in elements, `strides` in bytes
    of all dimensions but the innermost. `box` is in elements of the array, and takes every
    `steps`-th of them. `swizzle` is a CUtensorMapSwizzle."""

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
        """Bytes per word: an element, or several packed ones."""
        return _SIZES[self.element]

    def words(self, elements: int) -> int:
        """Return how many words so many elements of the innermost dimension are."""
        bits = _PACKED_BITS.get(self.element)
        return elements * bits // (8 * self.size) if bits else elements

    @property
    def type(self) -> str:
        """The PTX type, for reductions."""
        return TYPES[self.element]

    @property
    def shape(self) -> tuple[int, ...]:
        """Words of a box in shared memory, the innermost dimension first."""
        if self.kind == IM2COL:
            return self.words(self.channels), self.pixels
        outer = zip(self.box[1:], self.steps[1:], strict=True)
        return self.words(self.box[0]), *(-(-n // by) for n, by in outer)

    @property
    def fill(self) -> int:
        """The bits of elements out of bounds."""
        bits = _NAN & (1 << 8 * self.size) - 1
        return bits if self.fills_nan and self.element >= _FIRST_FLOAT else 0

    @property
    def pitch(self) -> int:
        """Bytes from one row of a box to the next in shared memory: with a swizzle, its span."""
        inner = self.shape[0] * self.size
        if words := _WORDS_A_CHUNK.get(self.element):
            inner = self.shape[0] // words * 16
        return max(inner, _SPANS[self.swizzle])

    def encode(self) -> bytes:
        """Return the 128 bytes of the map."""
        bits = Bits(0)
        bits.put("global_address", self.address)
        bits.put("is_im2col", self.kind)
        bits.put("rank", self.rank - 1)
        bits.put_type(self.element)
        bits.put("interleave_layout", self.interleave)
        bits.put("swizzle_mode", min(self.swizzle, _LARGEST_MODE))
        bits.put("swizzle_atomicity", max(self.swizzle - _LARGEST_MODE, 0))
        bits.put("fill_mode", self.fills_nan)
        for axis, stride in enumerate(self.strides):
            bits.put_stride(axis, stride)
        for axis, (extent, step) in enumerate(zip(self.extents, self.steps, strict=True)):
            bits.put("global_dim", extent - 1, axis)
            bits.put("element_stride", step - 1, axis)
        if self.kind == TILED:
            for axis, count in enumerate(self.box):
                bits.put("box_dim", count - 1, axis)
        else:
            bits.put("channels", self.channels - 1)
            bits.put("pixels", self.pixels - 1)
            width = _CORNER_BITS[self.rank - 2]
            for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
                bits.write(_LOWER + width * axis, width, low)
                bits.write(_UPPER + width * axis, width, high)
        return bits.value.to_bytes(BYTES, "little")


class Bits:
    """The 1,024 bits of a map as an integer, and its fields by name and dimension."""

    def __init__(self, value: int) -> None:
        self.value = value

    def read(self, first: int, width: int) -> int:
        """Return the field of `width` bits."""
        return self.value >> first & (1 << width) - 1

    def write(self, first: int, width: int, value: int) -> None:
        """Replace the field of `width` bits by the low bits of the value."""
        mask = (1 << width) - 1
        self.value = self.value & ~(mask << first) | (value & mask) << first

    def get(self, name: str, axis: int = 0) -> int:
        """Return a field."""
        first, width = FIELDS[name]
        return self.read(first + axis * width, width)

    def put(self, name: str, value: int, axis: int = 0) -> None:
        """Replace a field."""
        first, width = FIELDS[name]
        self.write(first + axis * width, width, value)

    def put_stride(self, axis: int, stride: int) -> None:
        """Replace the stride of a dimension, in bytes."""
        self.put("global_stride", stride >> 4, axis)
        self.put("global_stride_high", stride >> 36, axis)

    def stride(self, axis: int) -> int:
        """Return the stride of a dimension, in bytes."""
        return self.get("global_stride_high", axis) << 36 | self.get("global_stride", axis) << 4

    def put_type(self, element: int) -> None:
        """Replace the element's type, a CUtensorMapDataType."""
        self.put("elemtype", FORMATS[element])
        self.put("rounds_to_tf32", _FIRST_TF32 <= element < _FIRST_PACKED)

    def element(self) -> int | None:
        """Return the element's type, a CUtensorMapDataType, or None."""
        found = self.get("elemtype")
        if self.get("rounds_to_tf32"):
            rounded = FORMATS[_FIRST_TF32:_FIRST_PACKED]
            return _FIRST_TF32 + rounded.index(found) if found in rounded else None
        return FORMATS.index(found) if found in FORMATS else None


@lru_cache(maxsize=256)
def decode(data: bytes) -> TensorMap | None:
    """Decode 128 bytes; return None if they are no tensor map."""
    bits = Bits(int.from_bytes(data, "little"))
    rank, kind, element = bits.get("rank") + 1, bits.get("is_im2col"), bits.element()
    address = bits.get("global_address")
    if element is None or rank > _MOST_DIMENSIONS or address % _ALIGNMENT:
        return None
    if kind == IM2COL and rank < _LEAST_OF_IMAGES:
        return None
    dimensions, mode = rank - 2 if kind == IM2COL else 0, bits.get("swizzle_mode")
    width = _CORNER_BITS[dimensions]
    axes = range(rank)
    lower, upper = (
        tuple(_signed(bits.read(first + width * axis, width), width) for axis in range(dimensions))
        for first in (_LOWER, _UPPER)
    )
    return TensorMap(
        address,
        kind,
        element,
        tuple(bits.get("global_dim", axis) + 1 for axis in axes),
        tuple(bits.stride(axis) for axis in range(rank - 1)),
        (0,) * rank if dimensions else tuple(bits.get("box_dim", axis) + 1 for axis in axes),
        tuple(bits.get("element_stride", axis) + 1 for axis in axes),
        mode + bits.get("swizzle_atomicity") if mode == _LARGEST_MODE else mode,
        bool(bits.get("fill_mode")),
        bits.get("interleave_layout"),
        lower,
        upper,
        bits.get("channels") + 1 if dimensions else 0,
        bits.get("pixels") + 1 if dimensions else 0,
    )


def _signed(value: int, width: int) -> int:
    return value - (value >> width - 1 << width)


Places = NDArray[np.int64]


def elements_of(tensor: TensorMap, corner: tuple[int, ...]) -> tuple[Places, NDArray[np.bool_]]:
    """Return the global addresses of a box's words, in the order of shared memory, and which of
    them are in bounds. `corner` is the first element's coordinates, innermost first."""
    addresses: Places = np.array([tensor.address], dtype=np.int64)
    inside = np.ones(1, dtype=np.bool_)
    strides = (tensor.size, *tensor.strides)
    corner = (tensor.words(corner[0]), *corner[1:])
    extents = (tensor.words(tensor.extents[0]), *tensor.extents[1:])
    for axis, count in enumerate(tensor.shape):
        step = tensor.steps[axis] if axis else 1
        place = corner[axis] + np.arange(count, dtype=np.int64) * step
        within = (place >= 0) & (place < extents[axis])
        addresses = (addresses[None] + (place * strides[axis])[:, None]).reshape(-1)
        inside = (inside[None] & within[:, None]).reshape(-1)
    return addresses, inside


@lru_cache(maxsize=64)
def shared_places(tensor: TensorMap, start: int, count: int) -> Places:
    """Return the byte offsets of `count` words in a block's shared memory, from `start` on."""
    row, column = np.divmod(np.arange(count, dtype=np.int64), tensor.shape[0])
    places = start + row * tensor.pitch + column * tensor.size
    if words := _WORDS_A_CHUNK.get(tensor.element):
        places += column // words * (16 - words * tensor.size)
    if tensor.swizzle not in _ATOMS:
        return swizzled(places, SWIZZLES[tensor.swizzle])
    bits, at = _ATOMS[tensor.swizzle]
    moved: Places = places ^ ((places >> 7 & bits) << at)
    return moved ^ ((places >> 7 & 1) << 3) if tensor.swizzle == _FLIPPED else moved


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
