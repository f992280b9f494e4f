"""Latencies and bandwidths that others published: complete, with sources, as the estimate asks."""

import re
from pathlib import Path

import pytest

from cutrace.models.replay.device.catalog import FOLDER
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import (
    WITHIN,
    has_latencies,
    load_measured,
    load_published,
)

FILES = sorted((FOLDER / "measured").glob("sm_*.toml"), key=lambda path: int(path.stem[3:]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_published_number_has_its_source_beside_it(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if "=" in line]
    assert len(lines) == 11 + any(line.startswith("copy_share") for line in lines)
    assert [line for line in lines if not re.search(r"= .+  # .{6,}", line)] == []


def test_capabilities_with_an_estimate() -> None:
    assert [path.stem for path in FILES] == [
        *("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_100", "sm_120")
    ]
    # of a family the newest before it: 7.2 as 7.0, 8.7 as 8.6, 10.3 as 10.0, 12.1 as 12.0
    family = [(7, 2), (8, 7), (9, 0), (10, 3), (12, 1)]
    assert all(map(has_latencies, family))
    assert not any(map(has_latencies, [(1, 0), (6, 1), (11, 0)]))


@pytest.mark.parametrize("name", ["v100", "t4", "a100", "rtx3060", "rtx4090", "b200", "rtx5090"])
def test_a_device_has_the_latencies_that_were_published_of_its_kind(name: str) -> None:
    device = load_device(name)
    published, measured = load_published(device.capability), load_measured(device)
    assert published is not None
    assert measured is not None
    mhz = device.chip.clock_mhz
    assert measured.l1_cycles == pytest.approx(published.l1_cycles)
    assert measured.l2_cycles(mhz) == pytest.approx(published.l2_cycles)
    assert measured.dram_cycles(mhz) * 1000 / mhz == pytest.approx(published.dram_ns)
    assert measured.dram_cycles(mhz / 2) * 2000 / mhz == pytest.approx(published.dram_ns)
    assert measured.dram_gb_per_s() == pytest.approx(
        published.dram_share * device.chip.memory_gb_per_s
    )
    copied = published.copy_share or published.dram_share
    assert measured.copy_gb_per_s() == pytest.approx(copied * device.chip.memory_gb_per_s)
    bytes_per_ns = published.l2_bytes * device.chip.sms * mhz / 1000
    assert measured.l2_gb_per_s() == pytest.approx(bytes_per_ns)
    assert measured.interval == published.interval
    assert measured.launch_ns(mhz) > 1000


def test_lanes_of_double_precision_tell_its_rate() -> None:
    # 32 lanes of an A100's SM take a warp in a cycle, two of an RTX 3060's in sixteen
    rates = [load_measured(load_device(name)) for name in ("a100", "rtx3060")]
    assert [each and round(each.at("rate", "fma.rn.f64")) for each in rates] == [1, 16]


def test_the_latencies_of_a_device_are_read_once() -> None:
    device = load_device("rtx4090")
    assert load_measured(device) is load_measured(device)
    assert load_measured(device) is not load_measured(load_device("rtx4080"))


def test_what_was_measured_keeps_its_own_interval() -> None:
    measured = load_measured(load_device("h100"))
    assert measured is not None
    assert measured.interval == WITHIN
    assert (measured.request_cycles, measured.pass_cycles) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("name", "mhz", "single", "half"),
    [
        ("v100-sxm2", 1530, 125.0, 125.0),
        ("rtx2080ti", 1545, 53.8, 107.6),
        ("a100", 1410, 312.0, 312.0),
        ("rtx3080", 1710, 59.5, 119.0),
        ("a6000", 1800, 154.8, 154.8),
        ("rtx4090", 2520, 165.2, 330.3),
        ("l40s", 2520, 362.0, 362.0),
        ("rtx5090", 2407, 209.5, 419.0),
    ],
)
def test_matrix_products_are_as_fast_as_whitepapers_say(
    name: str, mhz: float, single: float, half: float
) -> None:
    """TFLOP/s of products of halves, added up in single precision or as halves."""
    device = load_device(name)
    known = load_measured(device)
    assert known is not None
    for sums, said in (("f32", single), ("f16", half)):
        cycles = known.tensor_cycles(f"mma.sync.aligned.m16n8k16.row.col.{sums}.f16.f16.{sums}")
        flops = 2 * 16 * 8 * 16 / cycles * device.chip.sms * mhz / 1e6
        assert flops == pytest.approx(said, rel=0.02)
