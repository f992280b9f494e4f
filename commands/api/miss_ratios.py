"""`cutrace.miss_ratios`: misses of caches of every size, from one replay."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ...analyzer.profile import first_alike
from ...analyzer.report import render
from ...analyzer.report.view import View
from ...analyzer.reuse.reuse import CacheReuse, measure, sentence, why_not
from ...analyzer.reuse.reuse_report import reuse_document
from ...base.config import bytes_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.progress import report
from ...models.replay.device.device import load_devices
from ...models.replay.interface.options import ReplayOptions
from ...traces.reader import Trace
from .subject import Subject, opened, replayed

HEAD = {"launch": pl.Int64, "kernel": pl.String, "device": pl.String, "cache": pl.String}
POINTS = {
    **{"bytes": pl.Int64, "accesses": pl.Int64, "misses": pl.Int64, "error": pl.Int64},
    **{"miss_ratio": pl.Float64, "reuses": pl.Int64, "working_set": pl.Int64},
}


@dataclass(frozen=True)
class MissRatios(Sequence[CacheReuse]):
    """The caches of each launch on each device, each with its miss-ratio curve."""

    caches: tuple[CacheReuse, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.caches[index]

    def __len__(self) -> int:
        return len(self.caches)

    def __repr__(self) -> str:
        return "\n".join(map(sentence, self.caches)) or "no load reaches a cache"

    def __str__(self) -> str:
        return render(reuse_document(self.caches, "reuse", View()), "table").rstrip()

    def frame(self) -> pl.DataFrame:
        """Return one row per launch, cache and size, in bytes.

        `misses` are the sectors that a cache of this size lacks, within `error` if lines were
        sampled; `reuses` have a reuse distance of at most this size and more than the size before;
        `working_set` is the bytes of all lines that any unit reads.
        """
        rows = [
            (
                *(*_head(one), p.bytes, one.accesses, p.misses, p.error),
                *(one.ratio(p.misses), p.reuses, one.working_set),
            )
            for one in self.caches
            for p in one.points
        ]
        return pl.DataFrame(rows, {**HEAD, **POINTS}, orient="row")

    def histogram(self) -> pl.DataFrame:
        """Return one row per reuse distance, in bytes of other lines used in between."""
        rows = [
            (*_head(one), distance * one.line, sectors)
            for one in self.caches
            for distance, sectors in one.histogram.tolist()
        ]
        return pl.DataFrame(rows, {**HEAD, "bytes": pl.Int64, "sectors": pl.Int64}, orient="row")

    def working_sets(self) -> pl.DataFrame:
        """Return one row per cache: the bytes of all lines that any unit reads, and the capacity
        that a unit needs to hit half, 90 % and all of its reuses.
        """
        rows = [
            (*_head(one), one.working_set, *(one.room_for(part) for part in (0.5, 0.9, 1.0)))
            for one in self.caches
        ]
        columns = dict.fromkeys(("bytes", "room_50", "room_90", "room_100"), pl.Int64)
        return pl.DataFrame(rows, {**HEAD, **columns}, orient="row")

    def sets(self) -> pl.DataFrame:
        """Return one row per set of the device's own cache, all units together.

        Of the requested sectors, `cold` were never present, `lost` were evicted before their reuse.
        """
        rows = [
            (*_head(one), use.number, use.accesses, use.cold, use.lost)
            for one in self.caches
            for use in one.uses
        ]
        columns = dict.fromkeys(("set", "accesses", "cold", "lost"), pl.Int64)
        return pl.DataFrame(rows, {**HEAD, **columns}, orient="row")

    def _repr_html_(self) -> str:
        return render(reuse_document(self.caches, "reuse", View()), "html")


def _head(one: CacheReuse) -> tuple[object, ...]:
    return one.number, one.launch.name, one.device, one.cache


def miss_ratios(
    subject: Subject,
    device: str | Sequence[str] = (),
    cache: str = "",
    sizes: Sequence[int | str] = (),
    sampled: int | None = None,
    sets: bool = False,
    **replay: Any,
) -> MissRatios:
    """Return the load misses of exact LRU caches of every size, from one replay.

    `device` and the following are options of `analyze`. `cache` is a stage of the device, default:
    each of its caches; `sizes` are in bytes, or texts like `"64K"`, default: powers of two. One
    line in `sampled` is simulated; default: all lines, unless a launch has more than 8 million warp
    accesses. `sets` also counts by set of the device's cache. The stages in front of a cache are
    the device's own. Raises `CutraceError` for an impossible cache or size.
    """
    options = replayed({"device": device, **replay})
    return measure_each(opened(subject, options), options, cache, sizes, sampled, sets)


def measure_each(
    trace: Trace,
    options: ReplayOptions,
    cache: str = "",
    sizes: Sequence[int | str] = (),
    sampled: int | None = None,
    sets: bool = False,
) -> MissRatios:
    """Return the reuse of each launch of a trace, on each device."""
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
