"""A line on stderr for what takes over a second; nothing where stderr is no terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

PATIENCE = 1.0
"""Seconds before the first word, and between two."""


@contextmanager
def progress(what: str, how_far: Callable[[], str] | None = None) -> Iterator[None]:
    """While the body runs, tell how long it has been running, and `how_far` it is; leave no line
    behind. What something else prints meanwhile is written over the line."""
    if not sys.stderr.isatty():
        yield
        return
    done = Event()
    teller = Thread(target=_tell, args=(what, how_far, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what: str, how_far: Callable[[], str] | None, done: Event) -> None:
    """Rewrite the line every second until done."""
    seconds = 0
    while not done.wait(PATIENCE):
        seconds += 1
        more = f", {how_far()}" if how_far else ""
        print(f"\r\x1b[K{what}: {seconds} s{more}\r", end="", file=sys.stderr, flush=True)
    if seconds:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
