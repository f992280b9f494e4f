"""Levels of mipmapped textures: which of them a sample takes, and how much of each.

A level of detail is the binary logarithm of how many texels of level 0 a sample stands for: what
the kernel says, or that of its two gradients (OpenGL 4.6, 8.14). The texture's bias is added, and
the sum is held between the texture's clamps and its levels, all in 1/256, cut off towards 0. Of
clamps that cross the lower one counts; a bias or a clamp that is no number is as large as can be. A
point filter takes the nearest level, of two equally near the coarser one; a linear one the two
around. A sample that names no level has level of detail 0, without the bias (PTX ISA, tex.base).

Measured on an NVIDIA H200, 256 samples of each kind: the levels and their weights bit for bit, the
level of detail of gradients to 1/256. The length of a gradient there is its larger component and
11/32 of the smaller one; a sample stands for the longest of the two gradients, and of 11/16 of
their sum and difference.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ..lanes import Array
from .filter import ONE

FAR = 1 << 10
"""Levels of detail beyond this are taken as this."""


@dataclass(frozen=True, slots=True)
class Mipmap:
    """How the levels of a texture are chosen; the textures of the others follow its own."""

    count: int
    filter_mode: str
    bias: float
    least: float
    most: float


def split_levels(
    mipmap: Mipmap, detail: Array, adds_bias: bool = True
) -> Iterator[tuple[int, NDArray[np.intp], Array]]:
    """Yield each level that is read, the samples (m,) of `detail` (n,) that do, and its weights."""
    asked = _parts(np.nan_to_num(detail)) + (_parts(mipmap.bias) if adds_bias else 0)
    held = np.maximum(np.minimum(asked, _parts(mipmap.most)), _parts(mipmap.least))
    held = np.clip(held, 0, ONE * (mipmap.count - 1))
    if mipmap.filter_mode == "linear":
        lower, far = np.divmod(held, ONE)
    else:
        lower = (held + ONE // 2) // ONE
        far = np.zeros_like(lower)
    for level in range(mipmap.count):
        weights = np.where(lower == level, ONE - far, np.where(lower + 1 == level, far, 0))
        samples = np.flatnonzero(weights)
        if samples.size:
            yield level, samples, weights[samples]


def _parts(detail: Array | float) -> Array:
    """A level of detail in 1/256, cut off towards 0; no number is as far as can be."""
    plain = np.nan_to_num(np.asarray(detail, np.float64), nan=FAR, posinf=FAR, neginf=-FAR)
    cut: Array = np.trunc(ONE * np.clip(plain, -FAR, FAR)).astype(np.int64)
    return cut


def detail_of(extent: Sequence[int], gradients: Sequence[Sequence[Array]]) -> Array:
    """The level of detail (n,) of two gradients in normalised coordinates, a component an axis."""
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
