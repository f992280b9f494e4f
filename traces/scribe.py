"""A thread that writes to disk while its owner goes on."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from ..errors import CutraceError

WAITING_BYTES = 1 << 26
"""Bytes that wait to be written at most."""

WORTH_BYTES = 1 << 20
"""Bytes that wait when the thread is started: for fewer, to wake it takes longer than it saves."""


class Scribe:
    """Makes calls one after the other, in a thread of its own; all at the end, if they hold little.

    Once a call has raised an error, later ones are not made, but those that have to be made
    `always`; whoever asks for one, or waits, gets the error.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._early: list[tuple[Callable[[], object], int]] = []
        self._waiting: deque[tuple[Future[None], int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._is_stopped = False

    def ask(self, call: Callable[[], object], size: int = 0) -> None:
        """Have a call made that holds `size` bytes; wait where too many wait already."""
        self._check()
        self._early.append((call, size))
        self._bytes += size
        if self._thread is None and self._bytes < WORTH_BYTES:
            return
        self._hand_over()
        while self._waiting and (self._bytes > WAITING_BYTES or self._waiting[0][0].done()):
            self._wait_for_first()
        self._check()

    def always(self, call: Callable[[], object]) -> None:
        """Have a call made that raises nothing, whatever went wrong before; at once if nothing was
        begun, or it is stopped."""
        if self._is_stopped or self._thread is None:
            call()
        else:
            self._thread.submit(call)

    def finish(self) -> None:
        """Wait until all calls are made."""
        while self._early:
            call, size = self._early.pop(0)
            self._bytes -= size
            self._make(call)
        while self._waiting:
            self._wait_for_first()
        self._check()

    def stop(self) -> None:
        """Drop what waits, except what has to be done always; take no more."""
        self._is_stopped = True
        if self._error is None:
            self._error = CutraceError("the trace is closed")
        if self._thread is not None:
            self._thread.shutdown()

    def _hand_over(self) -> None:
        """Give the thread what was asked for until now."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "cutrace-scribe")
        for call, size in self._early:
            self._waiting.append((self._thread.submit(self._make, call), size))
        self._early.clear()

    def _wait_for_first(self) -> None:
        future, size = self._waiting.popleft()
        future.result()
        self._bytes -= size

    def _make(self, call: Callable[[], object]) -> None:
        if self._error is None:
            try:
                call()
            except BaseException as error:
                self._error = error

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
