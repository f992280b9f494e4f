import csv
from pathlib import Path

import pytest
from hand_trace import launch

from cutrace.models.analyses.occupancy import (
    Need,
    Occupancy,
    choose_carveout,
    launch_occupancy,
    occupancy,
    refuse_launch,
)
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import Limits, load_device
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.traces.schema import Resources

RECORDED = Path(__file__).parents[2] / "validate" / "occupancy_header.csv"
CARVEOUTS = Path(__file__).parents[2] / "validate" / "carveouts.csv"
"""What the driver of an H200 chose, by scripts/capture/carveouts.py."""
PREFERRED = CARVEOUTS.with_name("carveouts_preferred.csv")
"""The same of programs that prefer something, `carveouts.py --preferred`."""
UNLIMITED = 2**31 - 1


def fit(device: str, threads: int, registers: int | None = None, shared: int = 0) -> Occupancy:
    """Occupancy from numbers alone."""
    return occupancy(load_device(device).limits, Need(threads, registers, shared))


def made_for(arch: str, registers: int) -> Resources:
    """What the assembler is said to have made of a kernel."""
    return Resources(arch, registers, 0, 0, 0)


def test_barriers_leave_room_for_fewer_blocks_and_less_shared_memory() -> None:
    # what Nsight Compute said of an H100: blocks of 64 threads with 16 registers, of which one has
    # 8 bytes and barriers 0 to 2 (64 / 3 = 21), one has no bytes and barriers 0 to 4 (64 / 5 = 12)
    limits = load_device("h100").limits
    found = [occupancy(limits, Need(64, 16, *each)) for each in ((8, 3), (0, 5))]
    assert [(one.limits["barriers"], one.carveout) for one in found] == [(21, 32768), (12, 16384)]


def test_nvidias_own_header_gives_the_same_limits_for_recorded_launches() -> None:
    with RECORDED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 22 * 40  # capabilities that the header knows, launches of each
    for row in rows:
        need = Need(*(int(row[n]) for n in ("threads", "registers", "shared", "barriers")))
        found = occupancy(load_device(row["device"]).limits, need, row["cache_config"] or None)
        told = {n: int(row[f"limit_{n}"]) for n in ("warps", "registers", "blocks")}
        told |= {n: int(row[f"limit_{n}"]) for n in ("shared", "barriers")}
        expected = {n: blocks for n, blocks in told.items() if blocks != UNLIMITED}
        assert (dict(found.limits), found.blocks) == (expected, int(row["blocks"])), row


def test_as_much_is_set_apart_for_shared_memory_as_the_driver_of_an_h200_does() -> None:
    limits = load_device("h200").limits
    with CARVEOUTS.open(newline="") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) == 785
    assert len({row["carveout"] for row in rows}) == len(limits.shared_carveouts) - 1  # never 0
    needs = [Need(row["threads"], row["registers"], row["shared"]) for row in rows]
    chosen = [choose_carveout(limits, need) for need in needs]
    assert [pair for pair in zip(chosen, rows, strict=True) if pair[0] != pair[1]["carveout"]] == []


def test_what_a_program_prefers_is_set_apart_as_the_driver_of_an_h200_does() -> None:
    limits = load_device("h200").limits
    with PREFERRED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 23 * 30
    odd = []
    for row in rows:
        words = [word for word in row["preferred"].split() if word not in ("all", "none", "-1")]
        percent = [word for word in words if word.isdigit()]  # counts whatever else is said
        said = (percent or [CONFIG_OF[word] for word in words] or [""])[0]
        need = Need(*(int(row[name]) for name in ("threads", "registers", "shared")))
        if choose_carveout(limits, need, prefers=said) != int(row["carveout"]):
            odd.append((said, need.shared))
    assert set(odd) == {("prefer_l1", 16384)}  # 64 KB where one block fits in 32
    assert len(odd) == 10
    some = occupancy(limits, Need(128, 16, 16384), prefers="0")
    assert (some.carveout, some.limits["shared"]) == (32768, 1)


CONFIG_OF = {"shared": "prefer_shared", "L1": "prefer_l1", "equal": "equal"}


@pytest.mark.document("000.4", "2 blocks, 33.3 %")
def test_48_registers_and_256_threads_on_a_gtx_580_fill_a_third() -> None:
    found = fit("gtx580", 256, 48)  # 1536 a warp; 21 warps, in pairs 20; 20 // 8 = 2 blocks
    assert (found.blocks, found.active_warps, found.max_warps) == (2, 16, 48)
    assert found.limited_by == ("registers",)


