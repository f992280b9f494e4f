"""Reuse of loads at the caches of a device, measured by one replay (`models/reuse.py`)."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...models.analyses.occupancy import refuse_launch
from ...models.replay.device.device import Device
from ...models.replay.device.wiring import Stage
from ...models.replay.interface.model import Ints
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.replay import fit_launch, has_all_before
from ...models.replay.request_stream import replay_taps
from ...models.reuse import Reuse
from ...traces.reader import LaunchTrace
from ...traces.schema import Launch
from ..text.svg import count_bytes

LOOKUP_KEYS = ("line", "sector", "serves", "operators", "store", "local_store", "fetch")
"""Keys of a cache stage that define its lookups."""
LARGE, ONE_IN = 1 << 23, 64
"""Accesses from which one line in ONE_IN is sampled by default."""
SURE = 2.0
"""Standard errors of an error bound: the exact value is within it 95 times in 100."""


@dataclass(frozen=True, slots=True)
class Point:
    """A cache size in bytes, its sector misses with the sampling `error`, and its new hits.

    `reuses` counts the hits that this size adds to those of the size before.
    """

    bytes: int
    misses: int
    error: int
    reuses: int


@dataclass(frozen=True, slots=True)
class SetUse:
    """A cache set: sectors that loads request, the cold misses, and the sectors that were evicted
    before reuse; summed over all units.
    """

    number: int
    accesses: int
    cold: int
    lost: int


@dataclass(frozen=True, eq=False)
class CacheReuse:
    """The reuse of a launch's loads at a cache, for caches of any size: fully associative, exact
    LRU.

    `own` is the capacity of the device's cache for this launch, in `sets` sets. `accesses` counts
    the sectors that loads request, of lines of `line` bytes; `cold` counts the first requests of a
    sector at its unit. `working_set` is the bytes of all lines that units use. `histogram` (n, 2)
    has the reuse distances that occur, as distinct other lines used in between, and the number of
    sectors at each. Of a sample, one line in `sampled` is counted. `uses` and `conflicts` are empty
    unless requested; `conflicts` are the misses of the device's sets beyond those of a fully
    associative cache of equal capacity.
    """

    number: int
    launch: Launch
    device: str
    cache: str
    line: int
    own: int
    sets: int
    sampled: int
    accesses: int
    cold: int
    working_set: int
    histogram: Ints
    points: tuple[Point, ...]
    uses: tuple[SetUse, ...] = ()
    conflicts: int = 0

    def room_for(self, part: float) -> int:
        """Return the least bytes that yield the part `part` of all possible hits, 0 to 1."""
        if not len(self.histogram):
            return self.line
        hits = self.histogram[:, 1].cumsum()
        at = int(np.searchsorted(hits, part * hits[-1]))
        return (int(self.histogram[at, 0]) + self.sampled) * self.line

    def ratio(self, misses: int) -> float | None:
        """Return the misses per requested sector."""
        return misses / self.accesses if self.accesses else None


def measure(
    trace: LaunchTrace,
    device: Device,
    options: ReplayOptions,
    cache: str = "",
    sizes: Sequence[int] = (),
    sampled: int | None = None,
    by_set: bool = False,
) -> Iterator[CacheReuse]:
    """Yield the reuse at each cache of a device, or at the named one.

    `sizes` are in bytes; the default doubles them until no larger cache would have more hits. One
    line in `sampled` is counted, 1 for all; None chooses by the size of the trace. `by_set` maps
    the sets, too. Nothing is yielded where `why_not` has a reason. Raises `CutraceError` for an
    impossible cache or size.
    """
    launch = trace.launch
    caches = choose_caches(device, cache, sizes)
    if why_not(launch, device, options):
        return
    rows = trace.count("accesses") + trace.count("texels")
    one_in = 1 if by_set else sampled or (ONE_IN if rows > LARGE else 1)
    carveout = fit_launch(device, launch, trace.instructions(), options).carveout
    listeners = []
    for stage in caches:
        own = stage.without(carveout)
        ears = [_ear(own, sizes, one_in, 1)]
        ears += [_ear(own, (), 1, sets_of(own))] if by_set else []
        listeners.append((own, ears))
    every = [ear for _, ears in listeners for ear in ears]
    deque(replay_taps(trace, device, options, every), maxlen=0)
    for own, ears in listeners:
        (_, whole), *mapped = ears
        if whole.requests:
            yield _result(trace, device, own, sizes, whole, *(reuse for _, reuse in mapped))


def why_not(launch: Launch, device: Device, options: ReplayOptions) -> str:
    """Return why the reuse of a launch on a device is unknown; empty if it is known."""
    if not options.caches:
        return "--no-caches (caches=False) leaves out the reuse of lines"
    if not has_all_before(launch):
        return f"launch of {launch.name}: not all of its accesses were recorded"
    return "" if options.as_if else refuse_launch(device, launch)


def choose_caches(device: Device, cache: str, sizes: Sequence[int] = ()) -> list[Stage]:
    """Return the caches of a device, or the named one.

    Raises `CutraceError` if there is none, or if sizes are given for several caches.
    """
    caches = {stage.name: stage for stage in device.stages if stage.model == "cache"}
    if not caches or (cache and cache not in caches):
        raise CutraceError(
            f"{device.file}: no cache {cache!r}{nearest(cache, caches)}; there are "
            f"{', '.join(caches) or 'none'}"
        )
    if sizes and not cache and len(caches) > 1:
        raise CutraceError(f"sizes: of which cache? One of {', '.join(caches)}")
    return [caches[cache]] if cache else [*caches.values()]


def _ear(own: Stage, sizes: Sequence[int], sampled: int, sets: int) -> tuple[Stage, Reuse]:
    """Return a stage with the input of a cache, and the reuse model of that stage."""
    keys = {key: own.keys[key] for key in LOOKUP_KEYS if key in own.keys}
    capacity = number(own, "bytes")
    unit = sets * number(own, "line")
    keys |= {"sizes": [*sizes] or [max(capacity // unit, 1) * unit], "sampled": sampled}
    keys["sets"] = sets
    name = f"{own.name}_reuse_in_{sets}"
    stage = replace(own, name=name, model="reuse", keys=keys, beside_shared=False, where=None)
    return stage, Reuse(**keys)  # type: ignore[arg-type]


def sets_of(own: Stage) -> int:
    """Return the number of sets of a cache."""
    if "sets" in own.keys:
        return number(own, "sets")
    return number(own, "bytes") // number(own, "line") // number(own, "ways")


def number(stage: Stage, key: str) -> int:
    """Return the value of an integer key."""
    value = stage.keys[key]
    assert isinstance(value, int)
    return value


def _result(
    trace: LaunchTrace,
    device: Device,
    own: Stage,
    sizes: Sequence[int],
    whole: Reuse,
    mapped: Reuse | None = None,
) -> CacheReuse:
    capacity, line = number(own, "bytes"), whole.line
    counts = whole.histogram[:, 1:].sum(axis=0)
    far = np.flatnonzero(counts)
    uses = tuple(_uses(mapped)) if mapped else ()
    full = int(whole.misses(capacity // line).sum())
    return CacheReuse(
        *(trace.number, trace.launch, device.key, own.name),
        *(line, capacity, sets_of(own), whole.sampled, whole.requests),
        int(whole.histogram[:, 0].sum()) * whole.sampled,
        whole.lines * line,
        np.stack([far, counts[far]], axis=1) * whole.sampled,
        tuple(_points(whole, sizes or _doubled(whole, capacity))),
        uses,
        sum(use.cold + use.lost for use in uses) - full if uses else 0,
    )


def _doubled(reuse: Reuse, own: int) -> list[int]:
    """Return sizes that double from one line on up to the last useful one, and the device's."""
    lines = reuse.histogram.shape[1] * reuse.sampled
    every = [reuse.line << step for step in range(lines.bit_length() + 1)]
    cold = reuse.misses(1 << 60).sum()
    last = next(n for n, size in enumerate(every) if reuse.misses(size // reuse.line).sum() == cold)
    return sorted({*every[: last + 1], own // reuse.line * reuse.line})


def _points(reuse: Reuse, sizes: Sequence[int]) -> Iterator[Point]:
    before = reuse.requests
    for size in sizes:
        shares = reuse.misses(size // reuse.line)
        misses = int(shares.sum())
        yield Point(size, misses, error_of(reuse, size // reuse.line), before - misses)
        before = misses


def error_of(reuse: Reuse, lines: int) -> int:
    """Return the error of a sample's misses.

    It has two parts: the choice of sampled lines, and the sampled reuse distances, which are
    accurate to a standard error of a binomial distribution.
    """
    if reuse.sampled == 1:
        return 0
    shares = reuse.misses(lines)
    by_chance = SURE * float(np.sqrt(len(shares)) * shares.std(ddof=1))
    apart = int(np.ceil(SURE * np.sqrt(lines * reuse.sampled)))
    near, far = (int(reuse.misses(max(0, at)).sum()) for at in (lines - apart, lines + apart))
    misses = int(shares.sum())
    return round(by_chance + max(near - misses, misses - far))


def _uses(mapped: Reuse) -> Iterator[SetUse]:
    (size,) = mapped.sizes
    misses = mapped.misses(size // mapped.line // mapped.sets)
    cold = mapped.histogram[:, 0]
    each = mapped.histogram.sum(axis=1), cold, misses - cold
    for place, counts in enumerate(zip(*(column.tolist() for column in each), strict=True)):
        yield SetUse(place, *counts)


def sentence(one: CacheReuse) -> str:
    """Return a cache's requests, and the capacities that would hit on parts of them."""
    ninety, most = (count_bytes(one.room_for(part)) for part in (0.9, 1.0))
    again = one.accesses - one.cold
    part = "" if ninety == most else f"90 % of the rest, {most} "
    capacity_text = (
        f"; {ninety} of room find {part}all{' of the rest' * (not part)}" if again else ""
    )
    return (
        f"{one.device} {one.cache}: loads ask for {one.accesses:,} sectors,"
        f" {percent(one.ratio(one.cold))} of them for the first time{capacity_text}"
    )


def percent(ratio: float | None) -> str:
    """Format a ratio with three digits or more; empty if there is none."""
    return "" if ratio is None else f"{100 * ratio:.1f}".removesuffix(".0") + " %"
