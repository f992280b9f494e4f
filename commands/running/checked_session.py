"""The fixture `cutrace_session`: a session with its counters and budget checks."""

from types import TracebackType

from ...tracer.host.session import Session
from ...traces.reader import Trace
from .checked_trace import CheckedTrace


class CheckedSession(CheckedTrace, Session):
    """A `cutrace.Session` that ends when it is first asked: `profile` and `assert_budget`.

    Once asked, it launches no more.
    """

    _ended = False

    def __enter__(self) -> "CheckedSession":
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._ended:
            self._ended = True
            super().__exit__(kind, problem, traceback)

    def end(self) -> Trace:
        """End the recording, if it has not, and read its trace."""
        self.__exit__(None, None, None)
        return super().end()
