"""Texture samples are what was measured on hardware, and what plain Python makes of its rules."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from textures import (
    cut,
    linear_1d,
    linear_2d,
    octets_2d,
    place_index,
    sampled,
    texel,
    texture_of,
    values_of,
)

MODES = ("clamp", "border", "wrap", "mirror")
RANDOM = np.random.default_rng(7)
ROW = RANDOM.normal(size=9).astype(np.float32)
IMAGE = RANDOM.normal(size=(7, 5)).astype(np.float32)
BRICK = RANDOM.normal(size=(4, 3, 6)).astype(np.float32)


def places(size: int, count: int = 500) -> Any:
    """Coordinates in texels, in and around a dimension, as the kernel has them."""
    return RANDOM.uniform(-1.5 * size, 2.5 * size, count).astype(np.float32)


@pytest.mark.document("004.6", "weights of 8 fractional bits: 26, 51, 77 ... of 256")
def test_the_published_table_of_a_linear_texture_of_two_texels() -> None:
    # forums.developer.nvidia.com/t/tex1d-accuracy/6801: T = {1, 2}, normalised, clamped, linear
    keys = np.arange(0.25, 0.76, 0.05).astype(np.float32)
    parts = [0, 26, 51, 77, 102, 128, 154, 179, 205, 230, 256]
    texture = texture_of(np.array([1, 2], np.float32), "clamp", "linear", normalized=True)
    assert values_of(texture, keys).tolist() == [1 + part / 256 for part in parts]


@pytest.mark.parametrize("mode", ["clamp", "border"])
def test_linear_samples_of_a_row_follow_the_rule_exactly(mode: str) -> None:
    x = places(9)
    expected = [linear_1d(ROW, float(each), mode) for each in x]
    found = values_of(texture_of(ROW, mode, "linear"), x)
    assert found.astype(np.float32).tolist() == np.array(expected, np.float32).tolist()


@pytest.mark.parametrize("mode", ["clamp", "border"])
def test_linear_samples_of_an_image_follow_the_rule_exactly(mode: str) -> None:
    x, y = places(5), places(7)
    expected = [linear_2d(IMAGE, float(u), float(v), mode) for u, v in zip(x, y, strict=True)]
    found = values_of(texture_of(IMAGE, mode, "linear"), x, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mode", ["wrap", "mirror"])
def test_linear_samples_of_an_image_that_repeats_follow_the_rule_exactly(mode: str) -> None:
    x, y = places(1), places(1)
    texture = texture_of(IMAGE, mode, "linear", normalized=True)
    expected = [linear_2d(IMAGE, 5 * cut(u), 7 * cut(v), mode) for u, v in zip(x, y, strict=True)]
    np.testing.assert_allclose(values_of(texture, x, y), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("mode", "values"), list(product(MODES, (ROW, IMAGE, BRICK))), ids=lambda case: str(case)[:6]
)
def test_point_samples_are_the_texel_at_the_floor(mode: str, values: Any) -> None:
    normalized = mode in ("wrap", "mirror")
    sizes = values.shape[::-1]
    coordinates = [places(1 if normalized else size) for size in sizes]
    found = values_of(texture_of(values, mode, normalized=normalized), *coordinates)
    for lane, value in enumerate(found):
        scaled = [
            cut(c[lane]) * size if normalized else float(c[lane])
            for c, size in zip(coordinates, sizes, strict=True)
        ]
        assert value == texel(values, [int(np.floor(each)) for each in scaled], mode)


def test_octets_read_as_numbers_are_filtered_in_sixteen_bits() -> None:
    image = RANDOM.integers(0, 256, size=(7, 5), dtype=np.uint8)
    x, y = places(5), places(7)
    texture = texture_of(image, "clamp", "linear", read_mode="normalized_float")
    expected = [octets_2d(image, float(u), float(v)) for u, v in zip(x, y, strict=True)]
    assert values_of(texture, x, y).tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([0, 51, 255], np.uint8), [0, 0.2, 1]),
        (np.array([0, 13107, 65535], np.uint16), [0, 0.2, 1]),
        (np.array([-128, -127, 0, 127], np.int8), [-1, -1, 0, 1]),
        (np.array([-32768, -32767, 0, 32767], np.int16), [-1, -1, 0, 1]),
    ],
)
def test_integers_read_as_numbers_fill_the_range(values: Any, expected: list[float]) -> None:
    texture = texture_of(values, read_mode="normalized_float")
    assert values_of(texture, np.arange(len(values)) + 0.5).tolist() == expected


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2"])
def test_a_linear_sample_at_the_middle_of_a_texel_is_the_texel(kind: str) -> None:
    info = np.iinfo(kind)
    values = np.array([info.min, info.min + 1, 0, 1, 64, 65, info.max], kind)
    point, linear = (
        texture_of(values, "clamp", filter_mode, read_mode="normalized_float")
        for filter_mode in ("point", "linear")
    )
    middles = np.arange(7) + 0.5
    step = 1 / 32767 if kind[0] == "i" else 0  # 8 signed bits are widened to 15
    assert np.abs(values_of(point, middles) - values_of(linear, middles)).max() <= step


def test_the_eight_weights_of_a_brick_are_split_by_z_then_x_then_y() -> None:
    x, y, z = (RANDOM.uniform(0.5, 1.5, 300).astype(np.float32) for _ in range(3))
    for corner in product((0, 1), repeat=3):
        hot = np.zeros((2, 2, 2), np.float32)
        hot[corner] = 1
        found = values_of(texture_of(hot, "clamp", "linear"), x, y, z) * 256
        for lane, weight in enumerate(found):
            fractions = [int(np.floor(256 * (float(c[lane]) - 0.5) + 0.5)) for c in (x, y, z)]
            assert weight == eighth(*fractions, *corner[::-1])


def eighth(a: int, b: int, c: int, i: int, j: int, k: int) -> int:
    """The weight of texel (i, j, k) of a 2 x 2 x 2 brick at fractions a, b, c, all in 1/256."""
    layer = c if k else 256 - c
    right = (layer * a + 128) // 256
    column = right if i else layer - right
    if i:
        upper = (column * b + 128) // 256
        return upper if j else column - upper
    lower = (column * (256 - b) + 128) // 256
    return column - lower if j else lower


def test_half_floats_are_filtered_to_half_floats_with_ties_away_from_zero() -> None:
    texture = texture_of(np.array([1, 1 + 2**-10], np.float16), "clamp", "linear")
    found = values_of(texture, np.array([0.5, 0.75, 1.0, 1.25, 1.5]))
    assert found.tolist() == [1, 1, 1 + 2**-10, 1 + 2**-10, 1 + 2**-10]


@pytest.mark.document("004.6", "wrap only with normalised coordinates")
def test_wrap_and_mirror_are_clamp_where_coordinates_are_not_normalised() -> None:
    x = places(9)
    clamped = values_of(texture_of(ROW), x).tolist()
    assert values_of(texture_of(ROW, "wrap"), x).tolist() == clamped
    assert values_of(texture_of(ROW, "mirror"), x).tolist() == clamped


def test_each_dimension_has_its_own_address_mode_x_first() -> None:
    texture = texture_of(IMAGE, ("border", "clamp"))
    assert values_of(texture, np.array([-1.0, 2.0]), np.array([3.0, -1.0])).tolist() == [
        0,
        IMAGE[0, 2],
    ]


def test_a_fetch_names_texels_by_integers_without_filter_or_normalisation() -> None:
    texture = texture_of(ROW, "wrap", "linear", normalized=True)
    found = values_of(texture, np.array([-5, 0, 8, 9, 2**31 - 1], np.int32), fetch=True)
    # beyond the texture an H200 reads zeros: tests/validate/test_images.py
    assert found.tolist() == [0, ROW[0], ROW[8], 0, 0]


def test_a_fetch_outside_linear_memory_reads_zero() -> None:
    texture = texture_of(ROW, "clamp", array="d")
    found = values_of(texture, np.array([-(2**31), -1, 0, 8, 9], np.int32), fetch=True)
    assert found.tolist() == [0, 0, ROW[0], ROW[8], 0]


def test_a_texel_of_weight_zero_counts_for_nothing() -> None:
    texture = texture_of(np.array([1, np.inf, 2, np.nan, 3], np.float32), "clamp", "linear")
    found = values_of(texture, np.array([0.5, 1.5, 2.5, 4.5, 0.75]))
    assert found.tolist() == [1, np.inf, 2, 3, np.inf]


def test_a_layer_beyond_the_last_is_the_last() -> None:
    layered = texture_of(IMAGE, layers=7)
    x = np.array([2.5])
    assert [values_of(layered, x, layer=n)[0] for n in (0, 6, 99, 2**32 - 1)] == [
        IMAGE[n, 2] for n in (0, 6, 6, 6)
    ]
    assert sampled(layered, x, layer=2**32 - 1).corner.tolist() == [[2, 0, 0, 6]]


@pytest.mark.parametrize("filter_mode", ["point", "linear"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("values", [ROW, IMAGE, BRICK], ids=["1d", "2d", "3d"])
def test_no_coordinate_is_too_strange(
    values: Any, mode: str, filter_mode: str, normalized: bool
) -> None:
    strange = [np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e10, -1e10, 2.0**31, -(2.0**31), 1e-45]
    lanes = np.array(list(product(strange, repeat=values.ndim)), np.float32)
    texture = texture_of(values, mode, filter_mode, normalized)
    found = sampled(texture, *lanes.T)
    assert np.isfinite(found.values).all()
    assert np.abs(found.corner).max() <= 2**30 + 1


def test_far_away_is_the_edge_or_the_border() -> None:
    far = np.array([np.inf, -np.inf, 3e38, -3e38])
    assert values_of(texture_of(ROW), far).tolist() == ROW[[8, 0, 8, 0]].tolist()
    assert values_of(texture_of(ROW, "border"), far).tolist() == [0, 0, 0, 0]


def test_no_number_is_coordinate_zero() -> None:
    assert values_of(texture_of(ROW), np.array([np.nan])).tolist() == [ROW[0]]


def test_the_corner_is_the_lower_texel_before_the_address_mode() -> None:
    x, y = np.array([-3.2, 0.2, 1.5, 1.4999, 99.0]), np.full(5, 2.25)
    point = sampled(texture_of(IMAGE), x, y).corner
    linear = sampled(texture_of(IMAGE, "clamp", "linear"), x, y).corner
    assert point[:, :2].tolist() == [[-4, 2], [0, 2], [1, 2], [1, 2], [99, 2]]
    # 1.4999 - 0.5 is 0.9999: nearer to texel 1 with weight 256 than to any other 1/256
    assert linear[:, :2].tolist() == [[-4, 1], [-1, 1], [1, 1], [1, 1], [98, 1]]


def test_a_mirror_has_a_period_of_two_sizes() -> None:
    assert [place_index(i, 3, "mirror") for i in range(-4, 8)] == [
        2,
        2,
        1,
        0,
        0,
        1,
        2,
        2,
        1,
        0,
        0,
        1,
    ]
    texture = texture_of(np.arange(3, dtype=np.float32), "mirror", normalized=True)
    x = (np.arange(-4, 8) + 0.5) / 3
    assert values_of(texture, x).tolist() == [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]
