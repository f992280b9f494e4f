"""The textures and the surface that a random kernel may sample: their texels and modes.

oracle_units.h knows the same sizes and modes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Image:
    """What a texture or surface is made of, as `Session.texture` takes it."""

    texels: NDArray[Any]
    address_modes: tuple[str, ...] = ("clamp",)
    filter_mode: str = "point"
    normalized: bool = False
    is_linear: bool = False
    """Whether the texels lie in linear memory."""


def images(in_u: NDArray[np.uint32]) -> dict[str, Image]:
    """The images by their parameters' names, of texels made from an input."""
    small = (in_u % 64).astype("f4") - 16
    return {
        "tex_u": Image(in_u, is_linear=True),
        "tex_f": Image(small[:192].reshape(12, 16), ("clamp", "clamp")),
        "tex_l": Image(small[192:384].reshape(12, 16), ("clamp", "clamp"), "linear"),
        "tex_w": Image(in_u[:256].astype("i2").reshape(8, 32), ("wrap", "mirror"), normalized=True),
        "tex_3": Image(in_u[256:384].reshape(4, 4, 8), ("border",) * 3),
        "surf": Image(np.arange(1024, dtype="u4").reshape(32, 32)),
    }
