"""The rules of shared memory, one after another, as the guides state them for each capability.

A rule's patterns are written by hand, its passes counted on paper. CUDA C Programming Guide 4.2,
F.3.3 (1.x); 7.5, G.3.3 (2.x), G.4.3 (3.x), G.5.3 (5.x); Nsight Compute 2022.3 and topic 77228 of
forums.developer.nvidia.com (7.x on).
"""

import pytest
from stages import serve
from warps import Warp, warp

from cutrace.base.errors import CutraceError
from cutrace.models.replay.device.device import load_device

OLD = ["sm_10", "sm_11", "sm_12", "sm_13"]
FERMI = ["sm_20", "sm_21"]
KEPLER = ["sm_30", "sm_32", "sm_35", "sm_37"]
SINCE_5 = ["sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62"]
SINCE_7 = ["sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100"]
NEWEST = ["sm_103", "sm_110", "sm_120", "sm_121"]
EIGHT_BYTES = {"banks.bank_bytes": "8"}
HALF = range(16)


def passes(
    device: str, lanes: Warp, width: int = 4, access: str = "load", wide_banks: bool = False
) -> int:
    """The passes of one warp; 3.x has `wide_banks` of 8 bytes in its other mode."""
    settings = EIGHT_BYTES if wide_banks else None
    return serve(device, lanes, width, access, "shared", "", settings)["passes"]


def words(*numbers: int | None) -> Warp:
    """A warp whose lane i takes the word `numbers[i]`, if any."""
    return warp(addresses=[None if number is None else 4 * number for number in numbers])


@pytest.mark.parametrize("device", OLD)
def test_1_x_has_16_banks_for_each_half_warp(device: str) -> None:
    assert passes(device, words(*range(32))) == 2
    # lanes 0 and 16 share a bank, but lie in different halves
    assert passes(device, words(0, *[None] * 15, 16)) == 2
    assert passes(device, warp(stride=64, base=0, lanes=HALF)) == 16


