"""`compare` on variants of one task against Nsight Compute's times and stalls on an H100.

`variants/*.cu` has 32 tasks, each done in two to five ways: 117 pairs. `variants/h100.csv` has
their times, and the stalls of most, by scripts/capture/variants.py.
"""

import csv
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from cutrace.analyzer.comparison.comparison import find_verdict
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.time.estimate import STALLS
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import read_trace

FOLDER = Path(__file__).parent / "variants"
TASKS, PAIRS = 32, 117


RACE = ("counted<1>", "counted<3>")
"""A race of all threads for a few words, without atomics: it takes 6 times its estimate."""
GROUPS = {"mio_throttle": "shared", "short_scoreboard": "shared", "barrier": "barrier"}
GROUPS |= {"long_scoreboard": "memory"}
"""Stall to its column in h100.csv; others are `execution`."""


def rows() -> list[dict[str, str]]:
    with (FOLDER / "h100.csv").open(newline="") as opened:
        return list(csv.DictReader(opened))


def measured() -> dict[str, float]:
    """Nanoseconds by kernel."""
    return {row["kernel"]: float(row["ns"]) for row in rows()}


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[LaunchProfile]]:
    """The variants of each task."""
    tasks = defaultdict[str, list[LaunchProfile]](list)
    for source in sorted(FOLDER.glob("*.cu")):
        path = record(source, [], tmp_path_factory.mktemp("variants") / "t.cutrace")
        for launch in analyze(read_trace(path), "h100", jobs=1).launches:
            tasks[launch.launch.name.partition("<")[0]].append(launch)
    return tasks


def test_the_faster_variant_is_named_or_no_difference(
    launches: dict[str, list[LaunchProfile]],
) -> None:
    times = measured()
    wrong, decided, within, count = [], 0, 0, 0
    for variants in launches.values():
        for one, other in combinations(variants, 2):
            verdict = find_verdict([one, other], 0)
            assert verdict
            assert verdict.difference
            ratio = times[one.launch.name] / times[other.launch.name]
            answer = verdict.difference.verdict
            count += 1
            decided += answer != "same"
            within += verdict.difference.low <= ratio <= verdict.difference.high
            if answer != "same" and (answer == "faster") != (ratio > 1):
                wrong.append((one.launch.name, other.launch.name, ratio))
    assert (len(launches), count) == (TASKS, PAIRS)
    assert decided >= 0.65 * count
    assert within >= 0.9 * count
    assert [(one, other) for one, other, _ in wrong] == [RACE]


def test_the_longest_stall_is_that_of_the_chip(launches: dict[str, list[LaunchProfile]]) -> None:
    chip = {
        row["kernel"]: {group: float(row[group]) for group in {*GROUPS.values(), "execution"}}
        for row in rows()
        if row["memory"]
    }
    apart, count = [], 0
    for launch in (launch for variants in launches.values() for launch in variants):
        if theirs := chip.get(launch.launch.name):
            assert launch.estimate
            ours = defaultdict[str, float](float)
            for reason, share in launch.estimate.stalls.items():
                ours[GROUPS.get(STALLS[reason].partition(",")[0], "execution")] += share
            count += 1
            if max(ours, key=lambda g: ours[g]) != max(theirs, key=lambda g: theirs[g]):
                apart.append(launch.launch.name)
    assert count == 58
    assert len(apart) <= 0.15 * count, apart
