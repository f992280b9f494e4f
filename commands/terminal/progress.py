"""A progress line on stderr for work of over a second; nothing if stderr is no terminal."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from ...base.progress import listening
from .screen import is_quiet

if TYPE_CHECKING:
    from ...traces.reader import Trace

UPDATE_SECONDS = 1.0
"""Seconds before the first line, and between two updates."""
PREDICTABLE_SHARE = 0.02
"""Fraction from which on the remaining time is estimated."""
REPLAYING, ADVICE, PAGE = 4.0, 1.0, 1.0
"""Mean relative duration of stages: a replay on a device, advice, and a page after its advice."""
ADVICE_PASSES, PAGE_PASSES = 1.5, 1.5
"""Passes over a trace's accesses that advice makes on a device, and a page after its advice,
including passes that cached results save.
"""
PAGE_ROWS = 1 << 25
"""Rows read in the time that it takes to render a page."""


@dataclass(slots=True)
class ProgressReporter:
    """Progress through stages with durations proportional to `sizes`, reported by the worker.

    `fraction` is the completed part of the present `stage`, from 0 to 1, last reported `at` a time;
    the stage `began` at another, after one that took `pace` seconds per unit of size. A stage that
    reads `rows` of traces need not report: its reads, `read`, are counted. Rows are not counted if
    nothing is displayed.
    """

    sizes: Sequence[float] = (1.0,)
    stage: int = 0
    fraction: float = 0.0
    began: float = field(default_factory=lambda: monotonic())
    at: float = 0.0
    pace: float = 0.0
    rows: int = 0
    read: int = 0
    is_shown: bool = True

    def update(self, fraction: float) -> None:
        """Set the completed part of this stage."""
        if fraction != self.fraction:
            self.fraction, self.at = fraction, monotonic()

    def begin(self) -> None:
        """Begin the next stage."""
        now = monotonic()
        self.pace = (now - self.began) / self.sizes[self.stage]
        self.stage, self.fraction, self.began, self.rows = self.stage + 1, 0.0, now, 0

    def expect(self, trace: "Trace", passes: float, more: int = 0) -> None:
        """Announce the work of this stage: `passes` over a trace, and as much as reading `more`
        rows.

        Launches that share tables count once.
        """
        rows, apart = 0, {launch.place: launch for launch in trace.launches if self.is_shown}
        for launch in apart.values():
            rows += launch.count("accesses")
            launch.forget()  # free it: there may be thousands
        self.rows, self.read = self.rows + int(passes * rows) + more, 0

    def count_rows(self, rows: int) -> None:
        """Add rows that were read; a negative number cancels rows that need not be read."""
        if not self.rows:
            return
        # A cached result shrinks the total instead of advancing the count, so that the pace stays
        # that of rows which were really read.
        if rows < 0:
            self.rows = max(1, self.rows + rows)
        else:
            self.read += rows
        self.update(min(1.0, self.read / self.rows))

    def text(self) -> str:
        """Return the completed share, and the remaining time at the present pace."""
        size, before, whole = self.sizes[self.stage], sum(self.sizes[: self.stage]), sum(self.sizes)
        fraction, at, pace = before + size * self.fraction, self.began, self.pace
        if self.fraction >= PREDICTABLE_SHARE:
            at, pace = self.at, (self.at - self.began) / (size * self.fraction)
        if fraction < PREDICTABLE_SHARE * whole or not pace:
            return ""
        seconds = pace * (whole - fraction) - (monotonic() - at)
        return f"{100 * fraction / whole:.0f} %, {max(seconds, 1):.0f} s left"


@contextmanager
def progress(
    what: str, how_far: Callable[[], str] | None = None, sizes: Sequence[float] = (1.0,)
) -> Iterator[ProgressReporter]:
    """Show the elapsed time while the body runs, and remove the line at its end.

    The line also has `how_far`, or the share that the body reports through the context, with stages
    of these sizes. Other output overwrites the line.
    """
    share = ProgressReporter(sizes)
    if is_quiet() or not sys.stderr.isatty():
        share.is_shown = False
        yield share
        return
    event = Event()
    teller = Thread(target=_draw_line, args=(what, how_far or share.text, event), daemon=True)
    teller.start()
    try:
        with listening(share.update, share.count_rows):
            yield share
    finally:
        event.set()
        teller.join()


def _draw_line(what: str, how_far: Callable[[], str], event: Event) -> None:
    """Redraw the line every second until done."""
    begin, seconds = monotonic(), 0.0
    while not event.wait(UPDATE_SECONDS):
        seconds = monotonic() - begin
        more = f", {text}" if (text := how_far()) else ""
        line = fitted(what, f": {seconds:.0f} s{more}", _columns())
        print(f"\r\x1b[K{line}\r", end="", file=sys.stderr, flush=True)
    if seconds:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def fitted(what: str, suffix: str, columns: int) -> str:
    """Shorten a line so that the terminal does not wrap it: only one row can be redrawn.

    >>> fitted("recording product.cu", ": 3 s, 50 %", 28)
    'recording pro...: 3 s, 50 %'
    """
    width = max(0, columns - 1 - len(suffix))
    what = what if len(what) <= width else what[: max(0, width - 3)] + "..."
    return f"{what}{suffix}"[: columns - 1]


def _columns() -> int:
    """Return the width of the terminal on stderr."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):  # no terminal, in tests and in consoles that imitate one
        return 80