@pytest.mark.parametrize("device", OLD)
@pytest.mark.parametrize(("stride", "degree"), [(1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (12, 4)])
def test_on_1_x_a_stride_costs_its_common_divisor_with_16(
    device: str, stride: int, degree: int
) -> None:
    assert passes(device, warp(stride=4 * stride, base=0, lanes=HALF)) == degree


@pytest.mark.parametrize("device", OLD)
def test_on_1_x_one_word_is_broadcast_to_all_who_want_it(device: str) -> None:
    assert passes(device, words(*[5] * 16)) == 1
    # the broadcast word 5, and one lane for each other bank
    assert passes(device, words(*[5] * 8, 0, 1, 2, 3, 4, 6, 7, 8)) == 1


@pytest.mark.parametrize("device", OLD)
def test_on_1_x_a_second_shared_word_is_served_lane_by_lane_until_it_is_the_broadcast_word(
    device: str,
) -> None:
    # word 0 for all 8 and one lane of word 1; then word 1 for the other 7
    assert passes(device, words(*[0] * 8, *[1] * 8)) == 2
    # 6 lanes of word 0, one of 1 and one of 2; then 4 of 1 and one of 2; then 3 of 2
    assert passes(device, words(*[0] * 6, *[1] * 5, *[2] * 5)) == 3


@pytest.mark.parametrize("device", OLD)
def test_on_1_x_the_broadcast_word_keeps_its_bank_from_others(device: str) -> None:
    # words 0 and 16 are one bank: word 0 twice, then word 16
    assert passes(device, words(0, 0, 16)) == 2


@pytest.mark.parametrize("device", OLD)
def test_on_1_x_wide_words_are_accesses_of_32_bits_one_after_another(device: str) -> None:
    # a double a lane: 2 accesses, each of stride 2 and so two-way; a float4: 4 of stride 4
    assert passes(device, warp(stride=8, base=0, lanes=HALF), 8) == 2 * 2
    assert passes(device, warp(stride=16, base=0, lanes=HALF), 16) == 4 * 4


@pytest.mark.parametrize("device", OLD)
def test_on_1_x_bytes_side_by_side_conflict(device: str) -> None:
    # words 0 to 3, four lanes each: 4 + 1 + 1 + 1, then 3 + 1 + 1, then 2 + 1, then 1
    assert passes(device, warp(stride=1, base=0, lanes=HALF), 1) == 4
    # the guide's remedy: four bytes apart
    assert passes(device, warp(stride=4, base=0, lanes=HALF), 1) == 1


@pytest.mark.parametrize("device", OLD)
def test_on_1_x_lanes_that_store_to_one_word_cost_one_pass(device: str) -> None:
    assert passes(device, words(*[3] * 16), access="store") == 1


@pytest.mark.parametrize("device", [*FERMI, *SINCE_5, *SINCE_7, *NEWEST])
def test_since_2_x_several_words_are_multicast_in_one_pass(device: str) -> None:
    assert passes(device, words(*[lane // 2 for lane in range(32)])) == 1
    assert passes(device, words(*[lane // 8 for lane in range(32)])) == 1
    assert passes(device, warp(stride=1, base=0), 1) == 1
    assert passes(device, warp(stride=2, base=0), 2) == 1


@pytest.mark.parametrize("device", [*FERMI, *SINCE_5, *SINCE_7, *NEWEST])
def test_since_2_x_32_banks_serve_a_whole_warp(device: str) -> None:
    assert passes(device, words(*range(32))) == 1
    # lanes 0 and 16, once in different halves, conflict now
    assert passes(device, words(0, *[None] * 15, 32)) == 2
    assert passes(device, warp(stride=8, base=0)) == 2
    assert passes(device, warp(stride=128, base=0)) == 32


@pytest.mark.parametrize("device", [*FERMI, *SINCE_5, *SINCE_7, *NEWEST])
def test_since_2_x_words_of_64_bits_conflict_within_a_half_warp_only(device: str) -> None:
    assert passes(device, warp(stride=8, base=0), 8) == 2
    # both halves take the same 16 doubles, which lie side by side
    assert passes(device, warp(addresses=[8 * (lane % 16) for lane in range(32)]), 8) == 2
    # 16 bytes apart: lanes 0 and 8 of a half want one bank
    assert passes(device, warp(stride=16, base=0), 8) == 4


@pytest.mark.parametrize("device", FERMI)
def test_on_2_x_words_of_128_bits_cost_a_way_more_than_their_quarters_have(device: str) -> None:
    # no two lanes of a quarter share a bank: 1 + 1 ways in each of 4 quarters
    assert passes(device, warp(stride=16, base=0), 16) == 4 * 2
    # 32 bytes apart, two lanes of a quarter share one: 1 + 2 ways
    assert passes(device, warp(stride=32, base=0), 16) == 4 * 3
    # one quarter alone
    assert passes(device, warp(stride=16, base=0, lanes=range(8)), 16) == 2


@pytest.mark.parametrize("device", KEPLER)
def test_on_3_x_words_32_apart_in_64_share_a_row_in_4_byte_mode(device: str) -> None:
    assert passes(device, words(0, 32)) == 1  # one segment of 64 words
    assert passes(device, words(32, 64)) == 2  # two segments
    assert passes(device, words(0, 64)) == 2
    assert passes(device, warp(stride=8, base=0)) == 1


@pytest.mark.parametrize("device", KEPLER)
def test_on_3_x_banks_are_8_bytes_wide_in_the_other_mode(device: str) -> None:
    assert passes(device, words(0, 1), wide_banks=True) == 1  # one 64-bit word
    assert passes(device, words(0, 32), wide_banks=True) == 1  # banks 0 and 16
    assert passes(device, words(0, 64), wide_banks=True) == 2  # 256 bytes apart: bank 0
    assert passes(device, words(1, 65), wide_banks=True) == 2
    assert passes(device, words(0, 64)) == passes(device, words(0, 64), wide_banks=True)
    assert passes(device, words(32, 64), wide_banks=True) == 1  # banks 16 and 0


@pytest.mark.parametrize("device", KEPLER)
def test_on_3_x_a_pass_gives_256_bytes_in_both_modes(device: str) -> None:
    for wide in (False, True):
        assert passes(device, warp(stride=8, base=0), 8, wide_banks=wide) == 1
        assert passes(device, warp(stride=16, base=0), 16, wide_banks=wide) == 2


@pytest.mark.parametrize("device", [*OLD, *FERMI, *SINCE_5, *SINCE_7, *NEWEST])
def test_no_other_device_has_the_mode_of_8_bytes(device: str) -> None:
    with pytest.raises(CutraceError, match=r"^--set: \[stage\.banks\]: banks: .* banks of 8 bytes"):
        load_device(device, EIGHT_BYTES)


@pytest.mark.parametrize("device", [*SINCE_5, *SINCE_7, *NEWEST])
def test_since_5_x_the_widest_pass_is_128_bytes(device: str) -> None:
    assert passes(device, warp(stride=16, base=0), 16) == 4
    assert passes(device, warp(stride=16, base=0, lanes=range(8)), 16) == 1
    assert passes(device, warp(stride=32, base=0), 16) == 8  # two-way in each quarter


@pytest.mark.parametrize(
    ("devices", "whole"), [(SINCE_7 + NEWEST, False), (SINCE_5, True)], ids=["7.0 on", "5.x, 6.x"]
)
def test_since_7_0_loads_of_equal_pairs_are_merged(devices: list[str], whole: bool) -> None:
    lanes = {width: warp(addresses=[width * (n // 2) for n in range(32)]) for width in (8, 16)}
    for device in devices:
        assert passes(device, lanes[8], 8) == (2 if whole else 1)
        assert passes(device, lanes[16], 16) == (4 if whole else 2)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"banks.banks": 0}, "banks = 0; expected 1 or more"),
        ({"banks.bank_bytes": 0}, "bank_bytes = 0; expected 1 or more"),
        ({"banks.bank_bytes": 6}, "32 banks of 6 bytes and rows of 128; expected whole words"),
        ({"banks.row_bytes": 100}, "32 banks of 4 bytes and rows of 100; expected whole words"),
        ({"banks.request_lanes": "[32, 16]"}, "request_lanes = 32, 16; expected 3 of the divisors"),
        ({"banks.request_lanes": "[32, 16, 0]"}, "request_lanes = 32, 16, 0; expected 3 of the"),
        ({"banks.request_lanes": "[32, 16, 5]"}, "request_lanes = 32, 16, 5; expected 3 of the"),
        ({"banks.wide_extra": -1}, "wide_extra = -1; expected 0 or more"),
        ({"banks.rule": "multycast"}, "no rule `multycast`; there are .*; nearest: multicast"),
    ],
)
def test_banks_that_there_cannot_be_are_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(CutraceError, match=rf"^--set: \[stage\.banks\]: banks: {message}"):
        load_device("h100", setting)
