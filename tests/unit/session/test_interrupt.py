"""Ctrl-C and limits of time during a launch: raised between two basic blocks, nothing half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.base.interrupt import check_interrupt, deferred_interrupts, interrupt
from cutrace.traces import table_file

SPIN = "__global__ void spin(volatile int *x) { while (x[0] == 0) x[1] = x[1] + 1; }"

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="Windows has no alarm")


class OverError(Exception):
    """The time is over."""


@pytest.fixture
def handlers() -> Iterator[None]:
    """Of an alarm that leaves an error, and of Ctrl-C as Python has it."""

    def ring(number: int, frame: object) -> None:
        interrupt(OverError())

    before = signal.signal(signal.SIGALRM, ring), signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGALRM, before[0])
    signal.signal(signal.SIGINT, before[1])


class Interrupted(ThreadPoolExecutor):
    """A pool that a signal meets while it starts its thread with the lock held."""

    number = signal.SIGALRM
    submitted = 0

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        signal.raise_signal(self.number)
        type(self).submitted += 1
        return super().submit(work, *arguments, **named)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("jobs", [1, 2])  # of two, one compresses the rows before they are written
@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGALRM, OverError), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_while_rows_are_handed_over_ends_the_launch_after_that(
    number: signal.Signals, error: type[BaseException], jobs: int, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(table_file, "ThreadPoolExecutor", Interrupted)
    monkeypatch.setattr(Interrupted, "number", number)
    monkeypatch.setattr(Interrupted, "submitted", 0)
    with pytest.raises(error), cutrace.Session(tmp_path / "t.cutrace", jobs=jobs) as gpu:
        gpu.compile(SPIN).get_function("spin")[1, 32](gpu.device_array(2, np.int32))
    assert Interrupted.submitted == jobs
    assert not [t for t in threading.enumerate() if t.name.startswith("cutrace-background")]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def ring_and(work: Callable[[], None]) -> None:
    """Work after the alarm."""
    signal.raise_signal(signal.SIGALRM)
    work()


def press_and_catch() -> None:
    """Press Ctrl-C, which is raised here."""
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("handlers")
def test_what_is_left_is_raised_once_and_a_second_at_once() -> None:
    with pytest.raises(OverError):
        interrupt(OverError())
    with pytest.raises(OverError), deferred_interrupts():
        ring_and(press_and_catch)
    check_interrupt()


@pytest.mark.usefixtures("handlers")
def test_it_is_raised_after_a_body_that_has_no_safe_point_and_not_lost_to_its_fault() -> None:
    def fail() -> None:
        raise KernelFault("out of bounds")

    with pytest.raises(OverError), deferred_interrupts():
        ring_and(fail)


@pytest.mark.usefixtures("handlers")
def test_launches_of_other_threads_leave_it_to_the_main_thread() -> None:
    raised: list[BaseException] = []

    def launch() -> None:
        with deferred_interrupts():
            try:
                check_interrupt()
            except OverError as error:
                raised.append(error)

    def launch_there() -> None:
        other = threading.Thread(target=launch)
        other.start()
        other.join()

    with pytest.raises(OverError), deferred_interrupts():
        ring_and(launch_there)
    assert raised == []


@pytest.mark.usefixtures("handlers")
def test_ctrl_c_that_somebody_else_handles_is_left_to_them() -> None:
    pressed = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    with deferred_interrupts():
        signal.raise_signal(signal.SIGINT)
        assert pressed == [signal.SIGINT]
