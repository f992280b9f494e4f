"""Progress of work, reported by whoever does it to whoever shows it, through the context.

A worker calls `report` with the share that is done, `read_rows` for rows of a trace; the engine
updates `run_progress()`. A verb shows them (`commands/terminal/progress.py`); else nobody listens.
A new thread has an empty context: what it reports is ignored, unless it runs in a copy of this one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .dataclass import dataclass


def ignore(amount: float) -> None:
    """Ignore progress."""


_SHARE: ContextVar[Callable[[float], None]] = ContextVar("cutrace_share", default=ignore)
_ROWS: ContextVar[Callable[[int], None]] = ContextVar("cutrace_rows", default=ignore)


def report(fraction: float) -> None:
    """Report the share that is done, from 0 to 1."""
    _SHARE.get()(fraction)


def read_rows(rows: int) -> None:
    """Report rows of accesses that were read; a negative number, rows that need not be read, since
    cached results replace them.
    """
    _ROWS.get()(rows)


def listener() -> Callable[[float], None]:
    """Return who is told of the share."""
    return _SHARE.get()


@contextmanager
def listening(
    share: Callable[[float], None], rows: Callable[[int], None] | None = None
) -> Iterator[None]:
    """Call `share` and `rows` with what the body reports."""
    tokens = _SHARE.set(share), _ROWS.set(rows) if rows else None
    try:
        yield
    finally:
        _SHARE.reset(tokens[0])
        if tokens[1]:
            _ROWS.reset(tokens[1])


@contextmanager
def part(before: int, many: int, of: int) -> Iterator[None]:
    """Let the body report its own progress: it does `many` of `of` items, after `before`."""
    whole = _SHARE.get()
    with listening(lambda fraction: whole((before + many * fraction) / of)):
        yield


@dataclass(slots=True)
class RunProgress:
    """Progress of a run: `launches` completed, and the `part` of the current one, from 0 to 1.

    `blocks` are the thread blocks of each launch, if known in advance.
    """

    launches: int = 0
    part: float = 0.0
    blocks: tuple[int, ...] = ()

    @property
    def share(self) -> float:
        """The part of all thread blocks that has run, from 0 to 1; 0 if their number is unknown.

        >>> RunProgress(launches=1, part=0.5, blocks=(10, 20)).share
        0.6666666666666666
        """
        ended, running = self.blocks[: self.launches], self.blocks[self.launches :]
        return (sum(ended) + self.part * sum(running[:1])) / max(1, sum(self.blocks))


_RUN: ContextVar[RunProgress | None] = ContextVar("cutrace_run", default=None)


def run_progress() -> RunProgress:
    """Return what the engine updates: that of the body of `running`, else one that nobody reads."""
    return _RUN.get() or RunProgress()


@contextmanager
def running() -> Iterator[RunProgress]:
    """Yield the progress of the launches that run in the body."""
    ran = RunProgress()
    token = _RUN.set(ran)
    try:
        yield ran
    finally:
        _RUN.reset(token)
