"""Conflict degrees of the CUDA C Programming Guides, and their arithmetic on strides."""

import pytest
from stages import serve
from warps import Warp, warp

SINCE_5 = ["gtx980", "p100", "v100", "t4", "a100", "h200", "rtx4090"]


def passes(device: str, lanes: Warp, width: int = 4, access: str = "load", mode: int = 0) -> int:
    """The passes of one warp; `mode` is the bank width of 3.x."""
    settings = {"banks.bank_bytes": mode} if mode else None
    return serve(device, lanes, width, access, "shared", "", settings)["passes"]


STRIDES = [  # words, passes: a half-warp of 1.x; 2.x, 5.x and later; 3.x in 4- and in 8-byte mode
    (1, 1, 1, 1, 1),
    (2, 2, 2, 1, 1),
    (3, 1, 1, 1, 2),
    (4, 4, 4, 2, 2),
    (8, 8, 8, 4, 4),
    (9, 1, 1, 1, 2),
    (16, 16, 16, 8, 8),
    (32, 16, 32, 16, 16),
    (33, 1, 1, 1, 1),
]


@pytest.mark.parametrize(("stride", "half", "whole", "narrow", "wide"), STRIDES)
def test_strides_of_words(stride: int, half: int, whole: int, narrow: int, wide: int) -> None:
    lanes = warp(stride=4 * stride, base=0)
    for device in ("8800gtx", "gtx280"):
        assert passes(device, lanes) == 2 * half
    for device in ("gtx580", "m2070", *SINCE_5):
        assert passes(device, lanes) == whole
    assert passes("k20", lanes, mode=4) == narrow
    assert passes("k20", lanes, mode=8) == wide


@pytest.mark.parametrize("device", ["8800gtx", "gtx580", "k20", "h100"])
@pytest.mark.document("000.7", "any permutation is free")
def test_any_permutation_of_neighbouring_words_is_free(device: str) -> None:
    lanes = warp(addresses=[4 * (5 * lane % 32) for lane in range(32)])
    found = serve(device, lanes, space="shared")
    assert found["conflicts"] == found["serialized"] == 0
    assert found["passes"] == found["ideal_passes"]


@pytest.mark.parametrize("device", ["8800gtx", "gtx580", "k20", "h100"])
@pytest.mark.document("000.7", "one word is broadcast")
def test_one_word_is_broadcast(device: str) -> None:
    found = serve(device, warp(stride=0, base=64), space="shared")
    assert found["passes"] == (2 if device == "8800gtx" else 1)
    assert found["conflicts"] == 0


def test_two_words_of_one_bank_are_multicast_in_two_passes_from_2_x_on() -> None:
    lanes = warp(addresses=[128 * (lane % 2) for lane in range(32)])
    assert passes("gtx580", lanes) == passes("h100", lanes) == 2
    assert passes("k20", lanes) == 1  # words 0 and 32 are one row


