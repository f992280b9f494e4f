import pytest
from stages import serve
from warps import Warp, warp


def load(device: str, lanes: Warp, width: int = 4) -> dict[str, int]:
    """What a device counts for one load from constant memory."""
    return serve(device, lanes, width, space="const", cache="")


@pytest.mark.parametrize(("device", "requests"), [("8800gtx", 2), ("gtx280", 2), ("h100", 1)])
def test_a_warp_that_reads_one_address_takes_one_pass_a_request(device: str, requests: int) -> None:
    found = load(device, warp(stride=0, base=64))
    assert (found["passes"], found["ideal_passes"]) == (requests, requests)
    assert (found["conflicts"], found["serialized"]) == (0, 0)


@pytest.mark.parametrize("device", ["8800gtx", "gtx580", "k20", "h100"])
@pytest.mark.document("000.8", "32 addresses: 32 passes")
def test_32_addresses_take_32_passes(device: str) -> None:
    found = load(device, warp(stride=4, base=0))
    assert found["passes"] == 32
    assert found["serialized"] == 1
    assert found["conflicts"] == 32 - found["split_requests"]


def test_half_warps_of_1_x_do_not_share_a_pass() -> None:
    lanes = warp(addresses=[4 * (lane % 2) for lane in range(32)])
    assert load("8800gtx", lanes)["passes"] == 4
    assert load("gtx580", lanes)["passes"] == 2


def test_two_words_of_one_line_are_two_addresses() -> None:
    lanes = warp(addresses=[0] * 16 + [4] * 16)
    assert load("h100", lanes)["passes"] == 2


def test_a_half_warp_without_lanes_asks_nothing() -> None:
    found = load("8800gtx", warp(stride=0, base=0, lanes=range(16)))
    assert (found["split_requests"], found["passes"]) == (1, 1)
