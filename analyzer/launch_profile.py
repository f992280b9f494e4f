"""One launch replayed and counted on one device: its counters, by line, array and instruction."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import fields, replace
from functools import cached_property
from typing import ClassVar

import polars as pl

from ..base.dataclass import dataclass
from ..base.errors import nearest
from ..base.html_table import render_table
from ..models.analyses.occupancy import Occupancy
from ..traces.schema import Launch
from .counting.bounds import Bound, verdict
from .counting.evaluate import Definitions, Raw, Value, by, totals, totals_of_each
from .counting.footprint import with_touched
from .counting.interval import Interval, intervals_by, total_intervals
from .counting.packed import Packing
from .counting.vocabulary import Capability, headings, today
from .text.launch_text import launch_text
from .text.number import number
from .time.estimate import Estimate
from .time.estimate_text import WaitingLine, waiting_lines

KEYS = {
    "line": ("file", "line", "text"),
    "array": ("array",),
    "instruction": ("pc", "file", "line", "ptx"),
    "stack": ("stack",),
}
"""The columns that name a row in each grouping."""


class Counters(dict[str, Value]):
    """Counter values by name, of every vocabulary; None where the device does not have one."""

    def __missing__(self, name: str) -> Value:
        """Answer a name of before with today's value, a misspelt one with the nearest ones."""
        if (now := today(name)) != name:
            return self[now]
        raise KeyError(f"no counter {name!r}{nearest(name, self)}")


