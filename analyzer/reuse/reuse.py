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

LOOKUP_KEYS = ("line", "sector", "serves", "operators", "store", "local_store", "fetch")
"""Keys of a cache that say what it looks up."""
LARGE, ONE_IN = 1 << 23, 64
"""Accesses of warps from which on, unless the user says, one line in ONE_IN is looked at."""
SURE = 2.0
"""Standard errors that an error has: 95 times in 100 the exact value is within it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A size in bytes: how many sectors caches of it miss, and would have to be `error` more or
    fewer for all lines; and how many have their line as far away as this size, not the one before.
    """

    bytes: int
    misses: int
    error: int
    reuses: int


@dataclass(frozen=True, slots=True)
class SetUse:
    """A set: the sectors that loads ask of it, those of them that it never had, and those that it
    had to give up before; over all units.
    """

    number: int
    accesses: int
    cold: int
    lost: int


@dataclass(frozen=True, eq=False)
class CacheReuse:
    """The reuse of a launch's loads at a cache, for caches of any size, in one set and exactly LRU.

    `own` is the size that the device's has for this launch, in `sets` sets; `accesses` are the
    sectors that loads ask for, of lines of `line` bytes, `cold` those that their unit never had
    before, `working_set` the bytes of all lines that units use. `histogram` (n, 2) has distances
    that occur, in other lines used between, and how many sectors have each. Of a sample one line in
    `sampled` was looked at. `uses` and `conflicts`, how many sectors the device's sets miss that
    as much room in one would have, are empty unless asked for.
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
        """Return the least bytes that find so much of all that could be found, 0 to 1."""
        if not len(self.histogram):
            return self.line
        hits = self.histogram[:, 1].cumsum()
        at = int(np.searchsorted(hits, part * hits[-1]))
        return (int(self.histogram[at, 0]) + self.sampled) * self.line

    def ratio(self, misses: int) -> float | None:
        """A part of the sectors asked for."""
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
    """Yield the reuse at each cache of a device, or at the one of that name.

    `sizes` are in bytes; without them they double, until no larger cache would find more. One line
    in `sampled` is looked at, 1 for all; None leaves it to how large the trace is. `by_set` maps
    the sets, too. Nothing is yielded where `why_not` has a reason. Raises `CutraceError` for a
    cache or size that there cannot be.
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
    """Return why nothing can be said of a launch on a device; empty if something can."""
    if not options.caches:
        return "--no-caches (caches=False) leaves out the reuse of lines"
    if not has_all_before(launch):
        return f"launch of {launch.name}: not all of its accesses were recorded"
    return "" if options.as_if else refuse_launch(device, launch)


def choose_caches(device: Device, cache: str, sizes: Sequence[int] = ()) -> list[Stage]:
    """Return the caches of a device, or the one so called. `CutraceError` if there is none, and
    where sizes would be those of several.
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
    """Return a stage that hears what a cache hears, and the model there."""
    keys = {key: own.keys[key] for key in LOOKUP_KEYS if key in own.keys}
    capacity = number(own, "bytes")
    unit = sets * number(own, "line")
    keys |= {"sizes": [*sizes] or [max(capacity // unit, 1) * unit], "sampled": sampled}
    keys["sets"] = sets
    name = f"{own.name}_reuse_in_{sets}"
    stage = replace(own, name=name, model="reuse", keys=keys, beside_shared=False, where=None)
    return stage, Reuse(**keys)  # type: ignore[arg-type]


def sets_of(own: Stage) -> int:
    """Return how many sets a cache has."""
    if "sets" in own.keys:
        return number(own, "sets")
    return number(own, "bytes") // number(own, "line") // number(own, "ways")


def number(stage: Stage, key: str) -> int:
    """Return a key that is an integer."""
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
    """Sizes that double from a line on, the device's own among them, as far as they matter."""
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
    """Return how far off the misses of a sample may be: by which lines it has, and by how far away
    it takes them to be, which is right to a standard error of a binomial distribution.
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
