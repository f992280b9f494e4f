"""docs/performance.md is what its script writes from the measurements in docs/."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
SCRIPT = ROOT / "scripts" / "write" / "performance.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not beside the tests")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the script defines; it imports from its own folder."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "write"))
    defined = runpy.run_path(str(SCRIPT))
    monkeypatch.delitem(sys.modules, "performance_goals")
    return defined


def test_the_page_is_written_from_the_measurements(script: dict[str, Any]) -> None:
    written = (DOCS / "performance.md").read_text()
    assert written == script["write"](), "run scripts/write/performance.py"


def test_a_missed_target_is_listed_with_its_reason(script: dict[str, Any]) -> None:
    case = {"name": "histogram", "ratio": 19.9, "bar": 20.0, "small_ratio": None}
    (missed,) = script["oclgrind_goals"]([case])
    (met,) = script["oclgrind_goals"]([case | {"ratio": 20.0}])
    assert (missed.is_met, met.is_met) == (False, True)
    _, table, reasons = script["_programs"]([case])
    assert table.splitlines() == [
        "| work | times as fast (at least 20 x) |",
        "| --- | --- |",
        "| histogram, 1 M values | **19.9 x** |",
    ]
    assert missed.reason in reasons
    _, table = script["_programs"]([case | {"ratio": 20.0}])
    assert table.endswith("| histogram, 1 M values | 20 x |")


def test_targets_that_differ_stand_beside_the_results(script: dict[str, Any]) -> None:
    case = {"name": "histogram", "ratio": 30.0, "bar": 20.0, "small_ratio": None}
    cases = [case, case | {"name": "transpose", "bar": 25.0}]
    table = script["_goal_table"](list(script["oclgrind_goals"](cases)))
    assert table.splitlines()[2:] == [
        "| histogram, 1 M values | 30 x (at least 20 x) |",
        "| transpose, 1024 x 1024 | 30 x (at least 25 x) |",
    ]


def test_growing_memory_misses_its_target(script: dict[str, Any]) -> None:
    memory = {"kernel": "k", "what": "record", "peak_bytes": [100 << 20, 111 << 20], "growth": 0.11}
    peak, growth = script["memory_goals"](memory)
    assert (peak.result, peak.is_met) == ("0.108 GiB", True)  # 111 / 1024
    assert (growth.result, growth.is_met) == ("11 %", False)


def test_the_history_is_a_row_per_work_with_the_seconds_of_both_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "measure"))
    append = runpy.run_path(str(ROOT / "scripts" / "measure" / "bench_compare.py"))["append"]
    if subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--quiet", "HEAD"]).returncode:
        pytest.skip("not a clone")
    append("HEAD", {"record": (0.5, 1.0)}, tmp_path / "h.csv")
    append("HEAD", {"replay": (2.0, 1.0)}, tmp_path / "h.csv")
    head, first, second = (tmp_path / "h.csv").read_text().splitlines()
    assert head == "date,commit,against,work,seconds,seconds_against"
    assert (first.split(",")[3:], second.split(",")[3:]) == (
        ["record", "0.500", "1.000"],
        ["replay", "2.000", "1.000"],
    )
