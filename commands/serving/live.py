"""A live report: the last good result, and the error of the present source, if it has one.

One thread records and replays; request threads read the page and wait for the next version. After
an error the last good result stays, with the error above it.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from threading import Condition, Event
from time import monotonic, strftime
from typing import TYPE_CHECKING

from ...errors import message_of
from ...lazy_dataclass import dataclass
from ...models.replay.options import ReplayOptions
from ..options.command_line import typed
from ..options.quote import quote
from ..options.recording import SOURCES, Recording, trace_of
from .asked import asked, fields
from .watch import Stamp, stamp

if TYPE_CHECKING:
    from ...analyzer.html.value import Comparison, Report
    from ...analyzer.profile import Profile
    from ...traces.reader import Trace

MANIFEST = "manifest.json"


@dataclass
class Live:
    """A source or a trace with the options of its report."""

    source: Path
    recording: Recording
    options: ReplayOptions
    number: int = 0
    page: str = ""
    ended: Event = field(default_factory=Event)
    _changed: Condition = field(default_factory=Condition)
    _asked: Event = field(default_factory=Event)
    _form: Mapping[str, str] | None = None
    _stamp: Stamp = ()
    _names: tuple[str, ...] = ()
    _trace: "Trace | None" = None
    _kept: ExitStack = field(default_factory=ExitStack)
    _report: "Report | None" = None
    _profile: "Profile | None" = None

    def ask(self, form: Mapping[str, str]) -> None:
        """Count with other options, as soon as the present count is done."""
        self._form = form
        self._asked.set()

    def wait(self, since: int, seconds: float) -> int:
        """The number of the shown result: at once if it is not `since`, else when it changes."""
        with self._changed:
            self._changed.wait_for(lambda: self.number != since or self.ended.is_set(), seconds)
            return self.number

    def follow(self, pause: float) -> None:
        """Count whenever a file has changed or somebody asks, until it is ended."""
        try:
            while not self.ended.is_set():
                self.look()
                self._asked.wait(pause)
        finally:
            self.end()
            self._kept.close()

    def end(self) -> None:
        """Wake all who wait."""
        self.ended.set()
        self._asked.set()
        with self._changed:
            self._changed.notify_all()

    def look(self) -> bool:
        """Count if there is a reason to; say whether there was. The page shows what went wrong."""
        seen = stamp(self._watched())
        is_new, is_asked = seen != self._stamp, self._asked.is_set()
        self._asked.clear()
        if not (is_new or is_asked):
            return False
        begin = monotonic()
        try:
            if is_asked and self._form is not None:
                self.options = asked(self._form, self.options)
            if is_new or self._trace is None:
                self._record()
            changes = self._count()
            error = ""
        except (Exception, SystemExit) as problem:
            changes, error = (), message_of(problem)
        known = {entry[0]: entry for entry in seen}  # what was saved meanwhile is new next time
        self._stamp = tuple(known.get(entry[0], entry) for entry in stamp(self._watched()))
        try:
            self._show(error, changes, monotonic() - begin)
        except (Exception, SystemExit) as problem:  # the last result cannot be shown
            self._report = self._profile = None
            self._show(error or message_of(problem), (), monotonic() - begin)
        return True

    def _watched(self) -> list[Path]:
        """The source, or the trace's manifest, and the files that its lines come from."""
        if self.source.suffix not in SOURCES:
            return [self.source / MANIFEST]
        beside = (self.source.parent / name for name in self._names)
        return [self.source, *(path for path in beside if path.is_file())]

    def _record(self) -> None:
        """Record the source; the trace before goes when the new one is there."""
        from ...traces.reader import read_trace

        with ExitStack() as stack:
            path = stack.enter_context(trace_of(self.source, self.recording, self.options))
            self._trace = read_trace(path)
            self._names = tuple(self._trace.manifest.sources)
            before, self._kept = self._kept, stack.pop_all()
        before.close()

    def _count(self) -> "tuple[Comparison, ...]":
        """Replay, gather the report, and return what differs from the one before."""
        from ...analyzer.html.gather import Subject
        from ...analyzer.html.page import gather
        from ...analyzer.profile import count_supposed
        from ...models.replay.whatif.suppose import suppose

        assert self._trace is not None
        trace = suppose(self._trace, self.options.pad, self.options.align)
        profile = count_supposed(trace, self.options)
        again = f"cutrace report {quote(self.source)}{typed(self.recording)}{typed(self.options)}"
        self._report = gather([Subject(self.source.name, trace, profile)], self.options, again)
        before, self._profile = self._profile, profile
        return differences(before, profile) if before else ()

    def _show(self, error: str, changes: "tuple[Comparison, ...]", seconds: float) -> None:
        """Make the page, and tell all who wait."""
        from ...analyzer.html.page import fill
        from ...analyzer.html.value import Report, Served

        number = self.number + 1
        served = Served(
            str(self.source),
            number,
            strftime("%H:%M:%S"),
            seconds,
            error,
            changes,
            fields(self.options),
        )
        page = fill(self._report or Report(self.source.name, (), (), (), (), ""), served)
        with self._changed:
            self.number, self.page = number, page
            self._changed.notify_all()


def differences(before: "Profile", now: "Profile") -> "tuple[Comparison, ...]":
    """What two results differ in, a part for each launch and device; nothing where their devices
    are not the same.
    """
    from ...analyzer.comparison.comparison import compare_profiles
    from ...analyzer.html.figures import compare_table

    if before.devices != now.devices or not (before.launches and now.launches):
        return ()
    compared = compare_profiles({"before": before, "now": now})
    return tuple(part for table in compared.tables if (part := compare_table(compared, table)))
