"""Damaged traces end in an answer or in a clear error; scripts/fuzz_traces.py tries 2,000."""

import shutil
from pathlib import Path

import pytest
from fuzz.answer import MEMORY, ask_all, forget_peak, peak
from fuzz.damaged_trace import damage
from fuzz.sound_trace import sound_traces

EXAMPLES = 24


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sound_traces(tmp_path_factory.mktemp("sound"))


@pytest.mark.parametrize("number", range(EXAMPLES))
def test_a_damaged_trace_gets_an_answer(number: int, sources: list[Path], tmp_path: Path) -> None:
    forget_peak()
    before = peak()
    path = damage(number, sources, tmp_path)
    answers = dict(ask_all(path))
    assert {verb: answer.problem for verb, answer in answers.items() if answer.problem} == {}
    assert peak() - before < MEMORY
    shutil.rmtree(path, ignore_errors=True)


def test_sound_traces_are_sound(sources: list[Path]) -> None:
    assert [answer.status for path in sources for _, answer in ask_all(path)] == [0] * 6
