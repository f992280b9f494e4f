"""Texture samples to take on hardware and here: a case is a texture and 256 coordinates.

Values and coordinates are made from PCG64's raw words, so that they are the same everywhere and
only what hardware answered needs to be kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

LANES = 256
SHAPES = {1: (9,), 2: (7, 9), 3: (4, 7, 5)}
MODES = ("clamp", "border", "wrap", "mirror")
STRANGE = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 2.0**31, 1e-45, -0.0)


@dataclass(frozen=True)
class Case:
    """`memory` is `array` (a CUDA array), `linear` or `pitched`; `coordinates` how they are chosen.

    A fetch's coordinates are integers; its memory is linear.
    """

    element: str
    shape: tuple[int, ...]
    mode: str = "clamp"
    filter_mode: str = "point"
    normalized: bool = False
    memory: str = "array"
    coordinates: str = "random"

    @property
    def name(self) -> str:
        """All of it in a word."""
        extent = "x".join(map(str, self.shape[::-1]))
        kind = "normalized" if self.normalized else "texels"
        parts = (self.element, extent, self.mode, self.filter_mode, kind, self.memory)
        return "-".join((*parts, self.coordinates))

    @property
    def read_mode(self) -> str:
        """Integers are read as numbers."""
        return "normalized_float" if self.element[0] in "iu" else "element"

    @cached_property
    def _random(self) -> np.random.PCG64:
        return np.random.PCG64(crc32(self.name.encode()))

    def _units(self, count: int) -> NDArray[np.float64]:
        """Numbers from 0 to below 1."""
        return (np.asarray(self._random.random_raw(count)) >> np.uint64(40)) / 2.0**24

    @cached_property
    def values(self) -> NDArray[Any]:
        """The texels: integers of the whole range, floats from -1 to 1."""
        dtype = np.dtype(f"<{self.element}")
        units = self._units(int(np.prod(self.shape))).reshape(self.shape)
        if dtype.kind == "f":
            return (2 * units - 1).astype(dtype)
        info = np.iinfo(dtype)
        numbers: NDArray[Any] = np.trunc(info.min + units * 2.0 ** (8 * dtype.itemsize))
        integers: NDArray[Any] = numbers.astype(dtype)
        return integers

    @cached_property
    def places(self) -> list[NDArray[Any]]:
        """Coordinates x, y, z, each (256,)."""
        self.values.any()  # drawn first
        return [self._places(size) for size in self.shape[::-1]]

    def _places(self, size: int) -> NDArray[Any]:
        if self.memory == "linear":
            return (self._units(LANES) * 2 * size - size / 2).astype(np.int32)
        if self.coordinates == "strange":
            chosen = (self._units(LANES) * len(STRANGE)).astype(int)
            return np.array(STRANGE, np.float32).take(chosen)
        beyond = 1.0 if self.mode in ("wrap", "mirror") else 0.2
        places = (self._units(LANES) * (1 + 2 * beyond) - beyond) * size
        if self.coordinates == "edges":
            places = np.floor(4 * places) / 4
        return (places / (size if self.normalized else 1)).astype(np.float32)


def texture_cases() -> Iterator[Case]:
    """Every case, in order."""
    for shape in SHAPES.values():
        for mode in MODES:
            for filter_mode in ("point", "linear"):
                for normalized in (False, True):
                    yield Case("f4", shape, mode, filter_mode, normalized)
    for element in ("u1", "i1", "u2", "i2", "f2"):
        yield Case(element, (300,))
        for shape in SHAPES.values():
            yield Case(element, shape, filter_mode="linear")
    for size in (5, 8, 1000):
        for mode in MODES:
            for filter_mode in ("point", "linear"):
                yield Case("f4", (size,), mode, filter_mode, True, coordinates="edges")
                yield Case("f4", (size,), mode, filter_mode, True, coordinates="strange")
    for mode in MODES:
        yield Case("f4", (32,), mode, memory="linear")
        yield Case("f4", (7, 64), mode, "linear", True, memory="pitched")
