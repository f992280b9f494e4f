"""Tensor maps: what `cuTensorMapEncodeTiled` makes of an array, 128 bytes that kernels hand on.

The driver's own bytes are not documented. These are cutrace's, which its driver writes
(tracer/program/driver/tensor_map.c): little-endian, as `LAYOUT` has it.
"""

import struct

from ....lazy_dataclass import dataclass

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
"""What an H200 fills floats out of bounds with, cut to their size, where NaNs are asked for."""

FLUSHED, ROUNDED = (10, 12), (11, 12)
"""Types whose subnormal numbers become zeros when they are loaded, and that are rounded to tf32."""

SWIZZLES = (0, 1, 3, 7)
"""Bits of the row of 128 bytes that go into the number of a chunk of 16, by CUtensorMapSwizzle."""

_SPANS = (0, 32, 64, 128)

TILED, IM2COL = 0, 1


@dataclass(frozen=True, slots=True)
class TensorMap:
    """An array of `rank` dimensions, the innermost first: `extents` in elements, `strides` in bytes
    of all dimensions but the innermost; `box` in elements of the array, of which every `steps`-th
    is taken. `swizzle` is a place in SWIZZLES."""

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
        """Dimensions."""
        return len(self.extents)

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return _SIZES[self.element]

    @property
    def type(self) -> str:
        """Its PTX type, for reductions."""
        return TYPES[self.element]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of a box as it lies in shared memory, the innermost dimension first."""
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
        """Bytes from one row of a box to the next in shared memory: a swizzle's rows have its
        span."""
        inner = (self.channels if self.kind == IM2COL else self.box[0]) * self.size
        return max(inner, _SPANS[self.swizzle])

    def encode(self) -> bytes:
        """Return its 128 bytes."""

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
    """Read 128 bytes; None if they are no tensor map."""
    fields = struct.unpack_from(LAYOUT, data)
    address, element, rank, interleave, swizzle, _, fill, kind, mark = fields[:9]
    if mark != MARK or not 1 <= rank <= 5 or element >= len(TYPES) or swizzle >= len(SWIZZLES):
        return None
    rest = fields[9:]
    dimensions = max(rank - 2, 0) if kind == IM2COL else 0
    return TensorMap(
        address,
        kind,
        element,
        tuple(n + 1 for n in rest[:rank]),
        rest[5 : 5 + rank - 1],
        rest[9 : 9 + rank],
        rest[14 : 14 + rank],
        swizzle,
        bool(fill),
        interleave,
        rest[19 : 19 + dimensions],
        rest[22 : 22 + dimensions],
        rest[25],
        rest[26],
    )
