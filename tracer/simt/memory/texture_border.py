"""The border color of a texture as a texel, and its sRGB curve.

Measured on an NVIDIA H200, 640 numbers per format. Integer texels read as integers take the low
bits of the float. Normalised ones are truncated 4 bits below the texel's lowest bit, multiplied by
the largest texel, and rounded, halves towards zero; sRGB colors are encoded and rounded. Half
floats are truncated.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.lanes import Array
from .surface import Texel


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
