"""Launches and devices replayed by an executor: the same values, in the same order."""

import shutil
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from executors import Losing
from hand_trace import Access, hand_trace, launch, write_rows
from warps import warp

from cutrace.analyzer import build_profile
from cutrace.analyzer.profile import Profile, analyze
from cutrace.base.errors import CutraceError
from cutrace.models.replay import replay, replay_cache
from cutrace.models.replay.replay import replay as count
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.remote import send
from cutrace.traces.writer import TraceWriter

DEVICES = ("8800gtx", "h200", "k20")
STRIDES = (4, 8, 12, 4, 16)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Five launches, of which the fourth repeats the first."""
    return written(tmp_path / "a.cutrace")


def written(path: Path) -> Trace:
    with TraceWriter(path) as made:
        for stride in STRIDES:
            with made.launch(launch()) as rows:
                write_rows(rows, [Access(warp(stride=stride)), Access(warp(stride=4), step=1)])
    return read_trace(path)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The same launches on all DEVICES without an executor."""
    return analyze(written(tmp_path_factory.mktemp("alone") / "a.cutrace"), device=DEVICES)


def assert_same(ours: Profile, theirs: Profile) -> None:
    assert ours.frame().equals(theirs.frame())
    for mine, its in zip(ours.launches, theirs.launches, strict=True):
        for field in ("number", "device", "remarks", "bounds", "estimate", "occupancy", "launch"):
            assert getattr(mine, field) == getattr(its, field)
        assert mine.origin.number == its.origin.number
        for frame in ("lines", "arrays", "instructions"):
            assert getattr(mine, frame).equals(getattr(its, frame))


def test_launches_and_devices_are_tasks_and_the_answer_is_the_same(
    trace: Trace, alone: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_profile, "TASK_LAUNCHES", 3)
    executor, told = Losing(), list[float]()
    found = analyze(trace, device=DEVICES, executor=executor, tell=told.append)
    assert_same(found, alone)
    asked = [
        (*each.task.question.devices, len(each.task.trace.launches)) for each in executor.given
    ]
    # four launches differ: three and one, each on every device
    assert asked == [(device, launches) for launches in (3, 1) for device in DEVICES]
    assert told == [n / 6 for n in range(1, 7)]


def test_where_there_are_many_tasks_each_has_several_devices(
    trace: Trace, alone: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_profile, "TASK_ROWS", 1)
    monkeypatch.setattr(build_profile, "TASKS", 6)
    executor = Losing()
    found = analyze(trace, device=DEVICES, executor=executor)
    assert_same(found, alone)
    # 4 launches on 3 devices are 12 tasks, of which two and two are put together
    assert [len(each.task.question.devices) for each in executor.given] == [2, 1] * 4


def test_threads_share_no_open_file(
    trace: Trace, alone: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_profile, "TASK_LAUNCHES", 1)
    monkeypatch.setattr(build_profile, "TOGETHER", 2)  # more are packed
    with ThreadPoolExecutor(4) as executor:
        found = analyze(trace, device=DEVICES, executor=executor)
    assert_same(found, alone)


def test_a_supposed_trace_is_replayed_as_it_is_supposed(trace: Trace) -> None:
    supposed: dict[str, Any] = {"device": DEVICES, "align": {"data": "128+4"}}
    assert_same(analyze(trace, executor=Losing(), **supposed), analyze(trace, **supposed))


def test_lost_workers_lose_nothing_and_too_many_are_told(trace: Trace) -> None:
    assert_same(analyze(trace, device="k20", executor=Losing(2)), analyze(trace, device="k20"))
    with pytest.raises(CutraceError, match=r"given to workers 3 times.*the worker has gone"):
        analyze(trace, device="k20", executor=Losing(3))


def test_what_a_worker_finds_wrong_is_raised_here(trace: Trace) -> None:
    (trace.path / "1" / "accesses.arrow").write_bytes(b"ARROW1" + bytes(64) + b"ARROW1")
    with pytest.raises(CutraceError, match="damaged or not from a trace"):
        analyze(trace.path, device="k20", executor=Losing())


def test_a_worker_of_another_version_is_refused(trace: Trace) -> None:
    class Old(Losing):
        def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
            return super().submit(call, replace(arguments[0], version="0.0.1"))

    with pytest.raises(CutraceError, match=r"a worker has cutrace .*, and not 0\.0\.1"):
        analyze(trace, device="k20", executor=Old())


def test_a_pool_that_would_fork_is_served_by_processes_that_do_not(
    trace: Trace, alone: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProcessPoolExecutor(2, get_context("fork")) as executor:
        monkeypatch.setattr(executor, "submit", None)  # it would hang, if not each time
        found = analyze(trace, device=DEVICES, executor=executor)
    assert_same(found, alone)


class Elsewhere(Losing):
    """Workers of another machine, which has not what was copied here."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        shutil.rmtree(arguments[0].task.trace.path)
        return super().submit(call, *arguments)


def test_a_trace_at_an_address_is_brought_to_workers_elsewhere(
    trace: Trace, alone: Profile
) -> None:
    pytest.importorskip("fsspec")
    url = "memory://bucket/a.cutrace"
    send(trace.path, url)
    here = analyze(url, device=DEVICES)
    assert_same(analyze(url, device=DEVICES, executor=Elsewhere()), here)
    assert here.frame().equals(alone.frame())


def test_a_trace_that_a_worker_does_not_see_is_told(trace: Trace) -> None:
    message = r"a\.cutrace: the worker on .* does not see it; put it into a folder that all"
    with pytest.raises(CutraceError, match=message):
        analyze(trace, device="k20", executor=Elsewhere())


def test_what_was_counted_before_is_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(replay_cache, "WORTH", 0)
    replayed: list[str] = []

    def note(trace: Any, some: Any, options: Any) -> Any:
        replayed.extend(device.key for device in some)
        return count(trace, some, options)

    monkeypatch.setattr(replay, "replay", note)
    trace = hand_trace(tmp_path / "b.cutrace", [Access(warp(stride=8))])
    analyze(trace, device="k20")
    analyze(trace, device=("k20", "h200"), executor=Losing())
    analyze(trace, device="h200")
    assert replayed == ["k20", "h200"]
