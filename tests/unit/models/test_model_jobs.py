"""Devices and launches in several processes: the same integers, in the same order."""

from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace, launch, write_rows
from warps import warp

from cutrace.analyzer import build_profile
from cutrace.analyzer.profile import analyze
from cutrace.base.errors import CutraceError
from cutrace.base.executor import WorkerProcess
from cutrace.commands._main import run
from cutrace.models.replay import replay as jobs
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.writer import TraceWriter

DEVICES = ("8800gtx", "h200", "k20")


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    accesses = [Access(warp(stride=4 * n), step=n) for n in range(1, 40)]
    return hand_trace(tmp_path / "a.cutrace", accesses)


@pytest.mark.parametrize("count", [2, 64])
def test_the_number_of_processes_changes_nothing(trace: Trace, count: int) -> None:
    alone = analyze(trace, device=DEVICES)
    shared = analyze(trace, device=DEVICES, jobs=count)
    assert [p.device for p in shared.launches] == list(DEVICES)
    for ours, theirs in zip(shared.launches, alone.launches, strict=True):
        assert ours.counters == theirs.counters
        assert ours.instructions.equals(theirs.instructions)


def test_there_are_no_more_processes_than_cores(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    send = WorkerProcess.send

    def note(self: WorkerProcess, work: Any, *arguments: Any) -> None:
        started.append(arguments[1])
        send(self, work, *arguments)

    monkeypatch.setattr(WorkerProcess, "send", note)
    monkeypatch.setattr(jobs, "cores", lambda: 2)
    found = analyze(trace, device=DEVICES, jobs=64)
    assert [p.device for p in found.launches] == list(DEVICES)
    # of 3 devices this process takes two, every second one, and the other takes the one between
    assert [[device.key for device in part] for part in started] == [["h200"]]


@pytest.mark.parametrize("asked", [2, None])
def test_launches_are_spread_where_that_is_asked_for_or_saves_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: int | None
) -> None:
    spread = []

    def note(*given: Any) -> Any:
        spread.append([len(numbers) for _, _, numbers in given[2]])
        return jobs.run_beside(*given)

    monkeypatch.setattr(build_profile, "run_beside", note)
    monkeypatch.setattr(build_profile, "cores", lambda: 2)
    monkeypatch.setattr(build_profile, "WORTH_PROCESSES", 0)
    with TraceWriter(tmp_path / "b.cutrace") as trace:
        for stride in (4, 8, 12, 4, 16):
            with trace.launch(launch()) as rows:
                write_rows(rows, [Access(warp(stride=stride))])
    told: list[float] = []
    shared = analyze(tmp_path / "b.cutrace", device=DEVICES, jobs=asked, tell=told.append)
    assert spread == [[1]]  # of 4 that differ the first goes ahead, and one elsewhere
    # of the 3 others this process does the first and the last, beside one that tells nothing
    assert told == sorted(told)
    assert {0.25, 0.625, 1.0} <= {*told}
    alone = analyze(tmp_path / "b.cutrace", device=DEVICES, jobs=1)
    assert len(spread) == 1
    assert shared.numbers == alone.numbers == (0, 1, 2, 3, 4)
    for ours, theirs in zip(shared.launches, alone.launches, strict=True):
        assert ours.device == theirs.device
        assert ours.counters == theirs.counters


def test_what_a_process_raises_is_raised_here(trace: Trace) -> None:
    (trace.path / "0" / "accesses.arrow").write_bytes(b"ARROW1" + bytes(64) + b"ARROW1")
    with pytest.raises(CutraceError, match="damaged or not from a trace"):
        analyze(read_trace(trace.path), device=DEVICES, jobs=3)


def test_no_process_at_all_is_refused(trace: Trace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", str(trace.path), "--jobs", "0"]) == 2
    assert "jobs is 0; expected 1 or more" in capsys.readouterr().err


def test_a_replay_tells_how_much_is_done(trace: Trace) -> None:
    told: list[float] = []
    analyze(trace, device="h200", tell=told.append)
    assert told == [1.0]  # 39 rows in one batch
    told.clear()
    analyze(trace, device="h200", caches=False, tell=told.append)
    assert told == [1.0]
