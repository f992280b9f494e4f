"""Every counter of these cases in closed form, and again with a constant changed."""

from pathlib import Path

import pytest
from cases.counter_cases import Case
from cases.counter_kernel import PLAIN, record_everything
from cases.every_case import CASES, ESTIMATED

import cutrace
from cutrace.analyzer.counting.evaluate import columns
from cutrace.analyzer.counting.vocabulary import heading, vocabularies
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import load_device


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.record.__name__}-{case.device}")
def test_counters_follow_the_constants(case: Case, tmp_path: Path) -> None:
    for number, constants in enumerate((case.first, case.second)):
        trace = case.record(tmp_path / f"{number}.cutrace", constants)
        device = case.other_device if number and case.other_device else case.device
        options = {
            "code": "ptx",
            **case.options,
            **{name: constants[name] for name in case.replayed},
        }
        (launch,) = cutrace.analyze(trace, device, **options).launches
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


def counted(folder: Path) -> list[tuple[tuple[int, int], set[str]]]:
    """For every device its capability and all raw counters that its models have."""
    trace = record_everything(folder / "plain.cutrace", PLAIN)
    launches = cutrace.analyze(trace, device_names(), as_if=True).launches
    return [(p.capability, {*p.raw.counts.columns, *p.raw.facts}) for p in launches]


def test_every_definition_of_every_counter_has_a_case_with_a_twin(tmp_path: Path) -> None:
    devices = counted(tmp_path)
    known = {(name, case.device) for case in CASES for name in case.expected}
    known |= {(name, case.device) for case in CASES for _, name in case.arrays}
    without = [
        (counter.qualified, counter.devices)
        for vocabulary in vocabularies()
        for counter in vocabulary.counters
        if counter.name not in ESTIMATED
        and any(counter.exists_on(c) and columns(counter.formula) <= raw for c, raw in devices)
        and not any(
            name == heading(counter) and counter.exists_on(load_device(device).capability)
            for name, device in known
        )
    ]
    assert without == []
