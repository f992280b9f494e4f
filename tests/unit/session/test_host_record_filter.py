import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.session.filter import read_filter, read_fraction
from cutrace.tracer.session.record_options import RecordOptions, Words, choose_options
from cutrace.tracer.session.row_filter import draw
from cutrace.traces.row_filter import count_in_ranges
from cutrace.traces.schema import Sample, Space


@pytest.mark.parametrize("text", ["", "K", "-1", "10P", "0", "1e6"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CutraceError, match=r"max_trace_size is .*: expected bytes"):
        read_filter(RecordOptions(max_trace_size=text))


def test_a_size_is_read_in_units_of_1024() -> None:
    assert read_filter(RecordOptions(max_trace_size="1.5G")).max_bytes == 3 * 1024**3 // 2


@pytest.mark.parametrize("text", ["1", 1, "0%", "101%", "a", "-3", "1.5"])
def test_a_sample_that_says_nothing_is_refused(text: str | int) -> None:
    with pytest.raises(CutraceError, match=r"sample_blocks is .*: expected a number of blocks"):
        read_fraction(text)


def test_a_part_of_the_grid_is_rounded_up_to_two_blocks_at_least() -> None:
    assert read_fraction("1%").of(391) == 4  # 3.91
    assert read_fraction("1%").of(10) == 2
    assert read_fraction("100%").of(10) == 10


def test_restrictions_are_texts_or_lists() -> None:
    only: dict[str, Words] = {"blocks": "0-3, 9", "warps": [0, 2], "lines": 7, "spaces": "shared"}
    chosen = read_filter(choose_options(only))
    assert chosen.blocks == ((0, 3), (9, 9))
    assert chosen.warps == ((0, 0), (2, 2))
    assert chosen.lines == ("7",)
    assert chosen.spaces == (Space.SHARED,)


def test_a_template_instance_is_one_name() -> None:
    assert read_filter(choose_options({"kernels": "scale<float, 4>,copy"})).kernels == (
        "scale<float, 4>",
        "copy",
    )


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"block": "1"}, r"only block; nearest: blocks"),
        ({"blocks": "3-1"}, r"only blocks 3-1: expected numbers"),
        ({"blocks": "x"}, r"only blocks x: expected numbers"),
        ({"spaces": "shard"}, r"only spaces shard; nearest: shared"),
        ({"kernels": ""}, r"only kernels '': nothing is named"),
    ],
)
def test_a_restriction_that_makes_no_sense_is_refused(only: dict[str, str], message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        read_filter(choose_options(only))


def test_overlapping_ranges_count_once() -> None:
    assert count_in_ranges([(0, 3), (2, 5)], 100) == 6


def test_a_line_of_blocks_is_drawn_from_evenly_between_its_ends() -> None:
    sample = draw((102, 1, 1), 10, seed=1, launch=0)
    assert sample.ends == (0, 101)
    assert len(sample.blocks) == 12
    inside = [block for block in sample.blocks if block not in sample.ends]
    assert [(block - 1) // 10 for block in inside] == [*range(10)]  # one of each ten
    assert sample.weights == (1, *[10] * 10, 1)


def test_weights_are_those_of_the_whole_grid_in_every_shape() -> None:
    for grid in ((391, 1, 1), (128, 128, 1), (40, 3, 1), (33, 35, 40), (5, 4, 3), (1, 1, 64)):
        sample = draw(grid, 7, seed=0, launch=3)
        assert sum(sample.weights) == grid[0] * grid[1] * grid[2]
        assert list(sample.blocks) == sorted({*sample.blocks})


def test_corners_and_sides_of_a_large_grid_are_drawn_by_themselves() -> None:
    sample = draw((100, 50, 1), 20, seed=5, launch=0)
    corners = {0, 99, 100 * 49, 100 * 50 - 1}
    assert corners < {*sample.ends}
    assert len(sample.ends) == 4 + 4
    by_block = dict(zip(sample.blocks, sample.weights, strict=True))
    # besides the corners, one block of each side of 98 or 48 blocks
    assert sorted(by_block[end] for end in {*sample.ends} - corners) == [48, 48, 98, 98]


def test_the_ends_are_among_the_blocks_asked_for_where_enough_are_left_inside() -> None:
    assert len(draw((128, 128, 1), 164, seed=1, launch=0).blocks) == 164
    assert len(draw((10_000, 1, 1), 21, seed=1, launch=0).blocks) == 20 + 2
    assert len(draw((10_000, 1, 1), 23, seed=1, launch=0).blocks) == 21 + 2


def test_the_seed_and_the_launch_say_which_blocks_are_drawn() -> None:
    first = draw((1000, 1, 1), 10, seed=1, launch=0)
    assert draw((1000, 1, 1), 10, seed=1, launch=0) == first
    assert draw((1000, 1, 1), 10, seed=2, launch=0).blocks != first.blocks
    assert draw((1000, 1, 1), 10, seed=1, launch=1).blocks != first.blocks


def test_a_sample_of_all_blocks_is_none() -> None:
    assert draw((10, 1, 1), 8, seed=0, launch=0) == Sample()