@dataclass(frozen=True, repr=False)
class LaunchProfile(Packing):
    """One launch on one device.

    `counters` holds every vocabulary's names: the bare name, and `vocabulary.name` where an
    earlier vocabulary has the bare one (`instructions` is cutrace's, `cuda-profiler.instructions`
    the first profiler's). The frames `lines`, `arrays` and `instructions` have the same names as
    columns. `refusal` says why the device cannot run the launch, or is empty.

    `bounds` are the least times of the device's resources, the longest first; none where the device
    refuses the launch, or the trace has not all of it. Of a sample of blocks `bounds_between` has
    those that it tells, each twice: the lower end of where it lies, and the upper one.
    `estimate` is how long it takes, where latencies of the device's capability were measured;
    `estimate_between` the least and the most of a sample, whatever the caches hold.

    `warnings` are those of `remarks` without which no number should be read.

    `same` is an earlier launch that did the same, to the last address: its counters are this one's.

    `raw` is what the models counted, and `mixed`, with the same columns, the accesses over several
    arrays once more. `blocks` are those of the profiled `sm` and of its `cluster`; `occupancy` is
    what an SM holds at once. `footprint` reads the trace once more for what `arrays` says of
    distinct bytes.
    """

    packed: ClassVar[tuple[str, ...]] = ("mixed",)

    number: int
    launch: Launch
    device: str
    device_name: str
    capability: Capability
    raw: Raw
    mixed: pl.DataFrame
    blocks: Mapping[str, int]
    occupancy: Occupancy
    refusal: str = ""
    substitutions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    device_file: str = ""
    bounds: tuple[Bound, ...] = ()
    bounds_between: tuple[tuple[Bound, Bound], ...] = ()
    estimate: Estimate | None = None
    estimate_between: tuple[Estimate, Estimate] | None = None
    footprint: Callable[[], pl.DataFrame] | None = None
    same: "LaunchProfile | None" = None

    @property
    def origin(self) -> "LaunchProfile":
        """The first launch that did the same: itself, if none did before."""
        return self.same or self

    def repeated(self, number: int, launch: Launch) -> "LaunchProfile":
        """A later launch that did the same."""
        again = copy(self)
        vars(again).update(number=number, launch=launch, same=self.origin)
        return again

    @property
    def limited_by(self) -> str:
        """The resource that needs the longest; empty where nobody knows."""
        return self.bounds[0].resource if self.bounds else ""

    @property
    def verdict(self) -> str:
        """The limit of the launch in a sentence; empty if unknown."""
        return verdict(self.bounds)

    @cached_property
    def waiting_lines(self) -> tuple[WaitingLine, ...]:
        """The lines at which a warp waits, the longest first; none without an estimate."""
        return waiting_lines(self.raw.counts, self.estimate) if self.estimate else ()

    @cached_property
    def counters(self) -> Mapping[str, Value]:
        """The launch's totals."""
        if self.same:
            return self.same.counters
        if self.refusal:
            return Counters.fromkeys(self.definitions)
        return Counters(totals(self.raw, self.definitions))

    @cached_property
    def intervals(self) -> Mapping[str, Interval | None]:
        """Where the totals lie, 95 times in 100, if the launch was sampled; else empty.

        None for what is known without a trace, and where the sample does not say.
        """
        if self.refusal or not self.launch.kept.sample.blocks:
            return {}
        return total_intervals(self.raw, self.definitions, self.launch)

    @cached_property
    def lines(self) -> pl.DataFrame:
        """A row for each source line: `file`, `line`, `text` and the counters."""
        return self.same.lines if self.same else self.table("line")

    @cached_property
    def arrays(self) -> pl.DataFrame:
        """A row for each array: `array` and the counters of the accesses to it.

        An access over several arrays counts for the one of its lowest active lane, and once more
        in the row `mixed`.
        """
        return self.same.arrays if self.same else self.table("array")

    @cached_property
    def instructions(self) -> pl.DataFrame:
        """A row for each PTX instruction: `pc`, `file`, `line`, `ptx` and the counters."""
        return self.same.instructions if self.same else self.table("instruction")

    def table(self, grouping: str) -> pl.DataFrame:
        """The counters grouped by `line`, `array` or `instruction`; no rows if it cannot launch."""
        raw = replace(self.raw, counts=self._counts(grouping))
        return by(raw, self.definitions, KEYS[grouping])

    def _counts(self, grouping: str) -> pl.DataFrame:
        """The counts that are grouped."""
        if grouping != "array":
            return self.raw.counts
        counts = pl.concat([self.raw.counts, self.mixed]).filter(pl.col("array") != "")
        return with_touched(counts, self.footprint()) if self.footprint else counts

    def interval_tables(self, grouping: str) -> tuple[pl.DataFrame, pl.DataFrame] | None:
        """The lower and the upper ends of the cells of `table`, if the launch was sampled."""
        if self.refusal or not self.launch.kept.sample.blocks:
            return None
        raw = replace(self.raw, counts=self._counts(grouping))
        return intervals_by(raw, self.definitions, self.launch, KEYS[grouping])

    def __getstate__(self) -> dict[str, object]:
        """The state of a pickle: the fields, and the totals if they are known."""
        names = ("counters", "_mixed", *(each.name for each in fields(self)))
        return {name: vars(self)[name] for name in names if name in vars(self)}

    def __repr__(self) -> str:
        """The launch, the device, and what limits it; the counters are `counters`."""
        status = self.refusal or self.verdict or f"{self.device_name}"
        return f"<{launch_text(self.launch)} on {self.device}: {status}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the counters that are not 0, or why it cannot run."""
        caption = f"{launch_text(self.launch)} on {self.device_name}"
        if self.refusal:
            return render_table(caption, ("launch",), [(self.refusal,)], 1)
        rows = [
            (name, number(value, counter))
            for name, counter in self.definitions.items()
            if counter and (value := self.counters[name])
        ]
        return render_table(caption, ("counter", self.device), rows, len(rows))

    @cached_property
    def definitions(self) -> Definitions:
        """Every heading with its definition, None where the device has no such counter."""
        return headings(self.capability)


def count_totals(profiles: Iterable[LaunchProfile]) -> None:
    """Work out those `counters` that are not known of launches with replays of their own."""
    groups: dict[Capability, list[LaunchProfile]] = {}
    for profile in profiles:
        if not profile.same and not profile.refusal and "counters" not in vars(profile):
            groups.setdefault(profile.capability, []).append(profile)
    for some in groups.values():
        value_rows = totals_of_each([profile.raw for profile in some], some[0].definitions)
        for profile, values in zip(some, value_rows, strict=True):
            vars(profile)["counters"] = Counters(values)
