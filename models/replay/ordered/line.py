"""Rows that are ready go through the stages in threads of their own, beside reading and ordering:
one for the first stages, one for those that they feed.

Loops that are machine code run without Python's lock, so that two cores have work.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from typing import Any, TypeVar

from ....lazy_dataclass import dataclass

T = TypeVar("T")

WORTH = 1 << 18
"""Rows of a launch from which on a second thread is worth its start."""
BEHIND = 1
AHEAD = 2
"""Batches that are read ahead."""
WAITING, REQUESTS = 3, 1 << 20
"""Parts that wait: as many as are sent while the next wave is read; and requests of their distinct
rows, for which there must be room."""


@dataclass(slots=True)
class Line:
    """Work that is done in order, one after another, beside what its maker does; and another line
    for what it leaves to be done `behind` it.
    """

    thread: ThreadPoolExecutor
    behind: "Line | None" = None
    most: int = field(default_factory=lambda: WAITING)
    _waiting: deque[tuple[int, Future[Any]]] = field(default_factory=deque)

    def submit(self, size: int, work: Callable[..., object], *given: Any) -> None:
        """Have work of some size done, once there is room; raises what went wrong in earlier."""
        while self._waiting and (
            len(self._waiting) >= self.most or size + sum(s for s, _ in self._waiting) > REQUESTS
        ):
            self._waiting.popleft()[1].result()
        self._waiting.append((size, self.thread.submit(work, *given)))

    def finish(self) -> None:
        """Wait until all is done; raises what went wrong."""
        while self._waiting:
            self._waiting.popleft()[1].result()
        if self.behind is not None:
            self.behind.finish()


def _is_worth(rows: int) -> bool:
    return rows >= WORTH and (os.cpu_count() or 1) > 1


@contextmanager
def assembly_line(rows: int) -> Iterator[Line | None]:
    """A line for so many rows; None where they are few, or there is one core."""
    if not _is_worth(rows):
        yield None
        return
    with ThreadPoolExecutor(1, "behind") as last, ThreadPoolExecutor(1, "replay") as thread:
        yield Line(thread, Line(last, most=BEHIND))


@contextmanager
def read_ahead(items: Iterator[T], rows: int) -> Iterator[Iterator[T]]:
    """Have items made in a thread of their own, AHEAD of who takes them, where rows are many."""
    if not _is_worth(rows):
        yield items
        return
    with ThreadPoolExecutor(1, "read") as thread:
        yield _ahead(thread, items)


def _ahead(thread: ThreadPoolExecutor, items: Iterator[T]) -> Iterator[T]:
    waiting = deque(thread.submit(next, items, None) for _ in range(AHEAD))
    while (item := waiting.popleft().result()) is not None:
        waiting.append(thread.submit(next, items, None))
        yield item