def test_ten_registers_fit_on_a_gtx_8800_and_eleven_cost_a_block() -> None:
    assert fit("8800gtx", 256, 10).active_warps == 24
    found = fit("8800gtx", 256, 11)  # 2816 a block; 8192 // 2816 = 2
    assert (found.blocks, found.limited_by) == (2, ("registers",))


def test_1_3_has_twice_the_registers_and_32_warps() -> None:
    found = fit("gtx280", 256, 10)  # registers for 6 blocks, warps for 4
    assert (found.blocks, found.limited_by) == (4, ("warps",))
    assert found.limits["registers"] == 6


def test_registers_of_1_x_are_rounded_by_block_and_pairs_of_warps() -> None:
    assert fit("8800gtx", 96, 16).limits["registers"] == 4  # 4 warps: 2048 of 8192
    assert fit("gtx280", 32, 9).limits["registers"] == 16  # 576 -> 1024 of 16384


def exercise(warps: int, registers: int, shared: int = 16384) -> Limits:
    """The device of an exercise: 16,384 registers, given as 2.x gives them, one at a time."""
    settings = {
        "limits.warps_per_sm": warps,
        "limits.threads_per_block": 1024,
        "limits.registers_per_sm": registers,
        "limits.shared_per_sm": shared,
    }
    return load_device("gtx280", settings).limits


@pytest.mark.document("002.3", "10 registers fit, 11 lose a block")
def test_with_1536_threads_and_16384_registers_eleven_registers_lose_a_block() -> None:
    limits = exercise(48, 16384)
    assert occupancy(limits, Need(512, 10)).blocks == 3
    found = occupancy(limits, Need(512, 11))
    assert (found.blocks * 512, found.limited_by) == (1024, ("registers",))


@pytest.mark.document("002.3", "5 KB a block: 3 blocks")
def test_16_kilobytes_hold_three_blocks_of_five() -> None:
    found = fit("8800gtx", 64, None, 5 * 1024)
    assert (found.blocks, found.limited_by) == (3, ("shared",))


@pytest.mark.document("002.3", "16 x 16 tiles: 3 blocks by 768 threads")
def test_16_x_16_tiles_are_limited_by_threads_before_shared_memory() -> None:
    found = fit("8800gtx", 256, None, 2048)
    assert (found.blocks, found.limited_by) == (3, ("warps",))
    assert found.limits["shared"] == 8


@pytest.mark.parametrize(
    ("device", "blocks", "threads", "bytes_a_thread", "too_few"),
    [
        ("8800gtx", 4, 128, 32, set()),
        ("8800gtx", 8, 128, 16, {"warps"}),  # 1024 > 768 threads
        ("8800gtx", 16, 32, 64, {"blocks", "shared"}),
        ("gtx280", 2, 512, 32, {"shared"}),
        ("gtx280", 4, 256, 16, set()),
        ("gtx280", 8, 256, 8, {"warps"}),  # 2048 > 1024 threads
    ],
)
@pytest.mark.document("002.4", "a and e possible; b, c, d, f not")
def test_all_limits_that_an_exercises_assignment_breaks_are_named(
    device: str, blocks: int, threads: int, bytes_a_thread: int, too_few: set[str]
) -> None:
    found = fit(device, threads, None, threads * bytes_a_thread)
    assert {name for name, room in found.limits.items() if room < blocks} == too_few


def test_several_limits_that_bind_are_all_named() -> None:
    assert fit("8800gtx", 96).limited_by == ("blocks", "warps")


def test_a_block_too_large_for_the_device_does_not_fit() -> None:
    assert fit("8800gtx", 513).blocks == 0
    assert fit("h100", 1024, 65).blocks == 0  # 32 warps of 2304 registers > 65536


@pytest.mark.parametrize(
    ("device", "used"),
    [
        ("8800gtx", "sm_50"),
        ("k20", "sm_50"),
        ("gtx980", "sm_50"),
        ("t4", "sm_75"),
        ("a100", "sm_75"),
        ("h200", "sm_90a"),
    ],
)
def test_registers_come_from_the_nearest_architecture(device: str, used: str) -> None:
    known = (made_for("sm_90a", 30), made_for("sm_50", 10), made_for("sm_75", 24))
    traced = launch(block=(256, 1, 1), resources=known)
    found = launch_occupancy(load_device(device), traced, 1, ReplayOptions())
    assert found.registers_from == used
    assert found.registers == {"sm_50": 10, "sm_75": 24, "sm_90a": 30}[used]


