"""Counting what keeps state: all rows of a launch in the order in which they happen.

Rows are held until all blocks of a wave are read, then put in order and sent through the caches.
What goes there is asked of the stages in front once for each distinct row, and repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import lcm
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ....traces.schema import Space
from ..count.accesses import Track
from ..count.pool import Pool, join_flows, make_pool
from ..count.samples import locate
from ..count.tally import read_chunk, scope_of
from ..rows.arrays import Zones
from ..rows.numbering import number_rows
from ..rows.patterns import Shapes
from ..rows.sites import SPACES, Sites
from ..rows.texels import Samples, read_samples
from ..schedule.place import SCOPE_NAMES
from ..seam import Batch, Bools, Ints
from ..stages import Answers, Stages

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace

TAKEN = 1 << 15
"""Rows in order that are sent through the stages at a time."""
ASKED = 1 << 12
"""Distinct rows that the stages in front are asked about at a time."""
POOLED = 1 << 16
"""Distinct rows of a wave up to which what is passed on for them is kept for the whole wave."""
HELD = 1 << 21
"""Rows that are held at most: those of a wave with more are put in order so many at a time."""
NEVER = np.iinfo(np.int64).max
"""A block that no launch has."""
SAMPLED = -1
"""The pattern of a row of texels."""
CONST, LOCAL = 1 << 59, 1 << 55
"""Where constants begin in the memory that caches see, and local memory in bytes of a thread."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one launch as (n,) columns, those of accesses and of texels alike.

    `pattern` is SAMPLED for texels; then `base` is the row's number among all texel rows. Rows
    that are held are `narrow`: of as few bytes as there can be, HELD_AS.
    """

    block: Ints
    warp: Ints
    step: Ints
    site: Ints
    base: Ints
    pattern: Ints
    zone: Ints
    mixed: Bools

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.block)

    def take(self, which: Ints | Bools | slice) -> "Rows":
        """Return some of the rows."""
        return Rows(*(getattr(self, column.name)[which] for column in fields(self)))

    def narrow(self) -> "Rows":
        """Return a copy in few bytes."""
        return self._change(HELD_AS)

    def widen(self) -> "Rows":
        """Return the rows as numbers that can be calculated with."""
        return self._change((*[np.int64] * 7, np.bool_))

    def _change(self, types: Sequence[type[np.generic]]) -> "Rows":
        columns = (getattr(self, column.name) for column in fields(self))
        return Rows(*(c.astype(t) for c, t in zip(columns, types, strict=True)))


HELD_AS = (np.int64, np.uint16, np.uint32, np.int32, np.int64, np.int32, np.int32, np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """Accesses that differ in what stages without state make of them, and which each row is.

    `kind`, `pattern` and `base` are (d,). `number` (n,) is each row's among them, -1 for texels,
    and `shift` (n,) by how many bytes the row lies elsewhere.
    """

    kind: Ints
    pattern: Ints
    base: Ints
    number: Ints
    shift: Ints

    def __len__(self) -> int:
        """Return how many differ."""
        return len(self.kind)

    def of(self, rows: Ints) -> "Distinct":
        """Return the same ones for some of the rows."""
        return replace(self, number=self.number[rows], shift=self.shift[rows])


@dataclass(slots=True)
class Ordering:
    """One device's rows on their way: held, put in order, and sent through its stages."""

    track: Track
    sites: Sites
    shapes: Shapes
    _stages: Stages = field(init=False)
    _heard: Bools = field(init=False)
    _period: int = field(init=False)
    _ends: Ints = field(init=False)
    _held: list[Rows] = field(default_factory=list)
    _flows: dict[str, list[Batch]] = field(default_factory=dict)
    _samples: int = 0
    _many: int = 0
    _lowest: int = NEVER

    def __post_init__(self) -> None:
        """Set up the stages that keep state."""
        self._stages = Stages(self.track.lasting)
        self._ends = self.track.order.ends
        self._period = lcm(1, *(wire.period for wire in self.track.front))
        spaces = {space for wire in self.track.lasting for space in wire.spaces}
        self._heard = np.zeros(SPACES, np.bool_)
        self._heard[[space for space in Space if space.name.lower() in spaces]] = True

    def take(self, rows: Rows) -> None:
        """Hold rows of accesses to the spaces that any stage with state hears of."""
        heard = self._heard[rows.site % SPACES]
        if heard.any():
            self._hold(rows if heard.all() else rows.take(heard))

    def take_samples(self, samples: Samples, sites: Sites, zones: Zones) -> None:
        """Hold rows of texels, which go through the stages in front at once."""
        site, zone = locate(samples, sites, zones)
        front = Stages(tuple(w for w in self.track.front if "texture" in w.spaces))
        front.run(samples.batch, {}, listeners=self.track.lasting)
        for name, flow in front.passed.items():
            moved = replace(flow, row=flow.row + self._samples)
            self._flows.setdefault(name, []).append(moved)
        number = self._samples + np.arange(len(site))
        self._samples += len(site)
        alone, sampled = np.zeros(len(site), np.bool_), np.full(len(site), SAMPLED)
        whose = (samples.block, samples.warp, samples.step)
        self._hold(Rows(*whose, site, number, sampled, zone, alone))

    def _hold(self, rows: Rows) -> None:
        """Keep rows for when all of their waves are there."""
        self._held.append(rows.narrow())
        self._many += len(rows)
        self._lowest = min(self._lowest, int(rows.block.min()))

    def release(self, settled: int | None) -> None:
        """Count the waves of which no block comes any more: those before block `settled`."""
        ends = self._ends
        if self._many > HELD:
            settled = None
        done = len(ends) if settled is None else int(np.searchsorted(ends, settled, side="right"))
        if not self._many or not done or ends[done - 1] <= self._lowest:
            return
        rows = join_rows(self._held)
        self._many, self._lowest = 0, NEVER
        ready = self.track.order.wave[rows.block] < done
        if not ready.all():
            self._hold(rows.take(~ready))
            rows = rows.take(ready)
        self._count(rows)

    def _count(self, rows: Rows) -> None:
        """Send rows through the stages in the order in which they happen."""
        order = self.track.order.order(rows.block, rows.warp, rows.step)
        sampled = self._pool_samples()
        distinct = self._number(rows)
        pooled = self._pool(distinct) if len(distinct) <= POOLED else None
        for start in range(0, len(order), TAKEN):
            chosen = order[start : start + TAKEN]
            part = rows.take(chosen).widen()
            asked = self._number(part) if pooled is None else distinct.of(chosen)
            pools = self._pool(asked) if pooled is None else pooled
            moved = asked.shift + self._windows(part)
            self._send(part, _repeat(pools, sampled, part, asked.number, moved))

    def _number(self, rows: Rows) -> Distinct:
        """Find the distinct ones among rows: those of one kind, pattern and place in a period."""
        period = self._period
        is_asked = rows.pattern != SAMPLED
        asked = slice(None) if is_asked.all() else np.flatnonzero(is_asked)
        many = max(1, len(self.shapes))
        pair = self.sites.kind[rows.site[asked]] * many + rows.pattern[asked]
        pairs, at = number_rows(pair, int(pair.max(initial=-1)) + 1)
        del pair
        at *= period
        at += rows.base[asked] % period
        keys, found = number_rows(at, len(pairs) * period)
        at, phase = np.divmod(keys, period)
        base = phase + period * (-(-(1 << 32) // period))
        number, shift = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
        number[asked] = found
        shift[asked] = rows.base[asked] - base[found]
        return Distinct(*np.divmod(pairs[at], many), base, number, shift)

    def _pool(self, distinct: Distinct) -> Mapping[str, Pool]:
        """Ask the stages in front about distinct rows; return what each passes on."""
        passed: dict[str, list[Batch]] = {}
        for start in range(0, len(distinct), ASKED):
            part = slice(start, start + ASKED)
            asked = distinct.kind[part], distinct.base[part], distinct.pattern[part]
            front = Stages(self.track.front)
            batch = self.shapes.rebuild(self.track.kinds, *asked)
            front.run(batch, {}, listeners=self.track.lasting)
            for name, flow in front.passed.items():
                passed.setdefault(name, []).append(replace(flow, row=flow.row + start))
        flows = passed.items()
        return {name: make_pool(join_flows(parts), len(distinct)) for name, parts in flows}

    def _windows(self, rows: Rows) -> Ints:
        """Return where the window of each row's space begins, (n,)."""
        space = rows.site % SPACES
        order = self.track.order
        window = np.where(space == Space.CONST, CONST, 0)
        local = np.flatnonzero(space == Space.LOCAL)
        if len(local):
            seat = order.seat(rows.block[local], rows.warp[local])
            window[local] = LOCAL + seat * self.track.local_bytes
        return np.asarray(window, np.int64)

    def _pool_samples(self) -> Mapping[str, Pool]:
        """Return what the stages in front pass on for texels."""
        flows = self._flows.items()
        return {name: make_pool(join_flows(parts), self._samples) for name, parts in flows}

    def _send(self, rows: Rows, flows: Mapping[str, Batch]) -> None:
        """Send some rows through the stages that keep state, and enter what they say."""
        scope = scope_of(rows.block, self.track.placement).astype(np.int64)
        zones, scopes = int(rows.zone.max()) + 1, len(SCOPE_NAMES)
        keys = ((rows.site * zones + rows.zone) * scopes + scope) * 2 + rows.mixed
        groups, number = number_rows(keys, int(keys.max()) + 1)
        answers = self._stages.run(self._rebuild(rows), self._units(rows), flows, group=number)
        self._enter(groups // 2, zones, answers, False)
        several = np.flatnonzero(groups % 2)
        if len(several):
            some = {stage: sums[:, several] for stage, sums in answers.items()}
            self._enter(groups[several] // 2, zones, some, True)

    def _units(self, rows: Rows) -> Mapping[str, Ints]:
        """Return the unit that each row belongs to, (n,), for each scope that a stage has."""
        track, units = self.track, {"sm": self.track.order.sm[rows.block]}
        for scope in {wire.stage.scope for wire in track.lasting}:
            if scope == "cluster":
                units[scope] = track.placement.cluster(rows.block)
            elif scope.isdecimal():
                units[scope] = rows.block % track.device.chip.sms // int(scope)
        return units

    def _enter(self, groups: Ints, zones: int, answers: Answers, mixed: bool) -> None:
        """Enter sums of answers to rows of groups, (site * zones + zone) * scopes + scope."""
        rest, scope = np.divmod(groups, len(SCOPE_NAMES))
        site, zone = np.divmod(rest, zones)
        for wire in self.track.lasting:
            sums = answers[wire.stage.name].T
            self.track.ledger.add_sums(wire, site, zone, scope, sums, mixed)

    def _rebuild(self, rows: Rows) -> Batch:
        """Return the accesses as a trace has them, if any stage with state wants them so."""
        wanted = any(wire.direct for wire in self.track.lasting)
        known = np.flatnonzero(rows.pattern != SAMPLED) if wanted else np.zeros(0, np.int64)
        kind = self.sites.kind[rows.site[known]]
        made = self.shapes.rebuild(self.track.kinds, kind, rows.base[known], rows.pattern[known])
        return replace(made, row=known)


def count_ordered(
    trace: "LaunchTrace",
    tracks: Sequence[Track],
    sites: Sites,
    zones: Zones,
    lowest: Sequence[int],
    tell: Callable[[float], None],
) -> None:
    """Read all rows again for the devices with stages that keep state, and enter their counts.

    `lowest` is the first block of each batch of accesses that has rows; `tell` hears how much is
    done, from 0 to 1.
    """
    shapes = Shapes(trace.pattern_store())
    orderings = [Ordering(track, sites, shapes) for track in tracks if track.lasting]
    if not orderings:
        return
    for samples in read_samples(trace):
        for ordering in orderings:
            ordering.take_samples(samples, sites, zones)
    floors = np.minimum.accumulate([NEVER, *reversed(lowest)])[::-1]
    seen, many = 0, max(1, trace.count("accesses"))
    filled = (batch for batch in trace.access_batches() if batch.num_rows)
    for batch, settled in zip(filled, floors[1:].tolist(), strict=True):
        rows = _read_rows(batch, sites, shapes, zones)
        for ordering in orderings:
            ordering.take(rows)
            ordering.release(settled)
        seen += batch.num_rows
        tell(seen / many)
    for ordering in orderings:
        ordering.release(None)


def _read_rows(batch: pa.RecordBatch, sites: Sites, shapes: Shapes, zones: Zones) -> Rows:
    chunk = read_chunk(batch, sites, shapes, zones)
    warp, step = (batch[name].to_numpy().astype(np.int64) for name in ("warp", "step"))
    places = (chunk.site, chunk.base, chunk.pattern, chunk.zone, chunk.mixed)
    return Rows(chunk.block, warp, step, *places)


def join_rows(parts: list[Rows]) -> Rows:
    """Return rows of several parts one after another; the list is empty then, to save memory."""
    if len(parts) == 1:
        return parts.pop()
    columns = [[getattr(part, column.name) for part in parts] for column in fields(Rows)]
    parts.clear()
    return Rows(*(np.concatenate(columns.pop(0)) for _ in range(len(columns))))


def _repeat(
    pools: Mapping[str, Pool], sampled: Mapping[str, Pool], rows: Rows, number: Ints, shift: Ints
) -> Mapping[str, Batch]:
    """Return what the stages in front pass on for some rows."""
    flows: dict[str, list[Batch]] = {}
    of_access = np.flatnonzero(rows.pattern != SAMPLED)
    of_sample = np.flatnonzero(rows.pattern == SAMPLED)
    for name, pool in pools.items():
        made = pool.repeat(number[of_access], shift[of_access], of_access)
        flows.setdefault(name, []).append(made)
    for name, pool in sampled.items():
        made = pool.repeat(rows.base[of_sample], np.zeros_like(of_sample), of_sample)
        flows.setdefault(name, []).append(made)
    joined = {name: join_flows(parts) for name, parts in flows.items()}
    return {name: flow for name, flow in joined.items() if flow is not None}
