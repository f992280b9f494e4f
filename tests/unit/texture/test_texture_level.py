"""Which levels of a mipmapped texture a sample takes, by the rules of OpenGL 4.6, 8.14."""

from collections import defaultdict

import numpy as np
import pytest

from cutrace.tracer.simt.memory.texture import Mipmap, detail_of, split_levels


def levels_of(mipmap: Mipmap, *detail: float) -> list[dict[int, int]]:
    """The weights, in 1/256, of the levels that samples of these levels of detail take."""
    taken: dict[int, dict[int, int]] = defaultdict(dict)
    for level, samples, weights in split_levels(mipmap, np.array(detail)):
        for sample, weight in zip(samples.tolist(), weights.tolist(), strict=True):
            taken[sample][level] = weight
    return [taken[sample] for sample in range(len(detail))]


@pytest.mark.parametrize(
    ("mipmap", "detail", "expected"),
    [
        (Mipmap(3, "linear", 0, 0, 2), 0.25, {0: 192, 1: 64}),
        (Mipmap(3, "linear", 0, 0, 2), 1, {1: 256}),
        (Mipmap(3, "linear", 0, 0, 9), 7, {2: 256}),
        (Mipmap(3, "linear", 0, 0.5, 2), -4, {0: 128, 1: 128}),
        (Mipmap(3, "linear", -1.5, 0, 2), 2, {0: 128, 1: 128}),
        (Mipmap(3, "point", 0, 0, 2), 0.49, {0: 256}),
        (Mipmap(3, "point", 0, 0, 2), 0.5, {1: 256}),
        (Mipmap(3, "linear", -0.002, 0, 2), 1, {1: 256}),
        (Mipmap(3, "linear", float("nan"), 0, 2), 0, {2: 256}),
        (Mipmap(3, "linear", 0, 2, 1), 0, {2: 256}),
        (Mipmap(3, "linear", 0, float("nan"), 1), 0, {2: 256}),
        (Mipmap(3, "linear", 0, 0, float("nan")), 1.5, {1: 128, 2: 128}),
        (Mipmap(3, "point", 0, 0, 0), 2, {0: 256}),
        (Mipmap(3, "linear", 0, 0, 2), float("nan"), {0: 256}),
        (Mipmap(3, "linear", 0, 0, 2), float("-inf"), {0: 256}),
    ],
)
def test_levels_follow_bias_clamps_and_filter(
    mipmap: Mipmap, detail: float, expected: dict[int, int]
) -> None:
    assert levels_of(mipmap, detail) == [expected]


def test_each_level_is_read_once_for_all_its_samples() -> None:
    mipmap = Mipmap(3, "linear", 0, 0, 2)
    read = [(level, samples.tolist()) for level, samples, _ in split_levels(mipmap, LODS)]
    assert read == [(0, [0, 1]), (1, [1, 2]), (2, [2, 3])]


LODS = np.array([0, 0.5, 1.5, 2])


def test_a_sample_without_a_level_has_no_bias() -> None:
    levels = split_levels(Mipmap(3, "linear", 2, 0, 2), np.zeros(1), adds_bias=False)
    assert [(level, weights.tolist()) for level, _, weights in levels] == [(0, [256])]


def test_bias_and_clamps_are_cut_to_256ths() -> None:
    # 0.3 is 76.8/256, and 0.7 is 179.2/256
    assert levels_of(Mipmap(2, "linear", 0.3, 0, 1), 0) == [{0: 180, 1: 76}]
    assert levels_of(Mipmap(2, "linear", 0, 0, 0.7), 5) == [{0: 77, 1: 179}]


def test_gradients_are_as_long_as_their_octagon_in_texels() -> None:
    one = [np.array([1 / 16, 0.0, 1 / 16]), np.array([0.0, 0.0, 0.0])]
    other = [np.array([0.0, 3 / 64, 1 / 16]), np.array([1 / 32, 4 / 32, 0.0])]
    # of 64 x 32 texels: 4 beside 1; 0 beside 4 + 11/32 * 3; twice 4, whose sum is 8 * 11/16
    expected = [2, np.log2(4 + 33 / 32), np.log2(5.5)]
    assert detail_of((64, 32), (one, other)).tolist() == pytest.approx(expected)


MEASURED = [
    ((3.706466, -1.791240), (-2.737679, 0.336371), 589),
    ((1.850994, 1.503085), (-19.432932, 17.279419), 1194),
    ((-1.383279, 1.444808), (7.497615, -0.714860), 756),
    ((3.636190, -1.287288), (0.332693, 2.956985), 518),
    ((4.130654, 7.047287), (-2.258450, 0.984556), 788),
    ((0.182137, -0.824859), (-10.272170, -0.299461), 863),
    ((-4.245381, -3.660894), (16.464901, -7.883070), 1090),
    ((-1.798056, -0.907991), (1.329125, 0.145808), 322),
    ((3.752757, -0.703959), (-2.205692, -5.018272), 648),
    ((2.380683, 7.124399), (-1.236437, -0.417104), 765),
    ((25.510548, -5.820786), (4.353422, -4.193052), 1224),
    ((0.015196, -3.873158), (-36.235577, 11.496098), 1364),
    ((0.471809, -8.012069), (-7.830385, 4.557042), 871),
]
"""Gradients in texels, and 256 times the level of detail that an NVIDIA H100 took for them."""


@pytest.mark.parametrize(("one", "other", "parts"), MEASURED)
def test_the_level_of_gradients_is_hardware_s_to_a_256th(
    one: tuple[float, float], other: tuple[float, float], parts: int
) -> None:
    gradients = [[np.array([part]) for part in each] for each in (one, other)]
    assert abs(np.floor(256 * detail_of((1, 1), gradients)[0]) - parts) <= 1