def test_registers_given_by_hand_replace_the_assemblers() -> None:
    traced = launch(block=(256, 1, 1), resources=(made_for("sm_50", 10),))
    found = launch_occupancy(load_device("8800gtx"), traced, 1, ReplayOptions(registers=16))
    assert (found.blocks, found.registers_from) == (2, "given")


def test_the_least_registers_that_a_device_allocates_are_told_beside_those_used() -> None:
    traced = launch(block=(256, 1, 1), resources=(made_for("sm_90", 10),))
    found = launch_occupancy(load_device("h100"), traced, 1, ReplayOptions())
    assert found.registers == 16
    assert found.registers_from == "sm_90: 10 used, 16 allocated at least"


def test_a_thread_of_2_x_has_63_registers_at_most() -> None:
    traced = launch(block=(64, 1, 1), resources=(made_for("sm_50", 80),))
    found = launch_occupancy(load_device("gtx580"), traced, 1, ReplayOptions())
    assert (found.registers, found.registers_from) == (63, "sm_50 (80, of which 63 exist here)")


def test_without_resources_registers_do_not_limit_and_are_said_to_be_unknown() -> None:
    found = launch_occupancy(load_device("h100"), launch(), 1, ReplayOptions())
    assert found.registers is None
    assert found.registers_from.startswith("unknown")
    assert "registers" not in found.limits


def test_the_reverse_kernels_fill_an_8800_with_the_registers_of_sm_50() -> None:
    for registers, shared in ((7, 0), (10, 1024)):
        traced = launch(
            grid=(1024, 1, 1),
            block=(256, 1, 1),
            shared_static=shared,
            parameter_bytes=16,
            resources=(made_for("sm_50", registers), made_for("sm_75", 14)),
        )
        found = launch_occupancy(load_device("8800gtx"), traced, 1, ReplayOptions())
        assert found.active_warps == found.max_warps == 24


def test_parameters_lie_in_shared_memory_on_1_x_only() -> None:
    traced = launch(shared_static=4096, parameter_bytes=16)
    found = launch_occupancy(load_device("8800gtx"), traced, 1, ReplayOptions())
    assert found.limits["shared"] == 3  # 4096 + 16 + 16 -> 4608; 16384 // 4608
    found = launch_occupancy(load_device("gtx580"), traced, 1, ReplayOptions())
    assert found.limits["shared"] == 12


@pytest.mark.parametrize(
    ("device", "fields", "expected"),
    [
        ("8800gtx", {"block": (513, 1, 1)}, "512 threads a block at most"),
        ("gtx980", {"block": (2048, 1, 1)}, "1024 threads a block at most"),
        ("gtx980", {"block": (20, 100, 1)}, "1024 threads a block at most"),
        ("8800gtx", {"block": (1, 1, 65)}, "64 threads a block in z at most"),
        ("8800gtx", {"grid": (1, 1, 2)}, "1 blocks in z at most"),
        ("gtx580", {"grid": (65536, 1, 1)}, "65535 blocks in x at most"),
        ("8800gtx", {"shared_dynamic": 16384}, "16384 bytes of shared memory a block at most"),
        ("k20", {"shared_static": 49153}, "49152 bytes of shared memory a block at most"),
    ],
)
@pytest.mark.document("000.1", "512 threads a block on 1.x, 1024 on 5.x")
def test_what_a_device_refuses(device: str, fields: dict[str, object], expected: str) -> None:
    assert refuse_launch(load_device(device), launch(**fields)) == f"cannot launch: {expected}"


@pytest.mark.parametrize("device", device_names())
@pytest.mark.document("000.1", "20 x 100 blocks of 3 x 3 x 3 and of 256 threads")
def test_the_launches_of_the_chapter_run_everywhere_that_has_the_grid(device: str) -> None:
    assert refuse_launch(load_device(device), launch(grid=(20, 100, 1), block=(3, 3, 3))) == ""
    assert refuse_launch(load_device(device), launch(grid=(20, 100, 1), block=(256, 1, 1))) == ""
