"""A line on stderr for what takes over a second; nothing where stderr is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from ...lazy_dataclass import dataclass
from ..options.screen import is_quiet

PATIENCE = 1.0
"""Seconds before the first word, and between two."""
KNOWN = 0.02
"""The share from which on the time that is left can be foreseen."""


@dataclass(slots=True)
class Share:
    """How much of something is done, from 0 to 1, told by whoever does it.

    `seen` is what was done when last asked, and `since` the second in which it came to be so.
    """

    done: float = 0.0
    seen: float = 0.0
    since: float = 0.0

    def tell(self, done: float) -> None:
        """Note how much is done."""
        self.done = done

    def part(self, number: int, of: int) -> Callable[[float], None]:
        """Return a function that reports the progress of part `number` of several equal parts."""
        return lambda done: self.tell((number + done) / of)

    def text(self, seconds: float) -> str:
        """The share, and the time left at the pace at which it came about.

        >>> share = Share(0.25)
        >>> share.text(10), share.text(12)
        ('25 %, 30 s left', '25 %, 28 s left')
        """
        if self.done < KNOWN:
            return ""
        if self.seen != self.done:
            self.seen, self.since = self.done, seconds
        left = self.since / self.done - seconds
        return f"{100 * self.done:.0f} %, {max(left, 1):.0f} s left"


@contextmanager
def progress(what: str, how_far: Callable[[float], str] | None = None) -> Iterator[Share]:
    """While the body runs, tell how long it has been running, and `how_far` it is after so many
    seconds or what it tells the share that it gets; leave no line behind. What something else
    prints meanwhile is written over the line."""
    share = Share()
    if is_quiet() or not sys.stderr.isatty():
        yield share
        return
    done = Event()
    teller = Thread(target=_tell, args=(what, how_far or share.text, done), daemon=True)
    teller.start()
    try:
        yield share
    finally:
        done.set()
        teller.join()


def _tell(what: str, how_far: Callable[[float], str], done: Event) -> None:
    """Rewrite the line every second until done."""
    begin, seconds = monotonic(), 0.0
    while not done.wait(PATIENCE):
        seconds = monotonic() - begin
        more = f", {text}" if (text := how_far(seconds)) else ""
        print(f"\r\x1b[K{what}: {seconds:.0f} s{more}\r", end="", file=sys.stderr, flush=True)
    if seconds:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