@pytest.mark.document("004.4", "multicast")
def test_several_words_are_multicast_together_from_2_x_on() -> None:
    lanes = warp(addresses=[4 * (lane // 4) for lane in range(32)])
    assert passes("gtx580", lanes) == passes("h100", lanes) == 1


def test_on_1_x_only_one_word_a_pass_is_broadcast() -> None:
    # two words of eight lanes each: 8 and 1, then the other 7
    lanes = warp(addresses=[4 * (lane // 8) for lane in range(16)])
    assert passes("8800gtx", lanes) == 2


def test_bytes_of_neighbouring_lanes_conflict_on_1_x_and_never_after() -> None:
    lanes = warp(stride=1, base=0, lanes=range(16))
    # words 0-3 of four lanes each: 4+1+1+1, then 3+1+1, 2+1, 1
    assert passes("8800gtx", lanes, 1) == 4
    assert passes("8800gtx", warp(stride=4, base=0, lanes=range(16)), 1) == 1
    for device in ("gtx580", "k20", "h100"):
        assert passes(device, warp(stride=1, base=0), 1) == 1
        assert passes(device, warp(stride=2, base=0), 2) == 1


def test_conflicts_are_the_passes_beyond_one_a_request_and_serialize_an_instruction() -> None:
    found = serve("8800gtx", warp(stride=8, base=0), space="shared")
    wanted = {"split_requests": 2, "passes": 4, "ideal_passes": 2, "conflicts": 2, "serialized": 1}
    assert {name: found[name] for name in wanted} == wanted
    assert found["requests"] == 1


def test_doubles_are_two_accesses_with_two_way_conflicts_on_1_x() -> None:
    found = serve("8800gtx", warp(stride=8, base=0, lanes=range(16)), 8, space="shared")
    assert (found["split_requests"], found["passes"]) == (2, 4)


def test_a_struct_of_three_floats_read_by_words_is_free_on_1_x_and_of_two_is_not() -> None:
    assert passes("8800gtx", warp(stride=12, base=0)) == 2
    assert passes("8800gtx", warp(stride=8, base=0)) == 4


@pytest.mark.parametrize(
    ("device", "of_8", "of_16"),
    [("gtx580", 2, 8), ("k20", 1, 2), ("gtx980", 2, 4), ("t4", 2, 4), ("h100", 2, 4)],
)
def test_wide_words_side_by_side(device: str, of_8: int, of_16: int) -> None:
    assert passes(device, warp(stride=8, base=0), 8) == of_8
    assert passes(device, warp(stride=16, base=0), 16) == of_16


def test_float4_side_by_side_is_two_way_on_2_x() -> None:
    found = serve("gtx580", warp(stride=16, base=0), 16, space="shared")
    assert (found["ideal_passes"], found["conflicts"]) == (4, 4)


def test_doubles_conflict_within_a_half_warp_only_on_2_x() -> None:
    lanes = warp(addresses=[128 * (lane // 16) + 8 * (lane % 16) for lane in range(32)])
    assert passes("gtx580", lanes, 8) == 2
    assert passes("gtx580", warp(stride=16, base=0), 8) == 4


def test_both_modes_of_3_x_serve_doubles_side_by_side_in_one_pass() -> None:
    for mode in (4, 8):
        assert passes("k20", warp(stride=8, base=0), 8, mode=mode) == 1


@pytest.mark.parametrize(("step", "halved"), [(1, True), (2, True), (4, False)])
def test_equal_pairs_of_lanes_halve_wide_loads_from_7_0_on(step: int, halved: bool) -> None:
    word = [lane // (2 * step) * step + lane % step for lane in range(32)]
    for width, whole in ((8, 2), (16, 4)):
        lanes = warp(addresses=[width * number for number in word])
        for device in ("t4", "h200"):
            assert passes(device, lanes, width) == (whole // 2 if halved else whole)
            assert passes(device, lanes, width, "store") == whole
        assert passes("p100", lanes, width) == whole


def test_narrow_loads_have_no_pairs_to_merge() -> None:
    assert passes("v100", warp(addresses=[8 * (lane // 2) for lane in range(32)])) == 1


@pytest.mark.parametrize("device", ["gtx280", "gtx980", "h100"])
def test_atomics_on_one_word_are_served_lane_by_lane(device: str) -> None:
    assert passes(device, warp(stride=0, base=0), access="atomic") == 32
    assert passes(device, warp(stride=4, base=0), access="reduction") == passes(
        device, warp(base=0)
    )


@pytest.mark.parametrize("collision", ["elected", "counted"])
def test_lanes_that_are_combined_or_counted_share_a_word(collision: str) -> None:
    for lanes, expected in ((warp(stride=0, base=0), 1), (warp(stride=8, base=0), 2)):
        found = serve("h200", lanes, access="reduction", space="shared", collision=collision)
        assert (found["passes"], found["conflicts"]) == (expected, expected - 1)


@pytest.mark.parametrize(
    ("stride", "width", "turns"), [(4, 4, 1), (0, 4, 32), (8, 4, 2), (8, 8, 2)]
)
def test_compare_and_swap_takes_every_turn_twice(stride: int, width: int, turns: int) -> None:
    lanes = warp(stride=stride, base=0)
    found = serve("h200", lanes, width, "atomic", "shared", collision="compared")
    requests = 1 if width == 4 else 2
    assert found["passes"] == 2 * turns
    assert found["ideal_passes"] == 2 * requests
    assert found["conflicts"] == turns - requests


def test_a_turn_of_a_loop_takes_two_passes_for_each_request_that_has_lanes() -> None:
    for lanes, width, halves in (
        (warp(stride=0, base=0), 4, 1),
        (warp(stride=0, base=0), 8, 2),
        (warp(stride=0, base=0, lanes=[20]), 8, 1),
    ):
        found = serve("h200", lanes, width, "atomic", "shared", collision="turn")
        assert (found["passes"], found["conflicts"]) == (2 * halves, 0)


@pytest.mark.document("004.4", "33 columns: none")
def test_a_tile_of_33_columns_is_read_by_columns_without_conflict() -> None:
    assert passes("h100", warp(stride=4 * 33, base=0)) == 1
    assert passes("h100", warp(stride=4 * 32, base=0)) == 32


def test_inactive_lanes_do_not_conflict() -> None:
    assert passes("h100", warp(stride=128, base=0, lanes=[3, 20])) == 2
    assert passes("8800gtx", warp(stride=64, base=0, lanes=[0, 16])) == 2


def reference_passes(addresses: list[int], row_bytes: int, bank_bytes: int) -> int:
    """The multicast rule for 4-byte words, said again in plain Python."""
    rows: dict[int, set[int]] = {}
    for address in addresses:
        rows.setdefault(address // bank_bytes % 32, set()).add(address // row_bytes)
    return max(map(len, rows.values()))


@pytest.mark.parametrize("seed", range(20))
def test_scattered_words_agree_with_the_rule_in_plain_python(seed: int) -> None:
    addresses = [4 * (seed * 37 + lane * lane * (seed + 3)) % 4096 for lane in range(32)]
    lanes = warp(addresses=addresses)
    assert passes("h100", lanes) == reference_passes(addresses, 128, 4)
    assert passes("k20", lanes, mode=4) == reference_passes(addresses, 256, 4)
    assert passes("k20", lanes, mode=8) == reference_passes(addresses, 256, 8)


@pytest.mark.parametrize(
    ("addresses", "lanes", "ideal", "taken"),
    [
        ([64 * (lane // 8) for lane in range(32)], range(32), 2, 2),  # 32 x 8 bytes are two rows
        ([8 * (lane // 4) for lane in range(32)], range(32), 1, 1),  # and never more than taken
        ([16 * lane for lane in range(32)], range(0, 32, 2), 1, 4),  # 16 x 8 bytes are one
    ],
)  # fmt: skip
def test_the_ideal_of_doubles_on_7_x_counts_what_the_lanes_ask_for(
    addresses: list[int], lanes: range, ideal: int, taken: int
) -> None:
    found = serve("h200", warp(addresses=addresses, lanes=lanes), 8, space="shared")
    assert (found["ideal_passes"], found["passes"]) == (ideal, taken)
