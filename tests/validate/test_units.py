"""What the profiler's shares of units are made of, as an H100 counted them."""

import csv
from pathlib import Path

import pytest

from cutrace.analyzer.time import units as throughput
from cutrace.analyzer.time.units import ADU_CYCLES
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import load_measured

FOLDER = Path(__file__).parent
SMS = 132


def table(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="") as opened:
        return list(csv.DictReader(opened))


def launches(kernel: str) -> list[dict[str, str]]:
    return [row for row in table("time/h100_units.csv") if row["kernel"] == kernel]


def sm_cycles(row: dict[str, str], share: str) -> float:
    """Cycles of all SMs in which a unit was at work."""
    return float(row[share]) / 100 * float(row["ns"]) * float(row["sm_hz"]) / 1e9 * SMS


def test_shared_memory_has_passes_without_data() -> None:
    """For reads of which lane it is, shuffles, accesses without a lane, and blocks' barriers."""
    ratios = []
    for row in table("programs/third_wavefronts.csv"):
        counted = {name: float(value) for name, value in row.items() if value.isdigit()}
        others = counted["wavefronts"] - sum(counted[n] for n in ("loads", "stores", "atomics"))
        said = sum(counted[name] for name in ("of_lane", "shuffles", "without_lane"))
        said += counted["barriers"] / counted["warps_a_block"]
        if said:
            ratios.append(others / said)
    assert len(ratios) >= 150
    assert sum(abs(ratio - 1) < 0.01 for ratio in ratios) >= 0.9 * len(ratios)
    assert sum(abs(ratio - 1) < 0.05 for ratio in ratios) >= 0.95 * len(ratios)


@pytest.mark.parametrize(
    ("kernel", "warps", "instructions"),
    [
        ("copy", 1 << 17, 4 + 1),  # LDC, and S2UR of the block's number
        ("turn<1>", 64 * 64 * 8, 4 + 3 + 1),  # LDC, S2R of the block's numbers, BAR
        ("five_points", 1 << 17, 4 + 2),
    ],
)
def test_the_address_unit_takes_two_cycles(kernel: str, warps: int, instructions: int) -> None:
    found = [sm_cycles(row, "sm__inst_executed_pipe_adu") for row in launches(kernel)]
    expected = ADU_CYCLES * instructions * warps
    assert any(cycles == pytest.approx(expected, rel=0.03) for cycles in found), (found, expected)


def test_lanes_try_until_each_has_had_its_turn() -> None:
    measured = load_measured(load_device("h200"))
    assert measured
    found = {
        (row["name"], row["at"]): float(row["value"]) for row in table("time/h200_retries.csv")
    }
    for (name, at), value in found.items():
        what, lanes, warps, _ = name.split("_")
        rivals = int(at) * int(lanes) * int(warps)
        if what == "tries":
            assert 0.48 < value / measured.tries(rivals) < 1.3, (name, at)
        elif rivals > 2000:
            assert 0.65 < value / measured.turn_ns < 1.1, (name, at)
    assert len(found) == 2 * 19


def test_the_second_level_has_a_clock_of_its_own() -> None:
    every = table("time/h100_units.csv")
    by_clock = [
        sorted(float(row["lts_hz"]) for row in every if row["clock"] == clock)
        for clock in ("none", "base")
    ]
    slow, fast = (hz[len(hz) // 2] for hz in by_clock)
    assert slow == pytest.approx(fast, rel=0.005)


def test_a_copy_keeps_the_second_level_busy_between_its_halves() -> None:
    """Two sectors stored for each 16 floats, and one missing: memory hands out two at a time."""
    missing, stored = throughput.FABRIC[1], throughput.FABRIC[2]
    expected = (1 << 22) / 16 * (missing + 2 * stored)
    told = [
        float(row["lts__ltcfabric2ltc_cycles_active"]) / 100 * float(row["ns"])
        for row in launches("copy")
    ]
    assert sum(ns == pytest.approx(expected, rel=0.2) for ns in told) == 4, (told, expected)
