import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.schedule.place import (
    SCOPE_NAMES,
    Chip,
    Placement,
    Waves,
    count_padding_lanes,
    count_waves,
    place,
)


def blocks_in(chip: Chip, blocks: int, profiled: int | None, scope: str) -> list[int]:
    """The blocks of a launch that lie in a scope."""
    number = SCOPE_NAMES.index(scope)
    return np.flatnonzero(place(chip, blocks, profiled).scope(np.arange(blocks)) == number).tolist()


def blocks_of_sms(placed: Placement) -> np.ndarray:
    """How many blocks each SM receives, (sms,)."""
    return np.bincount(placed.sm(np.arange(placed.blocks)), minlength=placed.chip.sms)


G80 = load_device("8800gtx").chip
GT200 = load_device("gtx280").chip


def test_the_profiled_cluster_has_every_eighth_block_of_a_g80() -> None:
    assert blocks_in(G80, 40, None, "sm") == [0, 16, 32]
    assert blocks_in(G80, 40, None, "cluster") == [8, 24]


def test_the_first_of_three_sms_has_every_third_of_its_clusters_blocks() -> None:
    assert blocks_in(GT200, 100, None, "sm") == [0, 30, 60, 90]
    assert blocks_in(GT200, 100, None, "cluster") == [10, 20, 40, 50, 70, 80]


def test_fewer_profiled_blocks_are_the_first_of_the_share() -> None:
    assert blocks_in(G80, 40, 3, "sm") == [0, 16]
    assert blocks_in(G80, 40, 3, "cluster") == [8]


def test_more_profiled_blocks_than_the_share_are_the_following_ones() -> None:
    placed = place(G80, 20, 5)  # the share is 0, 8, 16; then 1, 9
    order = np.argsort(placed.rank(np.arange(20)), kind="stable")
    assert order[:5].tolist() == [0, 8, 16, 1, 9]
    assert blocks_in(G80, 20, 5, "sm") == [0, 9, 16]
    assert blocks_in(G80, 20, 5, "cluster") == [1, 8]


def test_more_profiled_blocks_than_there_are_is_all_of_them() -> None:
    assert place(G80, 20, 100).count_scopes() == (10, 10, 0)


@pytest.mark.parametrize("blocks", [1, 7, 8, 9, 1000])
@pytest.mark.parametrize("profiled", [None, 1, 5, 300])
def test_scopes_are_counted_as_they_are_placed(blocks: int, profiled: int | None) -> None:
    for chip in (G80, GT200, load_device("h100").chip):
        placed = place(chip, blocks, profiled)
        found = np.bincount(placed.scope(np.arange(blocks)), minlength=3)
        assert tuple(found.tolist()) == placed.count_scopes()


@pytest.mark.document("000.3", "12 x 4 + 4 x 3")
def test_60_blocks_on_16_sms_are_four_on_twelve_and_three_on_four() -> None:
    per_sm = blocks_of_sms(place(load_device("gtx580").chip, 60))
    assert sorted(per_sm.tolist()) == [3] * 4 + [4] * 12


@pytest.mark.parametrize("profiled", [None, 122, 140])
def test_every_block_has_one_sm_and_the_profiled_one_is_number_0(profiled: int | None) -> None:
    placed = place(G80, 1024, profiled)
    block = np.arange(1024)
    sm, cluster, scope = placed.sm(block), placed.cluster(block), placed.scope(block)
    assert sm.min() == 0
    assert sm.max() == 15
    assert (sm // 2 == cluster).all()
    assert ((sm == 0) == (scope == 0)).all()
    assert ((cluster == 0) == (scope < 2)).all()


def test_one_sm_alone_has_everything() -> None:
    placed = place(Chip(1, 1, 1.0), 10, 4)
    assert blocks_of_sms(placed).tolist() == [10]


def test_clusters_that_do_not_divide_the_sms_are_refused() -> None:
    with pytest.raises(CutraceError, match="15 SMs in clusters of 2"):
        Chip(15, 2, 1.0)


@pytest.mark.parametrize(
    ("blocks", "resident", "expected"),
    [
        (1, 8, Waves(128, 1, 1)),
        (128, 8, Waves(128, 1, 0)),  # a full wave has no tail
        (129, 8, Waves(128, 2, 1)),
        (1000, 3, Waves(48, 21, 40)),  # 20 x 48 = 960
        (0, 3, Waves(48, 0, 0)),
    ],
)
def test_a_grid_runs_in_waves_of_what_all_sms_hold(
    blocks: int, resident: int, expected: Waves
) -> None:
    assert count_waves(G80, blocks, resident) == expected  # 16 SMs


def test_blocks_that_do_not_fit_run_in_no_waves() -> None:
    assert count_waves(G80, 100, 0) is None


@pytest.mark.parametrize("resident", [1, 3, 8])
@pytest.mark.parametrize("blocks", [1, 47, 48, 49, 1000])
def test_waves_are_those_of_the_sm_with_most_blocks(blocks: int, resident: int) -> None:
    waves = count_waves(G80, blocks, resident)
    assert waves is not None
    most = int(blocks_of_sms(place(G80, blocks)).max())
    assert waves.waves == -(-most // resident)


@pytest.mark.parametrize(("threads", "idle"), [(1, 31), (31, 1), (32, 0), (33, 31), (100, 28)])
def test_lanes_at_the_end_of_a_block_are_idle(threads: int, idle: int) -> None:
    assert count_padding_lanes(7, threads) == 7 * idle
