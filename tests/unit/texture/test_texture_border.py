"""The texel of a border color, and the numbers of sRGB texels, as an NVIDIA H200 has them."""

import numpy as np
import pytest

from cutrace.tracer.simt.memory.texture import LINEAR, border_texel


@pytest.mark.parametrize(
    ("dtype", "is_normalized", "color", "texel"),
    [
        ("f4", False, 0.3, np.float32(0.3)),
        ("f2", False, 0.3, 0.2998046875),  # cut off, where 0.300048828125 is nearer
        ("f2", False, 1e6, 65504.0),
        ("u1", True, 0.5, 127),  # 127.5, towards zero
        ("u1", True, 0.994122, 253),  # 253.501, but 4071 / 4096 of 255 is 253.44
        ("u1", True, 0.747078, 191),
        ("u1", True, -1.0, 0),
        ("i1", True, -0.5, -63),
        ("i1", True, -1.0, -127),
        ("u2", True, 0.3, 19660),
        ("i2", True, 0.5, 16383),
        ("u1", False, 0.3, 0x9A),  # the low bits of 0x3e99999a
        ("i2", False, 0.3, 0x999A - 0x10000),
        ("u4", False, 0.3, 0x3E99999A),
        ("u1", True, float("nan"), 0),
        ("u1", True, float("inf"), 255),
    ],
)
def test_a_border_is_a_texel(dtype: str, is_normalized: bool, color: float, texel: float) -> None:
    found = border_texel([color] * 4, np.dtype(dtype), is_normalized, 0)
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == [texel] * 4


def test_srgb_borders_are_encoded_in_their_colors_alone() -> None:
    assert border_texel([0.5] * 4, np.dtype("u1"), True, 3).tolist() == [188, 188, 188, 127]


def test_srgb_numbers_are_near_the_curve() -> None:
    value = np.arange(256) / 255  # IEC 61966-2-1
    curve = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    assert np.abs(LINEAR - curve).max() < 1 / 256
    assert (LINEAR[[51, 188]] == [17 / 512, 129 / 256]).all()
