"""Textures and their sampling: coordinates, address modes, taps, filtering, mipmaps, cubemaps.

CUDA C++ Programming Guide, texture fetching. Point sampling takes the texel at the floor of the
coordinate; linear filtering takes the lower corner's texel and its neighbours, with weights in
1/256. The address mode maps indices outside: clamp to the edge, border (0 outside), wrap (modulo
the size), mirror (with a period of two sizes). Wrap and mirror exist for normalised coordinates
only and are clamp otherwise. Clamp mode clamps a coordinate before it is split into index and
fraction.

Integer coordinates (tex1Dfetch) name texels; outside of the texture, or its layers, they read 0.

All as measured on an NVIDIA H200, every sample of every mode. There normalised coordinates are
first truncated to multiples of 2**-21, and a NaN coordinate is 0.

The border color as a texel (`border_texel`) was measured there too, 640 numbers per format. Integer
texels read as integers take the low bits of the float. Normalised ones are truncated 4 bits below
the texel's lowest bit, multiplied by the largest texel, and rounded, halves towards zero; sRGB
colors are encoded and rounded. Half floats are truncated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....traces.schema import LAYER_BITS
from ....traces.schema import Texture as Description
from ..ops.lanes import Array
from .surface import Texel

Step: TypeAlias = tuple[int, ...]
"""A tap's offset from the lower corner: 0 or 1 in x, y, z."""

ONE = 256
"""The sum of all taps' weights."""


def split_weight(
    fractions: Sequence[Array], whole: Array | None = None
) -> Iterator[tuple[Step, Array]]:
    """Yield the taps and their weights; `fractions` (n,) are those of x, y, z, 0 to 255.

    For one level of a mipmapped texture, `whole` (n,) is its weight: levels are split before z.
    """
    x, *other_axes = (f.astype(np.int64) for f in fractions)
    y, z = other_axes[0] if other_axes else None, other_axes[1] if len(other_axes) > 1 else None
    for k, layer in enumerate(_halves(np.full_like(x, ONE) if whole is None else whole, z)):
        for i, column in enumerate(_halves(layer, x)):
            if y is None:
                yield (i,), column
                continue
            near, far = _halves(column, y) if i else _halves(column, ONE - y)[::-1]
            yield (i, 0, k)[: len(fractions)], near
            yield (i, 1, k)[: len(fractions)], far


