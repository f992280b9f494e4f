"""What caches of many sizes would miss, from one replay (`models/reuse.py`)."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike, environ

import polars as pl

from ..errors import CutraceError, nearest
from ..models.replay.device.device import Device, load_device
from ..models.replay.device.wiring import Stage
from ..models.replay.options import DEFAULT_DEVICE, ReplayOptions
from ..models.replay.replay import replay
from ..traces.reader import Trace, read_trace

SIZES = 12
"""Sizes that are asked about unless the user says which: each twice the one before."""
KEPT = ("line", "serves", "operators")
"""Keys of a cache that say what it looks up."""
STAGE = "reuse"


def miss_ratios(
    trace: Trace | str | PathLike[str],
    device: str = "",
    cache: str = "l1",
    sizes: Sequence[int] = (),
) -> pl.DataFrame:
    """Return what fully associative LRU caches in the place of a device's would miss of loads.

    `device` is one of `cutrace devices`; without it `$CUTRACE_DEVICE`, else h100. `cache` is a
    stage of it, `sizes` are in bytes; without them they are 12, up to four times its own. A row for
    each launch and size has the columns launch, kernel, bytes, accesses (requests cut at lines),
    misses, miss_ratio, and working_set: the bytes of all lines that each SM (of a cache of the
    whole device: that the device) reads.

    The stages in front of the cache are as the device has them. Raises `CutraceError` for a trace
    that cannot be read, and for a device, cache or size that there cannot be.
    """
    opened = trace if isinstance(trace, Trace) else read_trace(trace)
    chosen = load_device(device or environ.get("CUTRACE_DEVICE") or DEFAULT_DEVICE)
    stage = _listen(chosen, cache, sizes)
    listening = replace(chosen, stages=(*_before(chosen, stage), stage))
    rows = []
    for launch in opened.launches:
        (counted,) = replay(launch, [listening], ReplayOptions(device=chosen.key))
        for size in _sizes(stage):
            names = ("accesses", "cold", f"misses_{size}")
            accesses, cold, misses = (_total(counted.counts, name) for name in names)
            ratio = misses / accesses if accesses else None
            working = cold * _number(stage, "line")
            rows.append((launch.number, launch.launch.name, size, accesses, misses, ratio, working))
    columns = ("launch", "kernel", "bytes", "accesses", "misses", "miss_ratio", "working_set")
    return pl.DataFrame(rows, schema=list(columns), orient="row")


def _listen(device: Device, cache: str, sizes: Sequence[int]) -> Stage:
    """Return a stage that hears what a cache hears."""
    caches = {stage.name: stage for stage in device.stages if stage.model == "cache"}
    if cache not in caches:
        raise CutraceError(
            f"{device.file}: no cache {cache!r}{nearest(cache, caches)}; there are "
            f"{', '.join(caches) or 'none'}"
        )
    beside = caches[cache]
    line, own = _number(beside, "line"), _number(beside, "bytes")
    doubled = sorted({max(line, (4 * own >> step) // line * line) for step in range(SIZES)})
    keys = {key: beside.keys[key] for key in KEPT if key in beside.keys}
    keys["sizes"] = [*sizes] or doubled
    return replace(beside, name=STAGE, model="reuse", keys=keys, beside_shared=False, where=None)


def _before(device: Device, stage: Stage) -> tuple[Stage, ...]:
    """Return the stages of a device that rows go through on their way to a stage."""
    needed: set[str] = set()
    fresh = {*stage.sources}
    while fresh:
        needed |= fresh
        fresh = {name for s in device.stages if s.name in fresh for name in s.sources} - needed
    return tuple(s for s in device.stages if s.name in needed)


def _sizes(stage: Stage) -> Sequence[int]:
    sizes = stage.keys["sizes"]
    assert isinstance(sizes, list)
    return sizes


def _number(stage: Stage, key: str) -> int:
    value = stage.keys[key]
    assert isinstance(value, int)
    return value


def _total(counts: pl.DataFrame, name: str) -> int:
    """Add up a raw counter of the stage, of all spaces."""
    columns = [column for column in counts.columns if column.endswith(f"_{STAGE}_{name}")]
    return sum(int(counts[column].sum()) for column in columns)
