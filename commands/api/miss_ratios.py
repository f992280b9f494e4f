"""`cutrace.miss_ratios`: what caches of every size would miss, from one replay."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ...analyzer.html.reuse_svg import draw_reuse
from ...analyzer.profile import first_alike
from ...analyzer.reuse.reuse import CacheReuse, measure, why_not
from ...analyzer.reuse.reuse_text import percent, render, sentence
from ...base.config import bytes_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.html_table import render_table
from ...models.replay.device.device import load_devices
from ...models.replay.interface.options import ReplayOptions
from ...traces.reader import Trace
from .occupancy import STYLE
from .subject import Subject, opened, replayed

HEAD = {"launch": pl.Int64, "kernel": pl.String, "device": pl.String, "cache": pl.String}
POINTS = {
    **{"bytes": pl.Int64, "accesses": pl.Int64, "misses": pl.Int64, "error": pl.Int64},
    **{"miss_ratio": pl.Float64, "reuses": pl.Int64, "working_set": pl.Int64},
}


@dataclass(frozen=True)
class MissRatios(Sequence[CacheReuse]):
    """The caches of each launch on each device, each with its curve."""

    caches: tuple[CacheReuse, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.caches[index]

    def __len__(self) -> int:
        return len(self.caches)

    def __repr__(self) -> str:
        return "\n".join(map(sentence, self.caches)) or "no load reaches a cache"

    def __str__(self) -> str:
        return render(self.caches, "reuse").rstrip()

    def frame(self) -> pl.DataFrame:
        """A row for each launch, cache and size, in bytes.

        `misses` are sectors that a cache of this size does not have, give or take `error` where
        lines were sampled; `reuses` have their line as far away as this size, and not as the one
        before; `working_set` are the bytes of all lines that any unit reads.
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
        """A row for each distance that occurs, in bytes of other lines used between."""
        rows = [
            (*_head(one), distance * one.line, sectors)
            for one in self.caches
            for distance, sectors in one.histogram.tolist()
        ]
        return pl.DataFrame(rows, {**HEAD, "bytes": pl.Int64, "sectors": pl.Int64}, orient="row")

    def working_sets(self) -> pl.DataFrame:
        """A row for each cache: the bytes of all lines that any unit reads, and how much room a
        unit needs to find half, 90 % and all of what it reads again.
        """
        rows = [
            (*_head(one), one.working_set, *(one.room_for(part) for part in (0.5, 0.9, 1.0)))
            for one in self.caches
        ]
        columns = dict.fromkeys(("bytes", "room_50", "room_90", "room_100"), pl.Int64)
        return pl.DataFrame(rows, {**HEAD, **columns}, orient="row")

    def sets(self) -> pl.DataFrame:
        """A row for each set of the device's own cache, all units together.

        Of the sectors asked for, `cold` were never there, `lost` had to go before they were used.
        """
        rows = [
            (*_head(one), use.number, use.accesses, use.cold, use.lost)
            for one in self.caches
            for use in one.uses
        ]
        columns = dict.fromkeys(("set", "accesses", "cold", "lost"), pl.Int64)
        return pl.DataFrame(rows, {**HEAD, **columns}, orient="row")

    def _repr_html_(self) -> str:
        return "".join([*self._parts(), f"<style>{STYLE}</style>" if self.caches else ""])

    def _parts(self) -> Iterator[str]:
        for one in self.caches:
            rows = [
                (f"{p.bytes:,}", f"{p.reuses:,}", f"{p.misses:,}", percent(one.ratio(p.misses)))
                for p in one.points
            ]
            head = ("bytes", "reused within", "missed", "miss ratio")
            yield render_table(sentence(one), head, rows, len(rows)) + draw_reuse([one])


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
    """What caches of every size, exactly LRU, would miss of loads, from one replay.

    `device` and what follows are options of `analyze`. `cache` is a stage of the device, without it
    each of its caches; `sizes` are in bytes, or say `"64K"`; without them they double. One line in
    `sampled` is looked at; without it all are, unless a launch has more than 8 million accesses of
    warps. `sets` counts by set of the device's cache, too. The stages in front of a cache are as
    the device has them. Raises `CutraceError` for a cache or size that there cannot be.
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
    """The reuse in each launch of a trace, on each device."""
    devices = load_devices(options.devices, options.set)
    arguments = cache, [bytes_of(size, "size", 0) for size in sizes], sampled, sets
    by_launch: list[list[CacheReuse]] = []
    for launch, first in zip(trace.launches, first_alike(trace.launches), strict=True):
        options.tell(len(by_launch) / len(trace.launches))
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
