"""Rows that are ready go through the stages in a thread of their own, beside reading and ordering.

Loops that are machine code run without Python's lock, so that two cores have work.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

WORTH = 1 << 18
"""Rows of a launch from which on a second thread is worth its start."""
WAITING, REQUESTS = 8, 1 << 20
"""Parts that wait: as many as are sent while the next wave is read; and requests of their distinct
rows, for which there must be room."""


@dataclass(slots=True)
class Line:
    """Work that is done in order, one after another, beside what its maker does."""

    thread: ThreadPoolExecutor
    _waiting: deque[tuple[int, Future[Any]]] = field(default_factory=deque)

    def submit(self, size: int, work: Callable[..., object], *given: Any) -> None:
        """Have work of some size done, once there is room; raises what went wrong in earlier."""
        while self._waiting and (
            len(self._waiting) >= WAITING or size + sum(s for s, _ in self._waiting) > REQUESTS
        ):
            self._waiting.popleft()[1].result()
        self._waiting.append((size, self.thread.submit(work, *given)))

    def finish(self) -> None:
        """Wait until all is done; raises what went wrong."""
        while self._waiting:
            self._waiting.popleft()[1].result()


@contextmanager
def assembly_line(rows: int) -> Iterator[Line | None]:
    """A line for so many rows; None where they are few, or there is one core."""
    if rows < WORTH or (os.cpu_count() or 1) < 2:
        yield None
        return
    with ThreadPoolExecutor(1, "replay") as thread:
        yield Line(thread)