def _halves(weight: Array, fraction: Array | None) -> tuple[Array, ...]:
    """Split a weight into near and far by the far one's fraction; undivided without a fraction."""
    if fraction is None:
        return (weight,)
    far = (weight * fraction + ONE // 2) >> 8
    return weight - far, far


def blend(
    taps: Sequence[tuple[Array, NDArray[Any]]], normalized: bool, colors: int = 0
) -> NDArray[np.float64]:
    """Return the filtered texels (n, channels); a tap is its weights (n,) and texels (n, channels).

    `normalized` integers are scaled to [0, 1] or [-1, 1]. The first `colors` channels are sRGB.
    """
    return settle(weigh(taps, normalized, colors), taps[0][1].dtype, normalized, colors)


def weigh(
    taps: Sequence[tuple[Array, NDArray[Any]]], normalized: bool, colors: int = 0
) -> NDArray[np.float64]:
    """Return the weighted sum of taps, scaled by 256. Sums of further taps may be added
    before `settle`.
    """
    if not (normalized and taps[0][1].dtype.kind in "iu"):
        return _total(taps, np.dtype(np.float64))
    total: NDArray[np.float64] = _total(taps, np.dtype(np.int64)).astype(np.float64)
    if colors:
        total[:, :colors] = _linear_total(taps, colors)
    return total


def settle(
    total: NDArray[np.float64], dtype: np.dtype[Any], normalized: bool, colors: int = 0
) -> NDArray[np.float64]:
    """Round a weighted sum of texels of type `dtype`, once for all taps."""
    if normalized and dtype.kind in "iu":
        texels = _INTEGER[dtype.str[1:]](total.astype(np.int64))
        if colors:
            texels[:, :colors] = _as_half(total[:, :colors] / ONE)
        return texels
    mean: NDArray[np.float64] = total / ONE
    return _as_half(mean) if dtype.itemsize == 2 else mean


def _linear_total(taps: Sequence[tuple[Array, NDArray[Any]]], colors: int) -> NDArray[np.float64]:
    """Return the weighted sum of sRGB texels as linear numbers.

    In each slice in z, values are truncated 8 bits below the largest with a weight; from 0.945 of a
    power of two on that counts as the next power. An NVIDIA H200 gives the same for all samples of
    one dimension; 1 in 150 differs in two dimensions, 1 in 25 in three, by a 400th at most.
    """
    total = np.zeros((len(taps[0][0]), colors))
    for start in range(0, len(taps), 4):
        part = [
            (weight[:, None], LINEAR[texels[:, :colors]]) for weight, texels in taps[start:][:4]
        ]
        largest = np.max([np.where(weight > 0, value, 0) for weight, value in part], axis=0)
        fraction, exponent = np.frexp(largest)
        unit = np.ldexp(1.0, exponent + (fraction >= _NEXT) - 8)
        for weight, value in part:
            total += weight * np.floor(value / unit) * unit
    return total


_NEXT = 0.945


def _total(taps: Sequence[tuple[Array, NDArray[Any]]], dtype: np.dtype[Any]) -> Array:
    total: Array = np.zeros(taps[0][1].shape, dtype)
    for weight, texels in taps:
        with np.errstate(invalid="ignore"):  # an infinite texel with weight 0
            shares = weight[:, None] * texels.astype(dtype)
        if dtype.kind == "f":
            shares[weight == 0] = 0
        total += shares
    return total


def _octets(total: Array) -> NDArray[np.float64]:
    """Round a sum of unsigned 8-bit texels, widened to 16 bits."""
    return _part(_rounded(total * 257), 65535)


def _signed_octets(total: Array) -> NDArray[np.float64]:
    """Widen a sum of signed 8-bit texels, scaled by 256, to 16 bits."""
    return _part(total + (((total >> 4) * 257 + 1024) >> 11), 32767)


def _words(total: Array) -> NDArray[np.float64]:
    return _part(_rounded(total), 65535)


def _signed_words(total: Array) -> NDArray[np.float64]:
    return _part(_rounded(total), 32767)


_INTEGER: Mapping[str, Callable[[Array], NDArray[np.float64]]] = {
    "u1": _octets,
    "i1": _signed_octets,
    "u2": _words,
    "i2": _signed_words,
}


def _rounded(total: Array) -> Array:
    return (total + ONE // 2) >> 8


def _part(value: Array, of: int) -> NDArray[np.float64]:
    part: NDArray[np.float64] = np.maximum(value / float(of), -1.0)
    return part


def _as_half(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to the nearest half float, ties away from zero."""
    _, exponent = np.frexp(values)
    unit = np.ldexp(1.0, np.maximum(exponent, -13) - 11)
    near = np.copysign(np.floor(np.abs(values) / unit + 0.5) * unit, values)
    return np.where(np.isfinite(values), near, values)


FARTHEST_LEVEL = 1 << 10
"""Levels of detail are clamped to this."""


@dataclass(frozen=True, slots=True)
class Mipmap:
    """Level selection of a mipmapped texture; its other levels are the textures that follow it."""

    count: int
    filter_mode: str
    bias: float
    least: float
    most: float


def split_levels(
    mipmap: Mipmap, detail: Array, adds_bias: bool = True
) -> Iterator[tuple[int, NDArray[np.intp], Array]]:
    """Yield each level that is read, the samples (m,) of `detail` (n,) that read it, and its
    weights.
    """
    level_of_detail = _parts(np.nan_to_num(detail)) + (_parts(mipmap.bias) if adds_bias else 0)
    final_level = np.maximum(np.minimum(level_of_detail, _parts(mipmap.most)), _parts(mipmap.least))
    final_level = np.clip(final_level, 0, ONE * (mipmap.count - 1))
    if mipmap.filter_mode == "linear":
        lower, far = np.divmod(final_level, ONE)
    else:
        lower = (final_level + ONE // 2) // ONE
        far = np.zeros_like(lower)
    for level in range(mipmap.count):
        weights = np.where(lower == level, ONE - far, np.where(lower + 1 == level, far, 0))
        samples = np.flatnonzero(weights)
        if samples.size:
            yield level, samples, weights[samples]


def _parts(detail: Array | float) -> Array:
    """Return a level of detail in 1/256, truncated towards 0; NaN is the farthest level."""
    plain = np.nan_to_num(
        np.asarray(detail, np.float64),
        nan=FARTHEST_LEVEL,
        posinf=FARTHEST_LEVEL,
        neginf=-FARTHEST_LEVEL,
    )
    cut: Array = np.trunc(ONE * np.clip(plain, -FARTHEST_LEVEL, FARTHEST_LEVEL)).astype(np.int64)
    return cut


def detail_of(extent: Sequence[int], gradients: Sequence[Sequence[Array]]) -> Array:
    """Return the level of detail (n,) of two gradients in normalised coordinates, a component
    per axis.
    """
    scale = np.array(extent, np.float64)[:, None]
    one, other = (np.stack(each) * scale for each in gradients)
    along = np.maximum(_length(one), _length(other))
    across = 11 / 16 * np.maximum(_length(one + other), _length(one - other))
    with np.errstate(divide="ignore"):
        detail: Array = np.log2(np.maximum(along, across))
    return detail


def _length(gradient: Array) -> Array:
    size = np.abs(gradient)
    longest = size.max(axis=0)
    length: Array = longest + 11 / 32 * (size.sum(axis=0) - longest)
    return length


CUT = float(1 << 21)
"""Normalised coordinates are multiples of one part in this many."""

FAR = 1 << 30
"""Coordinates are clamped to this many texels."""


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture and its texels: `texels()` gives (layers, depth, height, width, channels).

    For linear memory the function reads the memory as it is now. For a mipmapped texture it gives
    level 0. `border` (channels,) is the texel outside, by default zeros. The first `colors`
    channels are sRGB. A filter of `bordered_rows` reads one dimension as the lower edge of two,
    beyond which is the border: half of each sample is border.
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
        """The number of dimensions, without layers, and whether it is layered."""
        return len(self.description.extent), self.description.layers > 0

    @property
    def is_filtered(self) -> bool:
        """True if samples are weighted means of texels."""
        return self.description.filter_mode == "linear"

    @property
    def is_linear_memory(self) -> bool:
        """True for a view of an array, False for a copy."""
        return self.description.array != ""

    @property
    def is_normalized_read(self) -> bool:
        """True if integer texels are read as numbers in [0, 1] or [-1, 1]."""
        return self.description.read_mode == "normalized_float"

    @property
    def gives_floats(self) -> bool:
        """True if samples are floats, False for integers."""
        return self.is_normalized_read or self.description.format[0] == "f"


def shape_words(dimensions: int, layered: bool, is_cubemap: bool = False) -> str:
    """Return a texture's shape in words: `2 dimensions`, `layers of 1 dimension`."""
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
    """Sample coordinates of n lanes: `coordinates`, one (n,) array per dimension, x first; `layer`
    (n,).

    With `fetch` the coordinates are integers that name texels (tex1Dfetch): neither normalised nor
    filtered. `offsets` are whole texels to add, an array (n,) per dimension, or none. `share` is
    the weight (n,) in 1/256 of this level beside another one, or none: all.
    """

    coordinates: Sequence[Array]
    layer: Array
    fetch: bool = False
    offsets: Sequence[Array] = ()
    share: Array | None = None

    def some(self, lanes: NDArray[np.intp], share: Array | None) -> "Places":
        """Return the coordinates of some lanes, with their share."""
        coordinates = [each[lanes] for each in self.coordinates]
        offsets = [each[lanes] for each in self.offsets]
        return Places(coordinates, self.layer[lanes], self.fetch, offsets, share)


def sample(texture: Texture, at: Places) -> Sample:
    """Sample a texture; samples with a share are sums that `settled` rounds."""
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
    coordinates = [
        _clamped(texture, each, extent[axis], axis) for axis, each in enumerate(fixed + edge)
    ]
    taps = [
        (weight, _taps(texture, texels, _moved(coordinates, step), layer, False))
        for step, weight in split_weight([each & (ONE - 1) for each in coordinates], at.share)
    ]
    lower = [each // ONE for each in fixed]
    exact_axes = sum((each % ONE == 0) << (LAYER_BITS + axis) for axis, each in enumerate(fixed))
    total = weigh(taps, texture.is_normalized_read, texture.colors)
    values = total if at.share is not None else settled(texture, total)
    return Sample(values, _corners(lower, layer | exact_axes))


def settled(texture: Texture, total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the sums of samples with shares, over all levels."""
    dtype = texture.texels().dtype
    return settle(total, dtype, texture.is_normalized_read, texture.colors)


COUNTER_CLOCKWISE: tuple[Step, ...] = ((0, 1), (1, 1), (1, 0), (0, 0))
"""The texels of a gather in the order of its results (PTX ISA, tld4)."""


def gather(texture: Texture, at: Places, channel: int) -> Sample:
    """Return one channel of the four texels that a linear filter would blend, unweighted."""
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
    """Return the coordinates in texels, with offsets."""
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
    """Return coordinates minus half a texel as multiples of 1/256."""
    return [np.floor(ONE * (place - 0.5) + 0.5).astype(np.int64) for place in places]


def _corners(lower: list[Array], layer: Array) -> NDArray[np.int32]:
    corners = np.zeros((len(layer), 4), dtype=np.int32)
    for axis, index in enumerate(lower):
        corners[:, axis] = index
    corners[:, 3] = layer
    return corners


def _moved(fixed: list[Array], step: Step) -> list[Array]:
    return [each // ONE + by for each, by in zip(fixed, step, strict=True)]


def _clamped(texture: Texture, fixed: Array, size: int, axis: int) -> Array:
    """Return a coordinate minus half a texel, in 1/256, clamped to the texture if its mode is
    clamp.
    """
    clamps = _mode(texture, axis, False) == "clamp"
    return np.clip(fixed, 0, ONE * (size - 1)) if clamps else fixed


def _in_texels(texture: Texture, coordinate: Array, size: int, axis: int) -> NDArray[np.float64]:
    """Return a coordinate in texels; NaN is 0, and wrap and mirror are applied first."""
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
            in_range = (i >= 0) & (i < size)
            inside = in_range if inside is None else inside & in_range
        if mode == "wrap":
            i = np.mod(i, size)
        elif mode == "mirror":
            i = np.mod(i, 2 * size)
            i = np.where(i < size, i, 2 * size - 1 - i)
        places.append(np.clip(i, 0, size - 1))
    taps = _at(texels, layer, places[::-1])
    if inside is not None:
        border = texels.dtype.type(0) if fetch or texture.border is None else texture.border
        taps = np.where(inside[:, None], taps, border)
    return taps


def _at(texels: NDArray[Any], layer: Array, places: list[Array]) -> Array:
    """Return texels (n, channels) at layer, z, y and x, as far as these are given."""
    if not texels.flags.c_contiguous:  # rows of pitched memory
        return np.asarray(texels[(layer, *(0,) * (3 - len(places)), *places)])
    number = layer
    for size, place in zip(texels.shape[4 - len(places) : 4], places, strict=True):
        number = number * size + place
    return texels.reshape(-1, texels.shape[4]).take(number, axis=0)


def _as_read(texture: Texture, values: Array) -> Array:
    """Return texels unchanged, or 8- or 16-bit integers as normalised numbers."""
    if not texture.is_normalized_read or values.dtype.kind == "f":
        return values if values.dtype.kind in "iu" else values.astype(np.float64)
    largest = np.iinfo(values.dtype).max
    read: Array = np.maximum(values.astype(np.float64) / largest, -1.0)
    read[:, : texture.colors] = LINEAR[values[:, : texture.colors]]
    return read


FACES = 6


def project(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Return the cube face (n,), and the two coordinates on it, of directions (n,); z wins a
    tie.
    """
    size_x, size_y, size_z = np.abs(x), np.abs(y), np.abs(z)
    along_z = (size_z >= size_x) & (size_z >= size_y)
    along_y = ~along_z & (size_y >= size_x)
    major = np.where(along_z, z, np.where(along_y, y, x))
    is_negative = major < 0
    face = np.where(along_z, 4, np.where(along_y, 2, 0)) + is_negative
    s = np.where(
        along_z, np.where(is_negative, -x, x), np.where(along_y, x, np.where(is_negative, z, -z))
    )
    t = np.where(along_y, np.where(is_negative, -z, z), -y)
    with np.errstate(divide="ignore", invalid="ignore"):
        s, t = ((each / np.abs(major) + 1) / 2 for each in (s, t))
    return face, s, t


def border_texel(
    color: Sequence[float], element: np.dtype[Any], is_normalized: bool, colors: int
) -> NDArray[Any]:
    """Return the border texel (4,) of a descriptor's color; the first `colors` channels are
    sRGB.
    """
    values = np.array(color, np.float32)
    if element.kind == "f":
        return Texel(element, 4).convert(values)
    if not is_normalized:
        return values.view(np.uint32).astype(f"<u{element.itemsize}").view(element)
    limits = np.iinfo(element)
    exact = np.clip(np.nan_to_num(values.astype(np.float64)), -1.0 if limits.min else 0.0, 1.0)
    unit = 16.0 * (limits.max + 1)
    part = np.ceil(np.floor(np.abs(exact) * unit) / unit * limits.max - 0.5)
    texel = np.copysign(part, exact)
    texel[:colors] = np.floor(encode(exact[:colors]) * limits.max + 0.5)
    return texel.astype(element)


# fmt: off
_LINEAR = (
    0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 66, 72, 78, 85, 92, 99, 107, 115, 123, 131,
    140, 150, 159, 169, 180, 190, 201, 213, 224, 236, 250, 262, 276, 290, 304, 318, 332, 348,
    364, 380, 396, 412, 430, 448, 466, 484, 504, 524, 544, 564, 584, 604, 624, 648, 672, 692,
    716, 740, 764, 788, 816, 840, 864, 896, 920, 944, 976, 1000, 1032, 1064, 1088, 1120, 1152,
    1184, 1216, 1248, 1280, 1312, 1352, 1384, 1416, 1456, 1488, 1528, 1560, 1600, 1640, 1672,
    1712, 1752, 1792, 1832, 1872, 1920, 1952, 2000, 2048, 2080, 2128, 2176, 2224, 2272, 2320,
    2368, 2416, 2464, 2512, 2560, 2608, 2656, 2704, 2752, 2816, 2864, 2912, 2976, 3024, 3072,
    3136, 3184, 3248, 3296, 3360, 3424, 3472, 3536, 3600, 3664, 3712, 3776, 3840, 3904, 3968,
    4032, 4096, 4160, 4224, 4288, 4352, 4416, 4512, 4576, 4640, 4704, 4768, 4864, 4928, 4992,
    5056, 5152, 5216, 5280, 5376, 5440, 5536, 5600, 5696, 5760, 5824, 5920, 6016, 6080, 6176,
    6240, 6336, 6400, 6496, 6592, 6688, 6752, 6848, 6944, 7008, 7104, 7200, 7296, 7392, 7488,
    7584, 7680, 7744, 7872, 7936, 8064, 8128, 8256, 8320, 8448, 8512, 8640, 8768, 8832, 8960,
    9024, 9152, 9280, 9344, 9472, 9600, 9664, 9792, 9920, 9984, 10112, 10240, 10304, 10432,
    10560, 10688, 10816, 10880, 11008, 11136, 11264, 11392, 11456, 11584, 11712, 11840, 11968,
    12096, 12224, 12352, 12480, 12608, 12736, 12864, 12992, 13120, 13248, 13376, 13504, 13632,
    13760, 13888, 14016, 14144, 14272, 14400, 14528, 14656, 14848, 14976, 15104, 15232, 15360,
    15488, 15616, 15744, 16000, 16128, 16256, 16384,
)
# fmt: on
"""The chip's curve of IEC 61966-2-1, in 1/16384."""

LINEAR = np.array(_LINEAR, np.float64) / 16384


def colors_of(channels: int) -> int:
    """Return how many of a texel's channels are linearized."""
    return 3 if channels == 4 else 1


def encode(values: Array) -> Array:
    """Return linear numbers in [0, 1] as sRGB numbers in [0, 1]."""
    encoded = 1.055 * values ** (1 / 2.4) - 0.055
    return np.where(values <= 0.0031308, values * 12.92, encoded)
