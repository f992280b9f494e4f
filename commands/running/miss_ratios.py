"""Misses of caches of every size, from one replay: as text, as frames and as curves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...analyzer.report.view import View
from ...analyzer.reuse.reuse import CacheReuse, measure, sentence, why_not
from ...analyzer.reuse.reuse_report import HEAD, head, reuse_document
from ...base.config import bytes_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.progress import report
from ...models.replay.device.device import load_devices
from ...models.replay.interface.options import ReplayOptions
from ...traces.reader import Trace
from ..options.answer import Answer

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.report.document import Document


@dataclass(frozen=True)
class MissRatios(Answer[CacheReuse]):
    """The caches of each launch on each device, each with its miss-ratio curve."""

    caches: tuple[CacheReuse, ...]

    @property
    def items(self) -> tuple[CacheReuse, ...]:
        """The caches."""
        return self.caches

    def __repr__(self) -> str:
        return "\n".join(map(sentence, self.caches)) or "no load reaches a cache"

    def document(self, view: View, by: str = "reuse") -> "Document":
        """Return the caches as a document, by `reuse` distance or by `set`."""
        return reuse_document(self.caches, by, view)

    def frame(self) -> "pl.DataFrame":
        """Return one row per launch, cache and size, in bytes.

        `misses` are the sectors that a cache of this size lacks, within `error` if lines were
        sampled; `reuses` have a reuse distance of at most this size and more than the size before;
        `working_set` is the bytes of all lines that any unit reads.
        """
        return super().frame()

    def histogram(self) -> "pl.DataFrame":
        """Return one row per reuse distance, in bytes of other lines used in between."""
        rows = [
            (*head(one), distance * one.line, sectors)
            for one in self.caches
            for distance, sectors in one.histogram.tolist()
        ]
        return _frame(rows, "bytes", "sectors")

    def working_sets(self) -> "pl.DataFrame":
        """Return one row per cache: the bytes of all lines that any unit reads, and the capacity
        that a unit needs to hit half, 90 % and all of its reuses.
        """
        rows = [
            (*head(one), one.working_set, *(one.room_for(part) for part in (0.5, 0.9, 1.0)))
            for one in self.caches
        ]
        return _frame(rows, "bytes", "room_50", "room_90", "room_100")

    def sets(self) -> "pl.DataFrame":
        """Return one row per set of the device's own cache, all units together.

        Of the requested sectors, `cold` were never present, `lost` were evicted before their reuse.
        """
        return self.document(View(), "set").frame()


def _frame(rows: Sequence[tuple[object, ...]], *columns: str) -> "pl.DataFrame":
    """Return rows of a launch, a kernel, a device, a cache, and numbers."""
    import polars as pl

    return pl.DataFrame(rows, {**HEAD, **dict.fromkeys(columns, int)}, orient="row")


def measure_each(
    trace: Trace,
    options: ReplayOptions,
    cache: str = "",
    sizes: Sequence[int | str] = (),
    sampled: int | None = None,
    sets: bool = False,
) -> MissRatios:
    """Return the reuse of each launch of a trace, on each device."""
    from ...analyzer.profile import first_alike

    devices = load_devices(options.devices, options.set)
    arguments = cache, [bytes_of(size, "size", 0) for size in sizes], sampled, sets
    by_launch: list[list[CacheReuse]] = []
    for launch, first in zip(trace.launches, first_alike(trace.launches), strict=True):
        report(len(by_launch) / len(trace.launches))
        if first < len(by_launch):
            same = [
                replace(one, number=launch.number, launch=launch.launch) for one in by_launch[first]
            ]
            by_launch.append(same)
        else:
            by_launch.append(
                [one for d in devices for one in measure(launch, d, options, *arguments)]
            )
    reuses = [one for each in by_launch for one in each]
    reasons = [why_not(one.launch, d, options) for one in trace.launches for d in devices]
    if not reuses and any(reasons):
        raise CutraceError(next(filter(None, reasons)))
    return MissRatios(tuple(reuses))
