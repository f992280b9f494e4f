"""Every counter of these cases in closed form, and again with a constant changed."""

from pathlib import Path

import pytest
from counter_cases import CASES, Case

import cutrace


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.record.__name__}-{case.device}")
def test_counters_follow_the_constants(case: Case, tmp_path: Path) -> None:
    for number, constants in enumerate((case.first, case.second)):
        trace = case.record(tmp_path / f"{number}.cutrace", constants)
        (launch,) = cutrace.analyze(trace, case.device, **case.options).launches
        expected = {name: formula(constants) for name, formula in case.expected.items()}
        assert {name: launch.counters[name] for name in expected} == expected, constants
        arrays = {row["array"]: row for row in launch.arrays.iter_rows(named=True)}
        for (array, name), formula in case.arrays.items():
            assert arrays[array][name] == formula(constants), (array, name, constants)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.record.__name__}-{case.device}")
def test_a_changed_constant_changes_every_counter(case: Case) -> None:
    for name, formula in (*case.expected.items(), *case.arrays.items()):
        assert formula(case.first) != formula(case.second), name
        assert formula(case.first) != 0, name
