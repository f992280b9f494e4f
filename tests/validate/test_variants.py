"""`compare` on variants of one task against Nsight Compute's times on an H100.

`variants/*.cu` has 23 tasks, each done in two to four ways: 72 pairs. `variants/h100.csv` has their
times, by scripts/capture/variants.py.
"""

import csv
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from cutrace.analyzer.comparison.comparison import find_verdict
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import read_trace

FOLDER = Path(__file__).parent / "variants"
TASKS, PAIRS = 23, 72


def measured() -> dict[str, float]:
    """Nanoseconds by kernel."""
    with (FOLDER / "h100.csv").open(newline="") as opened:
        return {row["kernel"]: float(row["ns"]) for row in csv.DictReader(opened)}


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
    assert decided >= 0.7 * count
    assert within >= 0.95 * count
    assert wrong == []
