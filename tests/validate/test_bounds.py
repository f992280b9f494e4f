"""Bounds are at or below what an H200 took and issued: kernels that ptxas makes shorter."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.tracer.session.source.record import record

FOLDER = Path(__file__).parent / "time"


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, int]]:
    with (FOLDER / "h200_bounds.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {row.pop("kernel"): {name: int(value) for name, value in row.items()} for row in rows}


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Sequence[LaunchProfile]:
    path = tmp_path_factory.mktemp("bounds") / "bounds.cutrace"
    record(FOLDER / "bounds.cu", out=path)
    return analyze(path, device="h200").launches


def test_no_bound_is_above_the_chips_time_or_the_estimate(
    profiles: Sequence[LaunchProfile], measured: dict[str, dict[str, int]]
) -> None:
    assert len(profiles) == len(measured) == 9
    for profile in profiles:
        longest = profile.bounds[0].ns
        assert profile.estimate
        assert longest <= profile.estimate.ns, profile.launch.signature
        assert longest <= measured[profile.launch.signature.partition("(")[0]]["ns"]


def test_issue_slots_are_few_less_than_the_chip_issued(
    profiles: Sequence[LaunchProfile], measured: dict[str, dict[str, int]]
) -> None:
    shares = []
    for profile in profiles:
        issued = measured[profile.launch.signature.partition("(")[0]]["inst_executed"]
        amount = next(b.amount for b in profile.bounds if b.resource == "issue slots")
        assert amount <= issued, profile.launch.signature
        shares.append(amount / issued)
    assert sum(share > 0.9 for share in shares) >= 8


def test_double_precision_is_what_the_chip_did(
    profiles: Sequence[LaunchProfile], measured: dict[str, dict[str, int]]
) -> None:
    for profile in profiles:
        chip = measured[profile.launch.signature.partition("(")[0]]["pipe_fp64"]
        amounts = [b.amount for b in profile.bounds if b.resource == "double-precision units"]
        assert sum(amounts) <= 32 * chip
