"""Every public value can be pickled: it travels to workers and comes back, and means the same."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hand_trace import Access, hand_trace, launch, write_rows
from warps import warp

import cutrace
from cutrace.analyzer import build_profile
from cutrace.analyzer.profile import analyze
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Argument
from cutrace.traces.writer import TraceWriter

ANSWERS: dict[str, Callable[[Path], Any]] = {
    "advise": lambda path: cutrace.advise(path, device="h100"),
    "analyze": lambda path: cutrace.analyze(path, device="h100"),
    "check": lambda path: cutrace.check(path, {"k": {"shared_conflicts": 0}}, device="h100"),
    "compare": lambda path: cutrace.compare({"a": path, "b": path}, device="h100"),
    "counters": lambda _: cutrace.counters(),
    "devices": lambda _: cutrace.devices("h*"),
    "judge": lambda path: cutrace.judge(path, path, device="h100"),
    "miss_ratios": lambda path: cutrace.miss_ratios(path),
    "occupancy": lambda path: cutrace.occupancy(path, device="h100"),
    "read_trace": cutrace.read_trace,
    "report": lambda path: cutrace.report(path, device="h100"),
    "scan_traces": lambda path: cutrace.scan_traces([path]),
    "why": lambda path: cutrace.why(path, device="h100"),
    "CutraceError": lambda _: cutrace.CutraceError("k.cu:3: no such thing"),
}
"""What each public name answers."""
BY_NAME = {"Session", "TraceWriter", "import_trace", "record", "recording", "sweep"}
"""Those that write files, or answer what others do: they travel as names."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of one load with a stride."""
    folder = tmp_path_factory.mktemp("pickle")
    return hand_trace(folder / "a.cutrace", [Access(warp(stride=8))]).path


def test_the_table_has_every_public_name() -> None:
    assert {*ANSWERS, *BY_NAME} == {*cutrace.__all__}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_the_same_after_a_journey(name: str, path: Path) -> None:
    answer = ANSWERS[name](path)
    back = pickle.loads(pickle.dumps(answer))
    assert type(back) is type(answer)
    if isinstance(answer, pl.DataFrame | pl.LazyFrame):
        assert back.lazy().collect().equals(answer.lazy().collect())
    else:
        assert repr(back) == repr(answer)
        assert str(back) == str(answer)


def test_a_trace_that_was_read_before_its_journey_is_read_after_it(path: Path) -> None:
    trace = cutrace.read_trace(path)
    before = trace.launches[0].accesses()
    assert pickle.loads(pickle.dumps(trace)).launches[0].accesses().equals(before)


@pytest.mark.parametrize("name", sorted(cutrace.__all__))
def test_a_public_name_travels_as_a_name(name: str) -> None:
    value = getattr(cutrace, name)
    assert pickle.loads(pickle.dumps(value)) is value


def test_launches_of_a_long_trace_hold_their_frames_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TraceWriter(tmp_path / "k.cutrace") as made:
        for stride in (4, 8, 16, 8):
            with made.launch(launch(arguments=(Argument("stride", "int", stride),))) as rows:
                write_rows(rows, [Access(warp(stride=stride))])
    trace = read_trace(tmp_path / "k.cutrace")
    plain = analyze(trace, device="h200").launches
    monkeypatch.setattr(build_profile, "TOGETHER", 1)
    packed = analyze(trace, device="h200").launches
    assert ["counts" in vars(each.raw) for each in packed] == [False, False, True, False]
    for ours, theirs in zip(pickle.loads(pickle.dumps(packed)), plain, strict=True):
        assert ours.counters == theirs.counters
        assert ours.raw.counts.equals(theirs.raw.counts)
        assert ours.arrays.equals(theirs.arrays)
    # 32 lanes in sectors of 32 bytes: 4, 8 and 16 bytes apart
    found = [each.counters["global_load_transactions"] for each in packed]
    assert found == [4, 8, 16, 8]
    with pytest.raises(AttributeError, match="'Raw' has no attribute 'count'"):
        getattr(packed[0].raw, "count")  # noqa: B009 - mypy would find it
