"""The color of what lies outside of a texture, as a texel of it.

Measured on an NVIDIA H200, 640 numbers a format: integers read as they are take the low bits of the
float. Normalised ones are cut off 4 bits below the texel's last, times the largest texel, and
rounded, halves towards zero; sRGB colors are encoded and rounded. Half floats are cut off.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .srgb import encode
from .texel import Texel


def border_texel(
    color: Sequence[float], element: np.dtype[Any], is_normalized: bool, colors: int
) -> NDArray[Any]:
    """Return the border's texel (4,) of a descriptor's color; the first `colors` are sRGB."""
    values = np.array(color, np.float32)
    if element.kind == "f":
        return Texel(element, 4).convert(values)
    if not is_normalized:
        return values.view(np.uint32).astype(f"<u{element.itemsize}").view(element)
    limits = np.iinfo(element)
    exact = np.clip(np.nan_to_num(values.astype(np.float64)), -1.0 if limits.min else 0.0, 1.0)
    unit = 16.0 * (limits.max + 1)
    part = np.ceil(np.floor(np.abs(exact) * unit) / unit * limits.max - 0.5)
    found = np.copysign(part, exact)
    found[:colors] = np.floor(encode(exact[:colors]) * limits.max + 0.5)
    return found.astype(element)
