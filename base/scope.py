"""How long temporary folders, executors and the like stay open: for a command line, or for good."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import TypeVar

Thing = TypeVar("Thing")
_SCOPE: ContextVar[ExitStack | None] = ContextVar("cutrace_scope", default=None)
_OPEN: list[AbstractContextManager[object]] = []
"""What was opened outside of a scope: it lives as long as the process."""


@contextmanager
def scope() -> Iterator[ExitStack]:
    """Close at the end of the body what `stay_open` opens in it."""
    with ExitStack() as stack:
        token = _SCOPE.set(stack)
        try:
            yield stack
        finally:
            _SCOPE.reset(token)


def has_scope() -> bool:
    """Return whether a command line is being answered."""
    return _SCOPE.get() is not None


def stay_open(thing: AbstractContextManager[Thing]) -> Thing:
    """Enter a context until the end of the scope; outside of one, for good."""
    if stack := _SCOPE.get():
        return stack.enter_context(thing)
    _OPEN.append(thing)
    return thing.__enter__()
