"""Vectors of the CUDA C Programming Guides, and the published table on load efficiency.

HALF is a warp of which only the first half-warp is active, so that its counts are a half-warp's.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stages import serve
from warps import BASE, Warp, warp

HALF = range(16)


def sizes(found: dict[str, int]) -> dict[int, int]:
    """The transactions by size, without those that do not occur."""
    named = {size: found[f"transactions_{size}"] for size in (32, 64, 96, 128)}
    return {size: count for size, count in named.items() if count}


@pytest.mark.parametrize(("width", "expected"), [(4, {64: 1}), (8, {128: 1}), (16, {128: 2})])
@pytest.mark.document("001.3", "64, 128 and 2 x 128 bytes")
def test_a_half_warp_in_order_is_coalesced_on_1_0(width: int, expected: dict[int, int]) -> None:
    found = serve("8800gtx", warp(stride=width, lanes=HALF), width)
    assert sizes(found) == expected
    assert found["incoherent_32"] == 0
    assert found["coherent_64"] + found["coherent_128"] == sum(expected.values())


@pytest.mark.parametrize(
    "lanes",
    [
        warp(stride=4, base=BASE + 4, lanes=HALF),  # shifted
        warp(stride=-4, base=BASE + 60, lanes=HALF),  # backwards
        warp(stride=8, lanes=HALF),
        warp(stride=0, lanes=HALF),
        warp(addresses=[BASE + 4 * (lane ^ 1) for lane in range(16)]),  # two swapped
    ],
)
@pytest.mark.document("001.3", "16 transactions of 32 bytes")
@pytest.mark.document("003.2", "shifted, backwards, strided, swapped")
def test_what_is_out_of_order_on_1_0_costs_32_bytes_a_lane(lanes: Warp) -> None:
    found = serve("8800gtx", lanes)
    assert sizes(found) == {32: 16}
    assert (found["incoherent_32"], found["coherent_64"]) == (16, 0)
    assert found["bytes_moved"] == 16 * 32


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.document("003.2", "4, 8 or 16 bytes only")
def test_bytes_and_shorts_are_never_coalesced_on_1_0(width: int) -> None:
    assert sizes(serve("8800gtx", warp(stride=width, lanes=HALF), width)) == {32: 16}


@pytest.mark.document("003.2", "skipping is allowed")
def test_holes_do_not_matter_on_1_0() -> None:
    found = serve("8800gtx", warp(stride=4, lanes=[3, 7, 11]))
    assert sizes(found) == {64: 1}


def test_an_uncoalesced_half_warp_on_1_0_pays_for_its_active_lanes_only() -> None:
    assert sizes(serve("8800gtx", warp(stride=8, lanes=[0, 5, 9]))) == {32: 3}


def test_16_bytes_a_lane_need_a_128_byte_boundary_and_not_a_256_byte_one_on_1_0() -> None:
    assert sizes(serve("8800gtx", warp(stride=16, base=BASE + 128, lanes=HALF), 16)) == {128: 2}
    assert sizes(serve("8800gtx", warp(stride=16, base=BASE + 64, lanes=HALF), 16)) == {32: 16}


@pytest.mark.parametrize(("width", "ratio"), [(4, 8), (8, 4), (16, 2)])
@pytest.mark.document("001.4", "512/64, 512/128, 512/256 bytes: 8, 4, 2")
def test_uncoalesced_traffic_on_1_0_is_8_4_and_2_times_the_coalesced(
    width: int, ratio: int
) -> None:
    good = serve("8800gtx", warp(stride=width, lanes=HALF), width)
    bad = serve("8800gtx", warp(stride=-width, base=BASE + 15 * width, lanes=HALF), width)
    assert bad["bytes_moved"] == 512
    assert bad["bytes_moved"] == ratio * good["bytes_moved"]


def test_a_warp_is_two_requests_on_1_x_and_a_half_warp_without_lanes_is_none() -> None:
    assert serve("8800gtx", warp())["split_requests"] == 2
    assert serve("gtx280", warp(lanes=range(16, 32)))["split_requests"] == 1


@pytest.mark.parametrize(
    ("lanes", "width", "expected"),
    [
        (warp(lanes=HALF), 4, {64: 1}),
        (warp(base=BASE + 4, lanes=HALF), 4, {128: 1}),
        (warp(base=BASE + 64, lanes=HALF), 4, {64: 1}),
        (warp(base=BASE + 96, lanes=HALF), 4, {32: 2}),
        (warp(stride=8, lanes=HALF), 4, {128: 1}),
        (warp(stride=64, lanes=HALF), 4, {128: 8}),  # both halves of each segment are touched
        (warp(stride=128, lanes=HALF), 4, {32: 16}),
        (warp(stride=8, lanes=HALF), 8, {128: 1}),
        (warp(stride=16, lanes=HALF), 16, {128: 2}),
        (warp(stride=16, lanes=HALF), 4, {128: 2}),  # one int of a 16-byte struct
        (warp(stride=1, lanes=HALF), 1, {32: 1}),
        (warp(stride=2, lanes=HALF), 2, {32: 1}),
        (warp(stride=0, lanes=HALF), 4, {32: 1}),
        (warp(stride=-4, base=BASE + 60, lanes=HALF), 4, {64: 1}),
    ],
)
def test_segments_of_1_2(lanes: Warp, width: int, expected: dict[int, int]) -> None:
    found = serve("gtx280", lanes, width)
    assert sizes(found) == expected
    assert found["transactions"] == sum(expected.values())
    assert found["bytes_moved"] == sum(size * count for size, count in expected.items())
    assert found["incoherent_32"] == 0


SCATTERED = warp(addresses=[BASE + 4096 * (lane * 7 % 32) for lane in range(32)])
PERMUTED = warp(addresses=[BASE + 4 * (lane * 5 % 32) for lane in range(32)])


@pytest.mark.parametrize(
    ("lanes", "lines", "sectors", "distinct"),
    [
        (warp(), 1, 4, 128),
        (PERMUTED, 1, 4, 128),
        (warp(base=BASE + 4), 2, 5, 128),
        (warp(base=BASE + 32), 2, 4, 128),
        (warp(base=BASE + 64), 2, 4, 128),
        (warp(stride=0), 1, 1, 4),
        (SCATTERED, 32, 32, 128),
        (warp(stride=8), 2, 8, 128),
        (warp(stride=16), 4, 16, 128),
        (warp(stride=32), 8, 32, 128),
        (warp(stride=64), 16, 32, 128),
        (warp(stride=128), 32, 32, 128),
    ],
)
def test_lines_and_sectors_of_2_x(lanes: Warp, lines: int, sectors: int, distinct: int) -> None:
    caching = serve("m2070", lanes)
    assert (caching["transactions"], caching["bytes_moved"]) == (lines, 128 * lines)
    bypassing = serve("m2070", lanes, cache="cg")
    assert (bypassing["transactions"], bypassing["bytes_moved"]) == (sectors, 32 * sectors)
    assert caching["bytes_distinct"] == bypassing["bytes_distinct"] == distinct


@pytest.mark.parametrize(
    ("lanes", "caching", "bypassing"),
    [
        (warp(), 1.0, 1.0),
        (PERMUTED, 1.0, 1.0),
        (warp(base=BASE + 4), 0.5, 0.8),
        (warp(stride=0), 0.03125, 0.125),
        (SCATTERED, 128 / (32 * 128), 128 / (32 * 32)),
    ],
)
def test_the_published_table_of_sector_efficiency(
    lanes: Warp, caching: float, bypassing: float
) -> None:
    for cache, expected in (("ca", caching), ("cg", bypassing)):
        found = serve("m2070", lanes, cache=cache)
        assert found["bytes_distinct"] / found["bytes_moved"] == expected


@pytest.mark.parametrize(("width", "requests"), [(1, 1), (4, 1), (8, 2), (16, 4)])
def test_2_x_cuts_wide_loads_into_requests_of_one_line_each(width: int, requests: int) -> None:
    found = serve("gtx580", warp(stride=width), width)
    assert (found["split_requests"], found["transactions"]) == (requests, requests)
    assert found["ideal_transactions"] == requests
    assert found["requests"] == 1


def test_half_warps_of_doubles_on_2_x_do_not_share_a_line() -> None:
    assert serve("gtx580", warp(stride=0), 8)["transactions"] == 2


@pytest.mark.document("004.2", "stores of 2.x go to L2 in 32 to 128 bytes")
def test_stores_of_2_x_leave_as_one_transaction_a_line_of_32_to_128_bytes() -> None:
    found = serve("gtx580", warp(base=BASE + 32), access="store")
    assert sizes(found) == {96: 1, 32: 1}
    assert found["transactions"] == 4
    assert sizes(serve("gtx580", warp(stride=8), access="store")) == {128: 2}
    assert sizes(serve("gtx580", warp(stride=64), access="store")) == {64: 16}
    assert sizes(serve("gtx580", warp(stride=128), access="store")) == {32: 32}


@pytest.mark.parametrize("device", ["k20", "gtx980", "p100", "v100", "t4", "a100", "h200"])
@pytest.mark.parametrize(
    ("lanes", "width", "sectors"),
    [
        (warp(), 4, 4),
        (warp(base=BASE + 4), 4, 5),
        (warp(stride=8), 4, 8),
        (warp(stride=128), 4, 32),
        (warp(stride=8), 8, 8),
        (warp(stride=16), 16, 16),
        (warp(stride=0), 4, 1),
    ],
)
def test_sectors_from_3_x_on(device: str, lanes: Warp, width: int, sectors: int) -> None:
    found = serve(device, lanes, width)
    assert (found["transactions"], found["bytes_moved"]) == (sectors, 32 * sectors)


@pytest.mark.parametrize(
    ("device", "requests"),
    [("k20", (1, 2, 4)), ("gtx980", (4, 8, 16)), ("p100", (4, 8, 16)), ("h100", (1, 1, 1))],
)
def test_requests_of_an_instruction_by_era(device: str, requests: tuple[int, ...]) -> None:
    widths = (4, 8, 16)
    found = tuple(serve(device, warp(stride=w), w)["split_requests"] for w in widths)
    assert found == requests


def test_a_sector_moves_once_for_the_warp_on_5_x_and_once_a_request_on_3_x() -> None:
    assert serve("gtx980", warp(stride=0), 8)["transactions"] == 1
    assert serve("k20", warp(stride=0), 8)["transactions"] == 2


def test_atomics_on_1_x_are_counted_by_lanes_and_later_by_sectors() -> None:
    assert serve("gtx280", warp(), access="atomic")["transactions"] == 32
    assert serve("h100", warp(), access="reduction")["transactions"] == 4


@pytest.mark.parametrize(
    ("place", "width", "sectors"),
    [  # as an H200 counts them
        (lambda lane: lane // 2, 4, 2 * 2),
        (lambda lane: lane // 8, 4, 1 * 8),
        (lambda lane: lane % 4, 4, 1 * 8),
        (lambda lane: 0, 4, 1 * 32),
        (lambda lane: lane // 2, 8, 4 * 2),
        (lambda lane: 8 * lane, 4, 32),
        (lambda lane: max(0, lane - 24), 4, 25),  # 25 lanes on word 0; words 1 to 7 beside it
    ],
)
def test_a_sector_moves_as_often_as_its_most_wanted_address(
    place: Callable[[int], int], width: int, sectors: int
) -> None:
    lanes = warp(addresses=[BASE + width * place(lane) for lane in range(32)])
    for collision in ("serial", "compared"):
        found = serve("h200", lanes, width, "reduction", collision=collision)
        assert found["transactions"] == sectors
        assert found["bytes_moved"] == 32 * sectors


def test_lanes_that_the_assembler_combines_move_their_sector_once() -> None:
    found = serve("h200", warp(stride=0), access="reduction", collision="elected")
    assert found["transactions"] == 1


@pytest.mark.parametrize(
    ("device", "expected"),
    [("8800gtx", {64: 2}), ("gtx280", {64: 2}), ("gtx580", {128: 1}), ("h100", {128: 1})],
)
def test_local_words_of_a_warp_lie_side_by_side(device: str, expected: dict[int, int]) -> None:
    found = serve(device, warp(stride=0, base=12), space="local")
    assert sizes(found) == expected
    assert found["bytes_moved"] == 128


def test_local_memory_at_scattered_indices_is_scattered() -> None:
    found = serve("h100", warp(stride=4, base=0), space="local")
    assert (found["transactions"], found["bytes_moved"]) == (32, 1024)


def test_a_wide_local_access_is_one_access_a_word() -> None:
    found = serve("gtx580", warp(stride=0, base=16), 16, space="local")
    assert (found["requests"], found["split_requests"], found["transactions"]) == (1, 4, 4)


@pytest.mark.parametrize(
    ("device", "lanes", "ideal"),
    [
        ("8800gtx", warp(stride=8), 2),  # 64 bytes for each half-warp
        ("gtx280", warp(stride=128), 2),
        ("gtx580", warp(stride=128), 1),
        ("h100", warp(stride=128), 4),
        ("h100", warp(stride=0), 1),
    ],
)
def test_ideal_transactions_hold_the_same_distinct_bytes(
    device: str, lanes: Warp, ideal: int
) -> None:
    assert serve(device, lanes)["ideal_transactions"] == ideal


@pytest.mark.parametrize("device", ["8800gtx", "gtx280", "gtx580", "k20", "p100", "h100"])
def test_the_answer_repeats_with_the_base_every_128_bytes(device: str) -> None:
    lanes = np.random.default_rng(7).integers(0, 4096, 32) * 4
    for shift in (0, 4, 36, 100):
        first = serve(device, warp(addresses=(BASE + shift + lanes).tolist()))
        second = serve(device, warp(addresses=(BASE + 128 * 5 + shift + lanes).tolist()))
        assert first == second


def segments_in_plain_python(addresses: list[int], width: int) -> list[int]:
    """The rule of 1.2 for one half-warp, as the guide words it: sizes of transactions."""
    size = {1: 32, 2: 64}.get(width, 128)
    left, found = list(addresses), []
    while left:
        start = left[0] // size * size
        touched = [a for a in left if a // size * size == start]
        left = [a for a in left if a // size * size != start]
        low, high, now = min(touched), max(touched) + width, size
        while now > 32 and (high <= start + now // 2 or low >= start + now // 2):
            now //= 2
            start += now if low >= start + now else 0
        found.append(now)
    return found


def coalesced_in_plain_python(addresses: dict[int, int], width: int) -> bool:
    """The rule of 1.0 for one half-warp: lane k's address by k."""
    starts = {address - lane * width for lane, address in addresses.items()}
    return width >= 4 and len(starts) == 1 and starts.pop() % min(16 * width, 128) == 0


