"""Asynchronous writer: a thread that writes to disk while its owner goes on."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ...owner import Owner

WAITING_BYTES = 1 << 23
"""Bytes that wait to be written at most."""

WORTH_BYTES = 1 << 20
"""Bytes that calls hold when the thread is given them: for fewer, to wake it takes longer than it
saves."""

CALLS = 1 << 12
"""Calls after which it is given them anyhow."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that holds `size` bytes; `is_due` whatever went wrong before."""

    make: Callable[[], object]
    size: int = 0
    is_due: bool = False


class BackgroundWriter:
    """Makes calls one after the other, in a thread of its own; all at the end, if they hold little.

    Once a call has raised an error, later ones are not made, but those that have to be made
    `always`; whoever asks for one, or waits, gets the error.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._gathered: list[_Call] = []
        self._gathered_bytes = 0
        self._waiting: deque[tuple[Future[None], int]] = deque()
        self._waiting_bytes = 0
        self._error: BaseException | None = None
        self._is_stopped = False
        self._owner = Owner()

    def ask(self, call: Callable[[], object], size: int = 0) -> None:
        """Have a call made that holds `size` bytes; wait where too many wait already."""
        self._check()
        self._gather(_Call(call, size))
        if self._gathered_bytes < WORTH_BYTES and len(self._gathered) < CALLS:
            return
        self._hand_over()
        while self._waiting and (self._waiting_bytes > WAITING_BYTES or self._waiting[0][0].done()):
            self._wait_for_first()
        self._check()

    def always(self, call: Callable[[], object]) -> None:
        """Have a call made that raises nothing, whatever went wrong before; at once if nothing was
        begun, or it is stopped."""
        if not self._owner.is_here:
            return
        if self._is_stopped or self._thread is None:
            call()
        else:
            self._gather(_Call(call, is_due=True))

    def finish(self) -> None:
        """Wait until all calls are made."""
        self._check()
        while self._waiting:
            self._wait_for_first()
        self._make(self._take())
        self._check()

    def stop(self) -> None:
        """Drop what waits, except what has to be done always; take no more. Nothing in a forked
        child, which has no such thread, and whose files are the process's that made this."""
        if not self._owner.is_here:
            return
        self._is_stopped = True
        if self._error is None:
            self._error = CutraceError("the trace is closed")
        if self._thread is not None:
            self._thread.shutdown()
        self._make(self._take())

    def _gather(self, call: _Call) -> None:
        self._gathered.append(call)
        self._gathered_bytes += call.size

    def _take(self) -> list[_Call]:
        calls, self._gathered, self._gathered_bytes = self._gathered, [], 0
        return calls

    def _hand_over(self) -> None:
        """Give the thread what was asked for until now."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "cutrace-background")
        size = self._gathered_bytes
        self._waiting.append((self._thread.submit(self._make, self._take()), size))
        self._waiting_bytes += size

    def _wait_for_first(self) -> None:
        future, size = self._waiting.popleft()
        future.result()
        self._waiting_bytes -= size

    def _make(self, calls: list[_Call]) -> None:
        for call in calls:
            if self._error is not None and not call.is_due:
                continue
            try:
                call.make()
            except BaseException as error:
                self._error = error

    def _check(self) -> None:
        self._owner.require("this trace")
        if self._error is not None:
            raise self._error
