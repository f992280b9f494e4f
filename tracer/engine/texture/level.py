"""Levels of mipmapped textures: which of them a sample takes, and how much of each.

A level of detail is the binary logarithm of how many texels of level 0 a sample stands for: what
the kernel says, or that of the longer of its two gradients (OpenGL 4.6, 8.14). The texture's bias
is added, and the sum is held between the texture's clamps and its levels. A point filter takes the
nearest level, of two equally near the finer one; a linear one the two around, by the fraction
rounded to 1/256. A sample that names no level has level of detail 0 (PTX ISA, tex.base).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..lanes import Array
from .filter import ONE


@dataclass(frozen=True, slots=True)
class Mipmap:
    """How the levels of a texture are chosen; the textures of the others follow its own."""

    count: int
    filter_mode: str
    bias: float
    least: float
    most: float


def split_levels(mipmap: Mipmap, detail: Array) -> Iterator[tuple[int, NDArray[np.intp], Array]]:
    """Yield each level that is read, the samples (m,) of `detail` (n,) that do, and its weights."""
    asked = np.where(np.isnan(detail), 0.0, detail.astype(np.float64)) + mipmap.bias
    held = np.clip(np.clip(asked, mipmap.least, mipmap.most), 0, mipmap.count - 1)
    if mipmap.filter_mode == "linear":
        lower, far = np.divmod(np.floor(ONE * held + 0.5).astype(np.int64), ONE)
    else:
        lower = np.ceil(held - 0.5).astype(np.int64)
        far = np.zeros_like(lower)
    for level in range(mipmap.count):
        weights = np.where(lower == level, ONE - far, np.where(lower + 1 == level, far, 0))
        samples = np.flatnonzero(weights)
        if samples.size:
            yield level, samples, weights[samples]


def detail_of(extent: Sequence[int], gradients: Sequence[Sequence[Array]]) -> Array:
    """The level of detail (n,) of two gradients in normalised coordinates, a component an axis."""
    scale = np.array(extent, np.float64)[:, None]
    lengths = [np.linalg.norm(np.stack(each) * scale, axis=0) for each in gradients]
    with np.errstate(divide="ignore"):
        detail: Array = np.log2(np.maximum(lengths[0], lengths[1]))
    return detail
