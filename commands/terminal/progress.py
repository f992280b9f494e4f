"""A line on stderr for what takes over a second; nothing where stderr is no terminal."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from ...base.dataclass import dataclass
from .screen import is_quiet

if TYPE_CHECKING:
    from ...traces.reader import Trace

UPDATE_SECONDS = 1.0
"""Seconds before the first word, and between two."""
PREDICTABLE_SHARE = 0.02
"""The share from which on the time that is left can be foreseen."""
REPLAY, ADVICE, PAGE = 4.0, 1.0, 1.0
"""How long stages take, in the mean: a replay on a device, advice, and a page beyond its advice."""
ADVICE_PASSES, PAGE_PASSES = 1.5, 1.5
"""Passes over the accesses of a trace that advice makes on a device, and a page beyond its advice,
those included that need not be made as what they find is kept."""
PAGE_ROWS = 1 << 25
"""Rows that are read in the time in which a page is drawn."""


@dataclass(slots=True)
class ProgressReporter:
    """How much of something is done, told by whoever does it, in stages as long as `sizes` say.

    `fraction` is the part of the present `stage`, from 0 to 1, last told `at` a moment; it `began`
    at another, after a stage that took `pace` seconds for each unit of size. A stage that reads
    `rows` of traces need not tell: what it `read` is heard. Where nobody is shown it, rows are not
    counted.
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
        """Note how much is done of this stage."""
        if fraction != self.fraction:
            self.fraction, self.at = fraction, monotonic()

    def part(self, number: int, of: int) -> Callable[[float], None]:
        """Return a function that reports the progress of part `number` of several equal parts."""
        return lambda fraction: self.update((number + fraction) / of)

    def begin(self) -> None:
        """Begin the next stage."""
        now = monotonic()
        self.pace = (now - self.began) / self.sizes[self.stage]
        self.stage, self.fraction, self.began, self.rows = self.stage + 1, 0.0, now, 0

    def expect(self, trace: "Trace", passes: float, more: int = 0) -> None:
        """This stage makes so many passes over a trace, those of its launches that share tables
        once, and does as much as reads so many `more` rows."""
        rows, apart = 0, {launch.place: launch for launch in trace.launches if self.is_shown}
        for launch in apart.values():
            rows += launch.count("accesses")
            launch.forget()  # there may be thousands
        self.rows, self.read = self.rows + int(passes * rows) + more, 0

    def watch_launches(self, trace: "Trace") -> "Trace":
        """The trace, of which every pass over its accesses is heard."""
        heard = (replace(launch, on_rows_read=self._count_rows) for launch in trace.launches)
        return replace(trace, launches=tuple(heard))

    def _count_rows(self, rows: int) -> None:
        """Note rows that were read, or less than 0 that need not be."""
        if not self.rows:
            return
        if rows < 0:
            self.rows = max(1, self.rows + rows)
        else:
            self.read += rows
        self.update(min(1.0, self.read / self.rows))

    def text(self) -> str:
        """The share, and the time left at the pace at which it came about."""
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
    """While the body runs, tell how long it has been running, and `how_far` it is or what it tells
    the share that it gets, with stages of these sizes; leave no line behind. What something else
    prints meanwhile is written over the line."""
    share = ProgressReporter(sizes)
    if is_quiet() or not sys.stderr.isatty():
        share.is_shown = False
        yield share
        return
    event = Event()
    teller = Thread(target=_draw_line, args=(what, how_far or share.text, event), daemon=True)
    teller.start()
    try:
        yield share
    finally:
        event.set()
        teller.join()


def _draw_line(what: str, how_far: Callable[[], str], event: Event) -> None:
    """Rewrite the line every second until done."""
    begin, seconds = monotonic(), 0.0
    while not event.wait(UPDATE_SECONDS):
        seconds = monotonic() - begin
        more = f", {text}" if (text := how_far()) else ""
        line = fitted(what, f": {seconds:.0f} s{more}", _columns())
        print(f"\r\x1b[K{line}\r", end="", file=sys.stderr, flush=True)
    if seconds:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def fitted(what: str, suffix: str, columns: int) -> str:
    """A line that no terminal breaks, of which only one row could be rewritten.

    >>> fitted("recording product.cu", ": 3 s, 50 %", 28)
    'recording pro...: 3 s, 50 %'
    """
    width = max(0, columns - 1 - len(suffix))
    what = what if len(what) <= width else what[: max(0, width - 3)] + "..."
    return f"{what}{suffix}"[: columns - 1]


def _columns() -> int:
    """Columns of the terminal that stderr is."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):  # none, in tests and in consoles that only look like one
        return 80
