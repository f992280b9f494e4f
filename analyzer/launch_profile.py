"""The profile of one launch on one device: counters in total and by line, array and instruction.

The most expensive lines are those with most wavefronts or texture requests if shared memory or the
texture units limit the launch; otherwise those whose global and local accesses move most bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import fields, replace
from functools import cached_property, reduce
from typing import ClassVar

import polars as pl

from ..base.dataclass import dataclass
from ..base.errors import nearest
from ..base.html_table import render_table
from ..models.analyses.occupancy import Occupancy
from ..models.replay.device.measured import WITHIN
from ..traces.schema import Launch
from .counting.bounds import Bound, verdict
from .counting.evaluate import Definitions, Packing, Raw, Value, by, totals, totals_of_each
from .counting.footprint import with_touched
from .counting.interval import Interval, intervals_by, total_intervals
from .counting.vocabulary import Capability, headings, today
from .text.launch_text import launch_text
from .text.number import number
from .time.estimate import Estimate
from .time.estimate_text import WaitingLine, waiting_lines

KEYS = {
    "line": ("file", "line", "text"),
    "array": ("array",),
    "instruction": ("pc", "file", "line", "ptx"),
    "opcode": ("opcode",),
    "stack": ("stack",),
}
"""Key columns of a row in each grouping."""
_OPCODE = r"^(?:/\*\w+\*/ )?(?:@\S+ )?([^\s.;]+)"
"""The opcode in the text of an instruction: behind its address in machine code, and its guard."""


class Counters(dict[str, Value]):
    """Counter values by name, of every vocabulary; None if the device does not have the counter."""

    def __missing__(self, name: str) -> Value:
        """Resolve a former name to its current counter; a misspelt one raises with the nearest
        names.
        """
        if (now := today(name)) != name:
            return self[now]
        raise KeyError(f"no counter {name!r}{nearest(name, self)}")


@dataclass(frozen=True, repr=False)
class LaunchProfile(Packing):
    """One launch on one device.

    `counters` holds the names of every vocabulary: the bare name, and `vocabulary.name` if an
    earlier vocabulary has the same bare name (`instructions` is cutrace's,
    `cuda-profiler.instructions` the first profiler's). The frames `lines`, `arrays` and
    `instructions` have the same names as columns. `refusal` is the reason why the device cannot run
    the launch, or empty.

    `bounds` are the least times of the device's resources, longest first; empty if the device
    refuses the launch, or the trace is incomplete. For a sample of blocks `bounds_between` holds
    pairs, the lower and upper end of each bound that can be inferred. `estimate` is the estimated
    time, if latencies of the device's capability were measured; `estimate_between` is the least and
    the greatest time of a sample, whatever the caches contain. `within` are the ends of measured
    over estimated times on this device. `unknown` is why there is no estimate; empty if none.

    `warnings` are the subset of `remarks` without which no number should be read.

    `same` is an earlier launch with identical accesses, to the last address; its counters are
    shared.

    `raw` holds the counts of the models; `mixed`, with the same columns, repeats the accesses that
    span several arrays. `blocks` are those of the profiled `sm` and of its `cluster`; `occupancy`
    is what an SM holds at once. `footprint` replays the trace once more to count the distinct bytes
    of `arrays`.
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
    within: tuple[float, float] = WITHIN
    unknown: str = ""
    footprint: Callable[[], pl.DataFrame] | None = None
    same: "LaunchProfile | None" = None

    @property
    def origin(self) -> "LaunchProfile":
        """Return the first identical launch: this one if there is none earlier."""
        return self.same or self

    def repeated(self, number: int, launch: Launch) -> "LaunchProfile":
        """Return the profile of a later identical launch."""
        again = copy(self)
        vars(again).update(number=number, launch=launch, same=self.origin)
        return again

    @property
    def limited_by(self) -> str:
        """Return the resource with the longest bound; empty if unknown."""
        return self.bounds[0].resource if self.bounds else ""

    @property
    def verdict(self) -> str:
        """Return the limit of the launch as a sentence; empty if unknown."""
        return verdict(self.bounds)

    @cached_property
    def waiting_lines(self) -> tuple[WaitingLine, ...]:
        """Return the lines at which warps wait, longest first; empty without an estimate."""
        return waiting_lines(self.raw.counts, self.estimate) if self.estimate else ()

    @cached_property
    def counters(self) -> Mapping[str, Value]:
        """Return the launch's totals."""
        if self.same:
            return self.same.counters
        if self.refusal:
            return Counters.fromkeys(self.definitions)
        return Counters(totals(self.raw, self.definitions))

    @cached_property
    def intervals(self) -> Mapping[str, Interval | None]:
        """Return the 95 % confidence intervals of the totals of a sampled launch; else empty.

        A value is None if the counter is known without a trace, or if the sample does not determine
        it.
        """
        if self.refusal or not self.launch.kept.sample.blocks:
            return {}
        return total_intervals(self.raw, self.definitions, self.launch)

    @cached_property
    def lines(self) -> pl.DataFrame:
        """Return a row per source line: `file`, `line`, `text` and the counters."""
        return self.same.lines if self.same else self.table("line")

    @cached_property
    def arrays(self) -> pl.DataFrame:
        """Return a row per array: `array` and the counters of its accesses.

        An access that spans several arrays counts for the array of its lowest active lane, and once
        more in the row `mixed`.
        """
        return self.same.arrays if self.same else self.table("array")

    @cached_property
    def instructions(self) -> pl.DataFrame:
        """Return a row per PTX instruction: `pc`, `file`, `line`, `ptx` and the counters."""
        return self.same.instructions if self.same else self.table("instruction")

    def table(self, grouping: str) -> pl.DataFrame:
        """Return the counters grouped by one of KEYS; no rows if refused."""
        raw = replace(self.raw, counts=self._counts(grouping))
        return by(raw, self.definitions, KEYS[grouping])

    def _counts(self, grouping: str) -> pl.DataFrame:
        """Return the raw counts of a grouping."""
        if grouping == "opcode":
            return self.raw.counts.with_columns(opcode=pl.col("ptx").str.extract(_OPCODE))
        if grouping != "array":
            return self.raw.counts
        counts = pl.concat([self.raw.counts, self.mixed]).filter(pl.col("array") != "")
        return with_touched(counts, self.footprint()) if self.footprint else counts

    def interval_tables(self, grouping: str) -> tuple[pl.DataFrame, pl.DataFrame] | None:
        """Return the lower and upper ends of the cells of `table`, if the launch was sampled."""
        if self.refusal or not self.launch.kept.sample.blocks:
            return None
        raw = replace(self.raw, counts=self._counts(grouping))
        return intervals_by(raw, self.definitions, self.launch, KEYS[grouping])

    def __getstate__(self) -> dict[str, object]:
        """Return the pickled state: the fields, and the totals if computed."""
        names = ("counters", "_mixed", *(each.name for each in fields(self)))
        return {name: vars(self)[name] for name in names if name in vars(self)}

    def __repr__(self) -> str:
        """Return the launch, the device and the limit; `counters` has the values."""
        status = self.refusal or self.verdict or f"{self.device_name}"
        return f"<{launch_text(self.launch)} on {self.device}: {status}>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the nonzero counters, or the reason of a refusal."""
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
        """Return the definition of every column, None if the device has no such counter."""
        return headings(self.capability)


def count_totals(profiles: Iterable[LaunchProfile]) -> None:
    """Compute the missing `counters` of launches that were replayed themselves."""
    groups: dict[Capability, list[LaunchProfile]] = {}
    for profile in profiles:
        if not profile.same and not profile.refusal and "counters" not in vars(profile):
            groups.setdefault(profile.capability, []).append(profile)
    for some in groups.values():
        value_rows = totals_of_each([profile.raw for profile in some], some[0].definitions)
        for profile, values in zip(some, value_rows, strict=True):
            vars(profile)["counters"] = Counters(values)


MOVED = (
    *(f"global_{access}_bytes_transferred" for access in ("load", "store", "atomic")),
    *(f"local_{access}_bytes_transferred" for access in ("load", "store")),
    *("bulk_load_bytes", "bulk_store_bytes"),
)
OF_LIMIT = {
    "shared memory": ("wavefronts of shared memory", "shared_wavefronts"),
    "texture units": ("texture requests", "texture_requests"),
}
"""Limiting resource to the name of a line's cost, and its counter."""


@dataclass(frozen=True, slots=True)
class Costliest:
    """A source line, its text, and its share of the launch's total cost, 0 to 1.

    `what` names the cost: as in OF_LIMIT, else `bytes moved`, or `instructions` where nothing is
    moved.
    """

    file: str
    line: int
    text: str
    share: float
    what: str


def costliest(lines: pl.DataFrame, limited_by: str = "") -> Costliest | None:
    """Return the most expensive row of a launch's lines; None if no line is known or has a cost."""
    return next(iter(costliest_lines(lines, limited_by, 1)), None)


def costliest_lines(lines: pl.DataFrame, limited_by: str, most: int) -> list[Costliest]:
    """Return at most `most` rows of a launch's lines, most expensive first.

    Of lines with equal cost the first in the file comes first.
    """
    source_lines = lines.filter(pl.col("line") > 0)
    moved = reduce(pl.Expr.__add__, (pl.col(name).fill_null(0) for name in MOVED))
    costs = [("bytes moved", moved), ("instructions", pl.col("instructions"))]
    if limited_by in OF_LIMIT:
        what, counter = OF_LIMIT[limited_by]
        costs.insert(0, (what, pl.col(counter)))
    for what, cost in costs:
        total = lines.select(cost.sum()).item()
        if total and source_lines.height:
            rows = source_lines.with_columns(cost=cost).sort(
                "cost", descending=True, maintain_order=True
            )
            tops = [top for top in rows.head(most).iter_rows(named=True) if top["cost"]]
            if tops:
                return [
                    Costliest(t["file"], t["line"], t["text"].strip(), t["cost"] / total, what)
                    for t in tops
                ]
    return []
