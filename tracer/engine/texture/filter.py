"""Linear filtering of textures: the weights of the taps, and the arithmetic of each texel type.

A coordinate less half a texel is rounded to the nearest 1/256: its integer part is the lower
corner, its fraction 0 to 255 the part of the weight, 256 in all, that goes to the far texel. The
weight is split by z first, then by x, then by y. The far texel gets the product rounded half up
and the near one what is left; at the last split the texels near in x have it the other way round.
(In two dimensions this is w11 = round(a b), w10 = a - w11, w01 = b - w11, w00 = 256 - a - b + w11.)

Integers read as normalised numbers are summed in fixed point. 16-bit sums are rounded to 16 bits;
unsigned 8-bit texels are first widened to v * 257; signed 8-bit sums are widened afterwards. Sums
of half floats are rounded to half, ties away from zero; floats are summed as they are. A texel of
weight 0 counts for nothing, infinite or not.

All measured on an NVIDIA H200: weights, integers and half floats of one dimension bit for bit,
floats to a unit in the last place; of half floats in two and three dimensions a few in a hundred
differ, where small and large texels meet. Texture units before it are taken to do the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..lanes import Array
from .srgb import LINEAR

Step: TypeAlias = tuple[int, ...]
"""Where a tap lies from the lower corner: 0 or 1 in x, y, z."""

ONE = 256
"""The weights of all taps together."""


def split_weight(
    fractions: Sequence[Array], whole: Array | None = None
) -> Iterator[tuple[Step, Array]]:
    """Yield the taps and their weights; `fractions` (n,) are those of x, y, z, 0 to 255.

    Of a mipmapped texture's level the `whole` (n,) is its part: the level is split before z.
    """
    x, *rest = (f.astype(np.int64) for f in fractions)
    y, z = rest[0] if rest else None, rest[1] if len(rest) > 1 else None
    for k, layer in enumerate(_halves(np.full_like(x, ONE) if whole is None else whole, z)):
        for i, column in enumerate(_halves(layer, x)):
            if y is None:
                yield (i,), column
                continue
            near, far = _halves(column, y) if i else _halves(column, ONE - y)[::-1]
            yield (i, 0, k)[: len(fractions)], near
            yield (i, 1, k)[: len(fractions)], far


def _halves(weight: Array, fraction: Array | None) -> tuple[Array, ...]:
    """Split a weight in near and far by the far one's fraction; whole where there is none."""
    if fraction is None:
        return (weight,)
    far = (weight * fraction + ONE // 2) >> 8
    return weight - far, far


def blend(
    taps: Sequence[tuple[Array, NDArray[Any]]], normalized: bool, colors: int = 0
) -> NDArray[np.float64]:
    """Return the filtered texels (n, channels); a tap is its weights (n,) and texels (n, channels).

    `normalized` integers become numbers from -1 or 0 to 1. The first `colors` are sRGB.
    """
    return settle(weigh(taps, normalized, colors), taps[0][1].dtype, normalized, colors)


def weigh(
    taps: Sequence[tuple[Array, NDArray[Any]]], normalized: bool, colors: int = 0
) -> NDArray[np.float64]:
    """Return the sum of what `blend` takes, 256 times too large: more sums may be added to it."""
    if not (normalized and taps[0][1].dtype.kind in "iu"):
        return _total(taps, np.dtype(np.float64))
    total: NDArray[np.float64] = _total(taps, np.dtype(np.int64)).astype(np.float64)
    if colors:
        total[:, :colors] = _linear_total(taps, colors)
    return total


def settle(
    total: NDArray[np.float64], dtype: np.dtype[Any], normalized: bool, colors: int = 0
) -> NDArray[np.float64]:
    """Round a sum of texels of a type, once for all that were added."""
    if normalized and dtype.kind in "iu":
        found = _INTEGER[dtype.str[1:]](total.astype(np.int64))
        if colors:
            found[:, :colors] = _as_half(total[:, :colors] / ONE)
        return found
    mean: NDArray[np.float64] = total / ONE
    return _as_half(mean) if dtype.itemsize == 2 else mean


def _linear_total(taps: Sequence[tuple[Array, NDArray[Any]]], colors: int) -> NDArray[np.float64]:
    """Return the sum of sRGB texels as linear numbers.

    Of each slice in z they are cut off 8 bits below the largest that has a weight; from 0.945 of a
    power of two on that is taken for the next one. On an NVIDIA H200 so are all samples of one
    dimension, of two 1 in 150 differs, of three 1 in 25, by a 400th at most.
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
        with np.errstate(invalid="ignore"):  # an infinite texel of no weight
            shares = weight[:, None] * texels.astype(dtype)
        if dtype.kind == "f":
            shares[weight == 0] = 0
        total += shares
    return total


def _octets(total: Array) -> NDArray[np.float64]:
    """Round a sum of unsigned 8-bit texels, widened."""
    return _part(_rounded(total * 257), 65535)


def _signed_octets(total: Array) -> NDArray[np.float64]:
    """Widen a sum of signed 8-bit texels, 256 times too large, to 16 bits."""
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
