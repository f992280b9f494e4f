"""The rules of texture sampling in plain Python, a sample at a time, and textures to try them on.

As measured on an NVIDIA H200. Normalised coordinates are cut to multiples of 2**-21. Alpha and
beta are rounded to 1/256; the far corner's weight is their product rounded again, and the other
three follow from it.
"""

from collections.abc import Sequence
from itertools import product
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cutrace.tracer.simt.memory.texture import Places, Sample, Texture, sample
from cutrace.traces.schema import Texture as Description

FORMATS = {"f4": "f32", "f2": "f16", "u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16", "i4": "i32"}


def texture_of(
    values: NDArray[Any],
    mode: str | Sequence[str] = "clamp",
    filter_mode: str = "point",
    normalized: bool = False,
    read_mode: str = "element",
    layers: int = 0,
    array: str = "",
) -> Texture:
    """A texture of one channel: (width,), (height, width) or (depth, height, width)."""
    shape = values.shape[1:] if layers else values.shape
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    format_ = FORMATS[values.dtype.str[1:]]
    described = Description(
        "t", format_, shape[::-1], modes, filter_mode, normalized, read_mode, array, layers
    )
    texels = values.reshape(max(layers, 1), *[1] * (3 - len(shape)), *shape, 1)
    return Texture(described, lambda: texels)


def sampled(texture: Texture, *coordinates: Any, fetch: bool = False, layer: int = 0) -> Sample:
    """Sample at coordinates x, y, z."""
    places = [np.asarray(c) for c in coordinates]
    return sample(texture, Places(places, np.full(len(places[0]), layer, np.int64), fetch))


def values_of(texture: Texture, *coordinates: Any, fetch: bool = False, layer: int = 0) -> Any:
    """The samples of the only channel."""
    return sampled(texture, *coordinates, fetch=fetch, layer=layer).values[:, 0]


def place_index(index: int, size: int, mode: str) -> int | None:
    """Where an index leads by an address mode; None is outside the border."""
    if mode == "clamp":
        return min(max(index, 0), size - 1)
    if mode == "border":
        return index if 0 <= index < size else None
    if mode == "wrap":
        return index % size
    index %= 2 * size
    return index if index < size else 2 * size - 1 - index


def texel(values: NDArray[Any], index: Sequence[int], mode: str) -> float:
    """The texel at indices x, y, z; 0 beyond the border."""
    sizes = values.shape[::-1]
    places = [place_index(i, size, mode) for i, size in zip(index, sizes, strict=True)]
    inside = [place for place in places if place is not None]
    return float(values[tuple(inside[::-1])]) if len(inside) == len(places) else 0.0


def cut(coordinate: float) -> float:
    """A normalised coordinate as the texture unit has it: a multiple of 2**-21."""
    return floor(float(coordinate) * 2**21) / 2**21


def split(coordinate: float) -> tuple[int, int]:
    """Lower texel, and the upper one's weight in 1/256, of a coordinate in texels."""
    lower = floor(coordinate - 0.5)
    return lower, floor(256 * (coordinate - 0.5 - lower) + 0.5)


def plane_weights(a: int, b: int) -> dict[tuple[int, int], int]:
    """Weights of the four texels of a square, in 1/256."""
    far = floor(a * b / 256 + 0.5)
    return {(0, 0): 256 - a - b + far, (1, 0): a - far, (0, 1): b - far, (1, 1): far}


def linear_1d(values: NDArray[Any], x: float, mode: str) -> float:
    """The rule of one dimension."""
    i, a = split(x)
    return ((256 - a) * texel(values, [i], mode) + a * texel(values, [i + 1], mode)) / 256


def linear_2d(values: NDArray[Any], x: float, y: float, mode: str) -> float:
    """The rule of two dimensions."""
    (i, a), (j, b) = split(x), split(y)
    weights = plane_weights(a, b)
    total = sum(w * texel(values, [i + di, j + dj], mode) for (di, dj), w in weights.items())
    return total / 256


def octets_2d(values: NDArray[np.uint8], x: float, y: float) -> float:
    """Unsigned 8-bit texels as normalised numbers: 16 bits wide, in fixed point, clamped."""
    (i, a), (j, b) = split(x), split(y)
    taps = product((0, 1), repeat=2)
    weights = plane_weights(a, b)
    total = sum(
        weights[di, dj] * 257 * int(texel(values, [i + di, j + dj], "clamp")) for di, dj in taps
    )
    return floor(total / 256 + 0.5) / 65535
