"""The process that made a thing. A forked child has a copy of it, and leaves the thing alone.

Finalizers run at the end of a forked child too, threads are not in it, and a lock that another
thread held when it was forked stays locked there.
"""

import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType

from .errors import CutraceError


class Owner:
    """Knows the process that made it."""

    __slots__ = ("process",)

    def __init__(self) -> None:
        self.process = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is that process, and no child that was forked from it."""
        return self.process == os.getpid()

    def require(self, what: str) -> None:
        """Raise CutraceError in a forked child."""
        if not self.is_here:
            raise CutraceError(
                f"{what} belongs to process {self.process}, of which this one is a forked child: "
                "only that process can use it; open a session of its own here"
            )


def in_child(call: Callable[[], object]) -> None:
    """Have something done first of all in each forked child."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=call)


class Lock:
    """A lock between threads. A forked child finds it free: its holder is not there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Forget who holds it."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._lock.release()


_LOCKS: "weakref.WeakSet[Lock]" = weakref.WeakSet()


def _renew_locks() -> None:
    for lock in _LOCKS:
        lock.renew()


in_child(_renew_locks)
