"""Interrupts of a launch, by Ctrl-C or a limit of time, raised where nothing is half done.

A signal handler runs between any two steps of Python. What it raises as a lock is taken leaves the
lock held for ever, and the thread that writes the trace waits for it; what it raises as machine
code calls back is lost. While a launch runs, handlers therefore leave their exception here, and the
engine raises it between two basic blocks.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

from .dataclass import dataclass


@dataclass(slots=True)
class _Deferral:
    """Whether the main thread runs a launch, and what a handler left for it to raise."""

    is_on: bool = False
    problem: BaseException | None = None


_DEFERRAL = _Deferral()


def interrupt(problem: BaseException) -> None:
    """Raise `problem`: at once, or at the next safe point of the launch that runs.

    For signal handlers. A second one during a launch is raised at once.
    """
    if not _DEFERRAL.is_on or _DEFERRAL.problem is not None:
        raise problem
    _DEFERRAL.problem = problem


def check_interrupt() -> None:
    """Raise what a handler left; a safe point of a launch."""
    if _DEFERRAL.problem is not None and current_thread() is main_thread():
        problem, _DEFERRAL.problem = _DEFERRAL.problem, None
        raise problem


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Defer interrupts to the safe points of the body, and to its end.

    Other threads have no handlers, and Ctrl-C is deferred only if it raises KeyboardInterrupt.
    """
    if _DEFERRAL.is_on or current_thread() is not main_thread():
        yield
        return
    own = signal.getsignal(signal.SIGINT)
    is_default = own is signal.default_int_handler
    _DEFERRAL.is_on = True
    try:
        if is_default:
            signal.signal(signal.SIGINT, _interrupt_by_key)
        yield
    finally:
        try:
            if is_default:
                signal.signal(signal.SIGINT, own)
        finally:  # also if Ctrl-C is pressed just then
            _DEFERRAL.is_on = False
        check_interrupt()


def _interrupt_by_key(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C."""
    interrupt(KeyboardInterrupt())
