"""A texel's format, and what a formatted store makes of 32-bit values in it."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ....lazy_dataclass import dataclass
from ..lanes import Array

_FORMAT = re.compile(r"(?P<kind>[uif])(?P<bits>\d+)(?:x(?P<channels>\d))?")


@dataclass(frozen=True, slots=True)
class Texel:
    """`dtype` of a channel, and how many."""

    dtype: np.dtype[Any]
    channels: int

    @property
    def bytes(self) -> int:
        """All channels together."""
        return self.dtype.itemsize * self.channels

    def convert(self, value: Array) -> Array:
        """Return 32-bit values as a channel: floats cut off, integers held in its range."""
        return _CONVERT[self.dtype.kind](value, self.dtype)


@cache
def texel_of(format_: str) -> Texel:
    """Read a trace's format: `f32`, `u8x4`."""
    found = _FORMAT.fullmatch(format_)
    assert found
    return Texel(np.dtype(f"{found['kind']}{int(found['bits']) // 8}"), int(found["channels"] or 1))


def _to_float(value: Array, dtype: np.dtype[Any]) -> Array:
    exact = value.view(np.float32)
    with np.errstate(over="ignore"):
        near = exact.astype(dtype)
    far = np.abs(near.astype(np.float32)) > np.abs(exact)
    return np.where(far, np.nextafter(near, dtype.type(0)), near)


def _to_integer(value: Array, dtype: np.dtype[Any]) -> Array:
    limits = np.iinfo(dtype)
    source = value.view(np.int32 if dtype.kind == "i" else np.uint32)
    return np.clip(source, limits.min, limits.max).astype(dtype)


_CONVERT: Mapping[str, Callable[[Array, np.dtype[Any]], Array]] = {
    "f": _to_float,
    "i": _to_integer,
    "u": _to_integer,
}
