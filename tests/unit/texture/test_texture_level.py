"""Which levels of a mipmapped texture a sample takes, by the rules of OpenGL 4.6, 8.14."""

from collections import defaultdict

import numpy as np
import pytest

from cutrace.tracer.engine.texture.level import Mipmap, detail_of, split_levels


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
        (Mipmap(3, "point", 0, 0, 2), 0.5, {0: 256}),
        (Mipmap(3, "point", 0, 0, 2), 0.51, {1: 256}),
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


def test_the_longer_gradient_in_texels_tells_the_level_of_detail() -> None:
    along_x = [np.array([1 / 16, 0.0]), np.array([0.0, 0.0])]
    along_y = [np.array([0.0, 3 / 64]), np.array([1 / 32, 4 / 32])]
    # of 64 x 32 texels: 4 and 1 texels; 0 and 3 along x with 4 along y, which are 5
    assert detail_of((64, 32), (along_x, along_y)).tolist() == pytest.approx([2, np.log2(5)])
