"""Textures and how they are sampled: coordinates, address modes, taps.

CUDA C++ Programming Guide, texture fetching. Point sampling takes the texel at the floor of the
coordinate; linear filtering (filter.py) takes the lower corner's and its neighbours. The address
mode folds the indices: clamp to the edge, border (0 outside), wrap (modulo the size), mirror (with
a period of two sizes). Wrap and mirror exist for normalised coordinates only and are clamp
otherwise. Clamped coordinates are clamped before they are split into index and fraction.

Integer coordinates (tex1Dfetch) name texels; outside of the texture, or its layers, they read 0.

All as measured on an NVIDIA H200, every sample of every mode. There normalised coordinates are
first cut to multiples of 2**-21, and a coordinate that is no number is 0.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ....traces.schema import ALONE
from ....traces.schema import Texture as Description
from ..lanes import Array
from .filter import ONE, Step, blend, settle, split_weight, weigh
from .level import Mipmap
from .srgb import LINEAR

CUT = float(1 << 21)
"""Normalised coordinates are multiples of one part in this many."""

FAR = 1 << 30
"""Coordinates beyond this many texels are taken as this many."""


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture and its texels: `texels()` gives (layers, depth, height, width, channels).

    For linear memory the function reads the memory as it is now. Of a mipmapped texture it gives
    level 0. `border` (channels,) is the texel of what lies outside, none: zeros. The
    first `colors` channels are sRGB. A filter of `bordered_rows` reads one dimension as the lower
    edge of two, beyond which the border lies: half of each sample is border.
    """

    description: Description
    texels: Callable[[], NDArray[Any]]
    is_cubemap: bool = False
    mipmap: Mipmap | None = None
    border: NDArray[Any] | None = None
    colors: int = 0
    is_seamless: bool = False
    bordered_rows: bool = False

    @property
    def shape(self) -> tuple[int, bool]:
        """How many dimensions it has, layers apart, and whether it is layered."""
        return len(self.description.extent), self.description.layers > 0

    @property
    def is_filtered(self) -> bool:
        """Whether samples are weighted means of texels."""
        return self.description.filter_mode == "linear"

    @property
    def is_linear_memory(self) -> bool:
        """Whether it lies over an array, and is no copy."""
        return self.description.array != ""

    @property
    def is_normalized_read(self) -> bool:
        """Whether integer texels are read as numbers in [0, 1] or [-1, 1]."""
        return self.description.read_mode == "normalized_float"

    @property
    def gives_floats(self) -> bool:
        """Whether samples are floats, and not integers."""
        return self.is_normalized_read or self.description.format[0] == "f"


def shape_words(dimensions: int, layered: bool, is_cubemap: bool = False) -> str:
    """Say a texture's shape: `2 dimensions`, `layers of 1 dimension`."""
    if is_cubemap:
        return "the faces of a cube"
    words = f"{dimensions} dimension{'s' if dimensions > 1 else ''}"
    return f"layers of {words}" if layered else words


@dataclass(frozen=True, slots=True)
class Sample:
    """Samples (n, 4) of n lanes, float64 or integers, and their lower corners (n, 4) int32."""

    values: Array
    corner: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Places:
    """Where n lanes sample: `coordinates`, one (n,) array a dimension, x first; `layer` is (n,).

    With `fetch` the coordinates are integers that name texels (tex1Dfetch): neither normalised
    nor filtered. `offsets` are whole texels to add, an array (n,) a dimension, or none. `share` is
    the weight (n,) in 1/256 that these texels have beside another level's, or none: all.
    """

    coordinates: Sequence[Array]
    layer: Array
    fetch: bool = False
    offsets: Sequence[Array] = ()
    share: Array | None = None

    def some(self, lanes: NDArray[np.intp], share: Array | None) -> "Places":
        """Those of some lanes only, with their share."""
        coordinates = [each[lanes] for each in self.coordinates]
        offsets = [each[lanes] for each in self.offsets]
        return Places(coordinates, self.layer[lanes], self.fetch, offsets, share)


