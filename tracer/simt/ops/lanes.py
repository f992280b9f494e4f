"""Arrays over lanes: the NumPy types of PTX types, and lane masks as bits and as booleans.

A register value is a two-dimensional array that broadcasts to (warps, 32): `%ctaid.x` is (warps,
1), `%laneid` (1, 32), and a parameter (1, 1).
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]
Bits: TypeAlias = NDArray[np.uint32]

LANES = 32
ALL_LANES = 0xFFFFFFFF

DTYPES: Mapping[str, np.dtype[Any]] = {
    **{f"{kind}{bits}": np.dtype(f"uint{bits}") for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    "pred": np.dtype(np.bool_),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "f16x2": np.dtype(np.uint32),
    "f32x2": np.dtype(np.uint64),
    "bf16x2": np.dtype(np.uint32),
    "u16x2": np.dtype(np.uint32),
    "s16x2": np.dtype(np.uint32),
    "tf32": np.dtype(np.uint32),
    "b128": np.dtype(np.complex128),
}
"""The NumPy type of each PTX type. Packed and brain floats are bits, and so are 128-bit values, for
which NumPy has only complex numbers."""


def scalar(value: int | float | bool, dtype: np.dtype[Any]) -> Array:
    """Return `value` as a (1, 1) array; an integer wraps to the type's width."""
    if dtype.kind in "iu" and isinstance(value, int):
        bits = value & ((1 << 8 * dtype.itemsize) - 1)
        return np.array([[bits]], dtype=f"u{dtype.itemsize}").view(dtype)
    return np.array([[value]], dtype=dtype)


def pack(lanes: Mask) -> Bits:
    """Convert booleans (warps, 32) to one 32-bit mask per warp (warps,)."""
    packed = np.packbits(lanes, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u4").reshape(-1).astype(np.uint32, copy=False)


def unpack(bits: Bits) -> Mask:
    """Convert one 32-bit mask per warp (warps,) to booleans (warps, 32)."""
    octets = np.ascontiguousarray(bits, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_)
