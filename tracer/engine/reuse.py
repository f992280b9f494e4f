"""Memory that the sessions of a process work in, one after another.

What the system hands out it zeroes page by page, which may take longer than what a launch does
with it.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from .memory.memory import Memory

MOST_BYTES = 1 << 26
"""Bytes that are kept for a session to come at most: more go with the one that had them."""


class Sized(Protocol):
    """Anything that holds memory."""

    @property
    def nbytes(self) -> int:
        """The bytes it holds."""


T = TypeVar("T", bound=Sized)


class Reuse(Generic[T]):
    """Lends each session, known by its memory, what `make` made, for it or for one that has ended.

    Of what no session has, one is kept.
    """

    _all: ClassVar[list["Reuse[Any]"]] = []

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lent: WeakKeyDictionary[Memory, T] = WeakKeyDictionary()
        self._kept: list[T] = []
        self._all.append(self)

    def of(self, memory: Memory) -> T:
        """Return what a session works in; at first it is as the session before left it."""
        found = self._lent.get(memory)
        if found is None:
            found = self._lent[memory] = self._take()
        return found

    def _take(self) -> T:
        try:
            return self._kept.pop()
        except IndexError:  # there is none, or another thread's session took it
            return self._make()

    @classmethod
    def end(cls, memory: Memory) -> None:
        """Keep what a session has that launches nothing more."""
        for each in cls._all:
            held = each._lent.pop(memory, None)
            if held is not None and held.nbytes <= MOST_BYTES:
                each._kept[:] = [held]