def sample(texture: Texture, at: Places) -> Sample:
    """Sample a texture at places; those with a share give sums that `settled` rounds."""
    texels = texture.texels()
    extent = texels.shape[3:0:-1]
    places = _all_in_texels(texture, at, extent)
    layer = np.clip(at.layer, 0, len(texels) - 1)
    if not texture.is_filtered or at.fetch:
        lower = places if at.fetch else [np.floor(place).astype(np.int64) for place in places]
        values = _taps(texture, texels, lower, layer, at.fetch)
        if at.fetch:
            values[at.layer != layer] = 0
        if at.share is None:
            return Sample(_as_read(texture, values), _corners(lower, layer))
        whole = weigh([(at.share, values)], texture.is_normalized_read, texture.colors)
        return Sample(whole, _corners(lower, layer))
    fixed = _fixed(places)
    edge = [np.full_like(fixed[0], -ONE // 2)] if texture.bordered_rows else []  # y is 0
    held = [_held(texture, each, extent[axis], axis) for axis, each in enumerate(fixed + edge)]
    taps = [
        (weight, _taps(texture, texels, _moved(held, step), layer, False))
        for step, weight in split_weight([each & (ONE - 1) for each in held], at.share)
    ]
    lower = [each // ONE for each in fixed]
    alone = sum((each % ONE == 0) << (ALONE + axis) for axis, each in enumerate(fixed))
    total = weigh(taps, texture.is_normalized_read, texture.colors)
    values = total if at.share is not None else settled(texture, total)
    return Sample(values, _corners(lower, layer | alone))


def settled(texture: Texture, total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round what was summed of samples with shares, of all levels."""
    dtype = texture.texels().dtype
    return settle(total, dtype, texture.is_normalized_read, texture.colors)


COUNTER_CLOCKWISE: tuple[Step, ...] = ((0, 1), (1, 1), (1, 0), (0, 0))
"""The texels of a gather in the order of its results (PTX ISA, tld4)."""


def gather(texture: Texture, at: Places, channel: int) -> Sample:
    """Return one channel of the four texels that a linear filter would weigh, unweighted."""
    texels = texture.texels()
    places = _all_in_texels(texture, at, texels.shape[3:0:-1])
    layer = np.clip(at.layer, 0, len(texels) - 1)
    lower = [each // ONE for each in _fixed(places)]
    if channel >= texels.shape[4]:
        return Sample(np.zeros((len(layer), 4), texels.dtype), _corners(lower, layer))
    taps = [
        _taps(texture, texels, [i + by for i, by in zip(lower, step, strict=True)], layer, False)
        for step in COUNTER_CLOCKWISE
    ]
    values: Array = np.stack([tap[:, channel] for tap in taps], axis=1)
    if texture.is_normalized_read:
        whole = np.full(len(layer), ONE)
        colors = 4 if channel < texture.colors else 0
        return Sample(blend([(whole, values)], True, colors), _corners(lower, layer))
    return Sample(values, _corners(lower, layer))


def _all_in_texels(texture: Texture, at: Places, extent: tuple[int, ...]) -> list[Array]:
    """Return the coordinates in texels, offsets added."""
    places: list[Array]
    if at.fetch:
        places = [np.clip(each.astype(np.int64), -FAR, FAR) for each in at.coordinates]
    else:
        places = [
            _in_texels(texture, coordinate, extent[axis], axis)
            for axis, coordinate in enumerate(at.coordinates)
        ]
    if at.offsets:
        return [place + by for place, by in zip(places, at.offsets, strict=True)]
    return places


def _fixed(places: list[Array]) -> list[Array]:
    """Return coordinates less half a texel as multiples of 1/256."""
    return [np.floor(ONE * (place - 0.5) + 0.5).astype(np.int64) for place in places]


def _corners(lower: list[Array], layer: Array) -> NDArray[np.int32]:
    corners = np.zeros((len(layer), 4), dtype=np.int32)
    for axis, index in enumerate(lower):
        corners[:, axis] = index
    corners[:, 3] = layer
    return corners


def _moved(fixed: list[Array], step: Step) -> list[Array]:
    return [each // ONE + by for each, by in zip(fixed, step, strict=True)]


def _held(texture: Texture, fixed: Array, size: int, axis: int) -> Array:
    """Return a coordinate less half a texel, in 1/256, held inside the texture if it clamps."""
    clamps = _mode(texture, axis, False) == "clamp"
    return np.clip(fixed, 0, ONE * (size - 1)) if clamps else fixed


def _in_texels(texture: Texture, coordinate: Array, size: int, axis: int) -> NDArray[np.float64]:
    """Return a coordinate in texels; NaN is 0, and wrapping modes fold it first."""
    x = np.where(np.isnan(coordinate), 0.0, coordinate.astype(np.float64))
    if texture.description.normalized_coords:
        mode = _mode(texture, axis, False)
        if mode in ("wrap", "mirror") and bool((np.abs(x) > 1e6).any()):
            x = np.fmod(np.where(np.isinf(x), 0.0, x), 2.0)
        x = np.floor(x * CUT) / CUT * size
    return np.clip(x, -FAR, FAR)


def _mode(texture: Texture, axis: int, fetch: bool) -> str:
    """Return the address mode: wrap and mirror exist for normalised coordinates only."""
    if fetch or axis >= texture.shape[0]:
        return "border"
    modes = texture.description.address_mode
    mode = modes[min(axis, len(modes) - 1)]
    if mode in ("wrap", "mirror") and not texture.description.normalized_coords:
        return "clamp"
    return mode


def _taps(
    texture: Texture, texels: NDArray[Any], index: list[Array], layer: Array, fetch: bool
) -> Array:
    """Return texels (n, channels) at indices of x, y, z, by the address mode of each."""
    inside: NDArray[np.bool_] | None = None
    places: list[Any] = []
    for axis, i in enumerate(index):
        size = texels.shape[3 - axis]
        mode = _mode(texture, axis, fetch)
        if mode == "border":
            held = (i >= 0) & (i < size)
            inside = held if inside is None else inside & held
        if mode == "wrap":
            i = np.mod(i, size)
        elif mode == "mirror":
            i = np.mod(i, 2 * size)
            i = np.where(i < size, i, 2 * size - 1 - i)
        places.append(np.clip(i, 0, size - 1))
    found = _at(texels, layer, places[::-1])
    if inside is not None:
        border = texels.dtype.type(0) if fetch or texture.border is None else texture.border
        found = np.where(inside[:, None], found, border)
    return found


def _at(texels: NDArray[Any], layer: Array, places: list[Array]) -> Array:
    """Texels (n, channels) of layers at z, y and x, or at as many of these as there are."""
    if not texels.flags.c_contiguous:  # rows of pitched memory
        return np.asarray(texels[(layer, *(0,) * (3 - len(places)), *places)])
    number = layer
    for size, place in zip(texels.shape[4 - len(places) : 4], places, strict=True):
        number = number * size + place
    return texels.reshape(-1, texels.shape[4]).take(number, axis=0)


def _as_read(texture: Texture, values: Array) -> Array:
    """Return texels as they are, or integers of 8 or 16 bits as normalised numbers."""
    if not texture.is_normalized_read or values.dtype.kind == "f":
        return values if values.dtype.kind in "iu" else values.astype(np.float64)
    largest = np.iinfo(values.dtype).max
    read: Array = np.maximum(values.astype(np.float64) / largest, -1.0)
    read[:, : texture.colors] = LINEAR[values[:, : texture.colors]]
    return read