LANES_AND_PLACES = st.dictionaries(st.integers(0, 15), st.integers(0, 90), min_size=1)


@given(LANES_AND_PLACES, st.sampled_from([1, 2, 4, 8, 16]))
@settings(max_examples=60)
@pytest.mark.slow
def test_scattered_half_warps_agree_with_the_rules_in_plain_python(
    places: dict[int, int], width: int
) -> None:
    addresses = {lane: BASE + width * place for lane, place in sorted(places.items())}
    lanes = Warp(tuple(addresses.get(lane) for lane in range(32)))
    segments = segments_in_plain_python(list(addresses.values()), width)
    assert sizes(serve("gtx280", lanes, width)) == dict(Counter(segments))
    found = serve("8800gtx", lanes, width)
    if coalesced_in_plain_python(addresses, width):
        assert found["incoherent_32"] == 0
    else:
        assert sizes(found) == {32: len(addresses)}
    for device, unit in (("h100", 32), ("gtx580", 128)):
        groups = 1 if device == "h100" or width <= 4 else width // 4
        each = 32 // groups
        units = {(lane // each, address // unit) for lane, address in addresses.items()}
        assert serve(device, lanes, width)["transactions"] == len(units)
    assert serve("h100", lanes, width)["bytes_distinct"] == width * len({*addresses.values()})


@pytest.mark.parametrize(
    ("lanes", "packed"),
    [
        (warp(stride=0), 1),  # one sector is touched
        (warp(stride=4), 4),
        (warp(stride=128), 4),  # 32 words of 4 bytes
        (warp(addresses=[BASE + 64 * (n % 2) for n in range(32)]), 2),  # two are
        (warp(stride=128, lanes=range(9)), 2),  # 36 bytes
    ],
)
def test_packed_transactions_give_every_lane_its_own_bytes(lanes: Warp, packed: int) -> None:
    for access, collision in (("load", ""), ("reduction", "serial")):
        found = serve("h200", lanes, access=access, collision=collision)
        assert found["packed_transactions"] == packed


def test_a_store_on_6_1_moves_the_sectors_of_each_request_of_8_lanes() -> None:
    """A warp of two rows of 16 lanes stores two words of each of 16 sectors: nvprof on a GTX 1060
    has 8 times the bytes that the lanes store, 32 sectors; what lies side by side takes 4.
    """
    columns = warp(addresses=[BASE + 4096 * (n % 16) + 4 * (n // 16) for n in range(32)])
    assert serve("gtx1060", columns, access="store")["transactions"] == 32
    assert serve("gtx1060", columns, access="load")["transactions"] == 16
    assert serve("p100", columns, access="store")["transactions"] == 16
    assert serve("gtx1060", warp(stride=4), access="store")["transactions"] == 4
