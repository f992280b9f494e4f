"""The thread that writes a trace: in order, bounded, and never silent about an error."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.traces import table_file
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Launch
from cutrace.traces.table_file import BackgroundWriter
from cutrace.traces.writer import TraceWriter


@pytest.fixture
def background(monkeypatch: pytest.MonkeyPatch) -> Iterator[BackgroundWriter]:
    """One with a thread from the first call on."""
    monkeypatch.setattr(table_file, "WORTH_BYTES", 0)
    made = BackgroundWriter()
    yield made
    made.stop()


def test_calls_are_made_in_order_and_all_by_the_end(background: BackgroundWriter) -> None:
    made: list[int] = []
    for number in range(100):
        background.submit(partial(made.append, number))
    background.finish()
    assert made == list(range(100))


def test_a_thread_is_started_once_a_megabyte_waits() -> None:
    background = BackgroundWriter()
    by: list[str] = []
    background.submit(lambda: by.append(threading.current_thread().name), 1 << 19)
    background.finish()
    assert by == [threading.current_thread().name]
    for _ in range(2):
        assert len(by) == 1
        background.submit(lambda: by.append(threading.current_thread().name), 1 << 19)
    background.finish()
    background.stop()
    assert by[1:] == 2 * ["cutrace-background_0"]


def test_an_error_is_told_to_all_who_ask_and_what_was_asked_later_is_not_done(
    background: BackgroundWriter,
) -> None:
    made: list[str] = []
    may_fail = threading.Event()

    def fail() -> None:
        may_fail.wait()
        raise CutraceError("the disk is full")

    background.submit(fail)
    background.submit(lambda: made.append("later"))
    background.always(lambda: made.append("always"))
    may_fail.set()
    for _ in range(2):
        with pytest.raises(CutraceError, match="the disk is full"):
            background.finish()
    with pytest.raises(CutraceError, match="the disk is full"):
        background.submit(lambda: made.append("last"))
    background.stop()
    assert made == ["always"]


def test_who_asks_waits_where_too_many_bytes_wait(
    background: BackgroundWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "WAITING_BYTES", 100)
    may_go, asked = threading.Event(), threading.Event()
    background.submit(may_go.wait, 60)

    def ask() -> None:
        background.submit(lambda: None, 60)
        asked.set()

    second = threading.Thread(target=ask)
    second.start()
    assert not asked.wait(0.05)
    may_go.set()
    second.join()
    assert asked.is_set()


def test_what_waits_when_it_is_stopped_is_dropped(background: BackgroundWriter) -> None:
    made: list[int] = []
    may_go = threading.Event()
    background.submit(may_go.wait)
    background.submit(lambda: made.append(1))
    threading.Timer(0.05, may_go.set).start()
    background.stop()
    assert made == []
    background.always(lambda: made.append(2))
    assert made == [2]


def test_launches_follow_one_another_before_the_first_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = Launch("k", "k()", (1, 1, 1), (32, 1, 1), 0, 0, 0)
    may_write = threading.Event()
    with TraceWriter(tmp_path / "x.cutrace") as trace:
        trace._background.submit(may_write.wait)
        for number in range(3):
            with trace.launch(launch) as rows:
                rows.patterns(np.full(2, number + 1), np.zeros((2, 32), np.int32))
        may_write.set()
    read = read_trace(tmp_path / "x.cutrace")
    assert [one.patterns()[0].tolist() for one in read.launches] == [[1, 1], [2, 2], [3, 3]]
