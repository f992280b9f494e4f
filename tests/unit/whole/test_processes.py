"""Processes that do calls: answers, exceptions, and those that end."""

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from cutrace.base.config import bytes_of
from cutrace.base.errors import CutraceError
from cutrace.base.executor import WorkerLost, WorkerPool, WorkerProcess


@pytest.fixture
def process() -> Iterator[WorkerProcess]:
    made = WorkerProcess()
    yield made
    made.end()


def test_calls_are_answered_one_after_another_and_exceptions_raised(process: WorkerProcess) -> None:
    process.send(bytes_of, "64K", "size")
    assert process.receive() == 65536
    process.send(bytes_of, "many", "size")
    with pytest.raises(CutraceError, match="size is 'many': expected bytes"):
        process.receive()
    process.send(os.getpid)
    assert process.receive() not in (os.getpid(), None)


def test_what_a_call_prints_is_no_answer(
    process: WorkerProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    process.send(os.write, 1, b"hello")
    assert process.receive() == 5
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("status", [0, 3])
def test_a_process_that_ends_is_told_with_its_status(process: WorkerProcess, status: int) -> None:
    process.send(os._exit, status)
    with pytest.raises(WorkerLost, match=f"a process ended with status {status}"):
        process.receive()


def test_a_process_that_is_lost_is_replaced() -> None:
    with closing(WorkerPool(1)) as executor:
        first = executor.submit(os.getpid).result()
        with pytest.raises(WorkerLost):
            executor.submit(os._exit, 1).result()
        assert executor.submit(os.getpid).result() != first
