"""Textures and how they are sampled (CUDA C++ Programming Guide, texture fetching).

Weights of linear filtering have eight fractional bits. In one dimension alpha is rounded to the
nearest 1/256. In two, alpha and beta are rounded so, and the weight of the far corner is their
product rounded again, w11 = round(256 alpha beta) / 256; the others follow from it: w10 = alpha -
w11, w01 = beta - w11, w00 = 1 - alpha - beta + w11. Both were measured on an NVIDIA H200, where
they give every sample exactly. In three dimensions the two layers so filtered are weighted by
gamma. 8-bit texels read as normalised numbers are filtered in 16-bit fixed point.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...traces.schema import Texture as Description
from .array import Array

FAR = float(1 << 30)
"""Coordinates beyond this many texels are taken as this many."""


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture and its texels: `texels()` gives (layers, depth, height, width, channels).

    For linear memory the function reads the memory as it is now.
    """

    description: Description
    texels: Callable[[], NDArray[Any]]
    layered: bool = False

    @property
    def is_linear(self) -> bool:
        """Whether samples are weighted means of texels."""
        return self.description.filter_mode == "linear"

    @property
    def is_normalized_read(self) -> bool:
        """Whether integer texels are read as numbers in [0, 1] or [-1, 1]."""
        return self.description.read_mode == "normalized"


@dataclass(frozen=True, slots=True)
class Sample:
    """Samples (n, 4) of n lanes, float64 or integers, and their lower corners (n, 4) int32."""

    values: Array
    corner: NDArray[np.int32]


def sample(texture: Texture, coordinates: list[Array], layer: Array, fetch: bool) -> Sample:
    """Sample at `coordinates`, one (n,) array a dimension, x first; `layer` is (n,).

    With `fetch` the coordinates are integers that name texels (tex1Dfetch): neither normalised
    nor filtered.
    """
    texels = texture.texels()
    extent = texels.shape[3:0:-1]
    linear = texture.is_linear and not fetch
    places = [
        _in_texels(texture, coordinate, extent[axis], axis, fetch)
        for axis, coordinate in enumerate(coordinates)
    ]
    lower = [np.floor(p - 0.5 if linear else p).astype(np.int64) for p in places]
    corner = np.zeros((len(layer), 4), dtype=np.int32)
    for axis, index in enumerate(lower):
        corner[:, axis] = index
    corner[:, 3] = layer
    if not linear:
        values = _taps(texture, texels, lower, layer, fetch)
        return Sample(_as_read(texture, values), corner)
    weights = _weights([p - 0.5 - i for p, i in zip(places, lower, strict=True)])
    return Sample(_filtered(texture, texels, lower, layer, weights), corner)


def _in_texels(
    texture: Texture, coordinate: Array, size: int, axis: int, fetch: bool
) -> NDArray[np.float64]:
    """Return a coordinate in texels; NaN is 0, and wrapping modes fold it first."""
    x = np.where(np.isnan(coordinate), 0.0, coordinate.astype(np.float64))
    if texture.description.normalized_coords and not fetch:
        mode = _mode(texture, axis, fetch)
        if mode in ("wrap", "mirror") and bool((np.abs(x) > 1e6).any()):
            x = np.where(np.isinf(x), 0.0, np.fmod(x, 2.0))
        x = x * size
    return np.clip(x, -FAR, FAR)


def _mode(texture: Texture, axis: int, fetch: bool) -> str:
    """Return the address mode: wrap and mirror exist for normalised coordinates only."""
    modes = texture.description.address_mode
    mode = modes[min(axis, len(modes) - 1)]
    if mode in ("wrap", "mirror") and (fetch or not texture.description.normalized_coords):
        return "clamp"
    return mode


def _weights(fractions: list[Array]) -> list[tuple[tuple[int, ...], Array]]:
    """Return the taps, as steps from the lower corner in x, y, z, and their weights."""
    a, *rest = [np.floor(256 * f + 0.5) / 256 for f in fractions]
    if not rest:
        return [((0,), 1 - a), ((1,), a)]
    b = rest[0]
    far = np.floor(256 * a * b + 0.5) / 256
    plane = [((0, 0), 1 - a - b + far), ((1, 0), a - far), ((0, 1), b - far), ((1, 1), far)]
    if len(rest) == 1:
        return [((x, y), w) for (x, y), w in plane]
    c = rest[1]
    return [((x, y, z), w * (c if z else 1 - c)) for z in (0, 1) for (x, y), w in plane]


def _taps(
    texture: Texture, texels: NDArray[Any], index: list[Array], layer: Array, fetch: bool
) -> Array:
    """Return texels (n, channels) at indices of x, y, z, by the address mode of each."""
    inside = np.ones(len(layer), dtype=np.bool_)
    places = []
    for axis, i in enumerate(index):
        size = texels.shape[3 - axis]
        mode = _mode(texture, axis, fetch)
        inside &= (mode != "border") | ((i >= 0) & (i < size))
        if mode == "wrap":
            i = np.mod(i, size)
        elif mode == "mirror":
            i = np.mod(i, 2 * size)
            i = np.where(i < size, i, 2 * size - 1 - i)
        places.append(np.clip(i, 0, size - 1))
    while len(places) < 3:
        places.append(np.zeros(len(layer), dtype=np.int64))
    x, y, z = places
    found: Array = texels[np.clip(layer, 0, len(texels) - 1), z, y, x]
    chosen: Array = np.where(inside[:, None], found, texels.dtype.type(0))
    return chosen


def _filtered(
    texture: Texture, texels: NDArray[Any], lower: list[Array], layer: Array,
    weights: list[tuple[tuple[int, ...], Array]],
) -> Array:  # fmt: skip
    octets = texture.is_normalized_read and texels.dtype == np.uint8
    total: Array = np.zeros((len(layer), texels.shape[-1]))
    for step, weight in weights:
        index = [i + s for i, s in zip(lower, step, strict=True)]
        taps = _taps(texture, texels, index, layer, False)
        read = taps.astype(np.float64) * 257 if octets else _as_read(texture, taps)
        total = total + weight[:, None] * read
    return np.floor(total + 0.5) / 65535 if octets else total


def _as_read(texture: Texture, values: Array) -> Array:
    """Return texels as they are, or integers of 8 or 16 bits as normalised numbers."""
    if not texture.is_normalized_read or values.dtype.kind == "f":
        return values if values.dtype.kind in "iu" else values.astype(np.float64)
    largest = np.iinfo(values.dtype).max
    return np.maximum(values.astype(np.float64) / largest, -1.0)
