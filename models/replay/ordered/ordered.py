"""Counting what keeps state: all rows of a launch in the order in which they happen.

Rows are held until all blocks of a wave are read, then put in order and sent through the caches.
What goes there is asked of the stages in front once for each distinct row, and repeated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ....lazy_dataclass import dataclass
from ....traces.schema import Space
from ..compiled import compile_if_worth
from ..rows.arrays import Zones
from ..rows.patterns import Shapes
from ..rows.reach import Named, Reaches
from ..rows.sites import SPACES, Sites
from ..rows.texels import Samples, read_samples
from ..seam import Batch, Bools, Ints
from ..stages import Answers, Flow, Stages, split_first
from ..tally import counting
from ..tally.accesses import Track
from ..tally.pool import Pool, join_flows, make_pool
from ..tally.samples import locate
from .distinct import Chosen, DistinctRows, flows_of
from .held import Held
from .line import Line, assembly_line, read_ahead
from .units import Units, pack_units

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace

TAKEN, REQUESTS = 1 << 17, 1 << 18
"""Rows in order that are sent through the stages at a time, and about how many requests."""
AT_RANDOM, FRESH = 1 << 13, 4
"""Rows at a time at first, and where one in FRESH is unlike all before: such have many requests."""
HELD = 1 << 21
"""Rows that are held at most: those of a wave with more are put in order so many at a time."""
READ = 1 << 18
"""Rows that are read at a time, at most."""
NEVER = np.iinfo(np.int64).max
"""A block that no launch has."""
CONST, LOCAL = 1 << 59, 1 << 55
"""Where constants begin in the memory that caches see, and local memory in bytes of a thread."""


@dataclass(slots=True)
class Ordering:
    """One device's `rows` on their way: held, put in order, and sent through its stages."""

    track: Track
    sites: Sites
    shapes: Shapes
    zones: Zones
    rows: int
    line: Line | None = None
    _held: Held = field(init=False)
    _distinct: DistinctRows = field(init=False)
    _stages: tuple[Stages, Stages] = field(init=False)
    _ends: Ints = field(init=False)
    _units: Units = field(init=False)
    _wanted: bool = field(init=False)
    _flows: dict[str, list[Batch]] = field(default_factory=dict)
    _sums: dict[str, Ints] = field(default_factory=dict)
    _samples: int = 0
    _taken: int = field(default_factory=lambda: min(TAKEN, AT_RANDOM))

    def __post_init__(self) -> None:
        """Set up the stages that keep state."""
        track = self.track
        first, behind = split_first(track.lasting)
        self._stages = Stages(first), Stages(behind)
        self._ends = track.order.ends
        self._wanted = any(wire.direct for wire in track.lasting)
        spaces = {space for wire in track.lasting for space in wire.spaces}
        heard = np.zeros(SPACES, np.bool_)
        heard[[space for space in Space if space.name.lower() in spaces]] = True
        room = min(self.rows, HELD + READ)
        self._held = Held(track, self.sites, self.zones, heard, len(self.shapes), room)
        self._distinct = DistinctRows(track, self.shapes, max(TAKEN, AT_RANDOM))
        self._units = pack_units(track)

    def take(self, batch: pa.RecordBatch, named: Named, reaches: Reaches) -> None:
        """Hold rows of accesses to the spaces that any stage with state hears of."""
        self._held.take(batch, named, reaches)

    def take_samples(self, samples: Samples) -> None:
        """Hold rows of texels, which go through the stages in front at once."""
        site, zone = locate(samples, self.sites, self.zones)
        front = Stages(tuple(w for w in self.track.front if "texture" in w.spaces))
        front.run(samples.batch, {}, listeners=self.track.lasting)
        for name, flow in front.passed.items():
            moved = replace(flow, row=flow.row + self._samples)
            self._flows.setdefault(name, []).append(moved)
        number = self._samples + np.arange(len(site))
        self._samples += len(site)
        self._held.take_samples((samples.block, samples.warp, samples.step), site, zone, number)

    def release(self, settled: int | None) -> None:
        """Count the waves of which no block comes any more: those before block `settled`."""
        ends, held = self._ends, self._held
        if held.many > HELD:
            settled = None
        done = len(ends) if settled is None else int(np.searchsorted(ends, settled, side="right"))
        if not held.many or held.lowest >= done:
            return
        sampled, windows = self._pool_samples(), self._windows()
        for order in held.order(done):
            self._count(order, sampled, windows)
        held.drop(done)

    def _count(
        self, order: Ints, sampled: Mapping[str, Pool], windows: tuple[Ints, Ints, Bools]
    ) -> None:
        """Have rows in order sent, some at a time."""
        start = 0
        while start < len(order):
            rows = order[start : start + self._taken]
            start += len(rows)
            held = self._held.columns(), self._held.bits
            chosen = self._distinct.choose(rows, *held, self._units.words, windows)
            is_random = chosen.fresh * FRESH > len(rows)
            most = max(AT_RANDOM, REQUESTS // max(1, self._distinct.width))
            self._taken = AT_RANDOM if is_random else min(TAKEN, most, 2 * self._taken)
            flows = flows_of(self._distinct.pools, sampled, chosen)
            batch = self._rebuild(rows, chosen)
            if self.line is None or self._wanted:
                self._send(batch, chosen, flows)
            else:
                size = sum(len(pool.kind) for pool in self._distinct.pools.values())
                self.line.submit(size, self._send, batch, chosen, flows)

    def close(self) -> None:
        """Count what is held, and enter what all stages have said."""
        self.release(None)
        if self.line is not None:
            self.line.finish()
        site, zone, scope, mixed = self._held.groups.parts()
        for wire in self.track.lasting if self._sums else ():
            sums = self._sums[wire.stage.name].T
            sums = np.pad(sums, ((0, len(site) - len(sums)), (0, 0)))
            self.track.ledger.add_sums(wire, site, zone, scope, sums, False)
            if mixed.any():
                some = site[mixed], zone[mixed], scope[mixed], sums[mixed]
                self.track.ledger.add_sums(wire, *some, True)

    def whose(self) -> tuple[Ints, Ints]:
        """Return the site and the zone of each group that a batch's `group` numbers."""
        site, zone, _, _ = self._held.groups.parts()
        return site, zone

    def _windows(self) -> tuple[Ints, Ints, Bools]:
        """Return for each group its kind, where the window of its space begins, whether local."""
        site, *_ = self._held.groups.parts()
        space = site % SPACES
        begins = np.where(space == Space.CONST, CONST, 0)
        begins[space == Space.LOCAL] = LOCAL
        return self.sites.kind[site], begins.astype(np.int64), space == Space.LOCAL

    def _pool_samples(self) -> Mapping[str, Pool]:
        """Return what the stages in front pass on for texels."""
        flows = self._flows.items()
        return {name: make_pool(join_flows(parts), self._samples) for name, parts in flows}

    def _send(self, batch: Batch, chosen: Chosen, flows: Mapping[str, Flow]) -> None:
        """Send some rows through the stages that keep state, and add up what they say; those that
        others feed do their work beside these. `batch` are rows that a stage wants as a trace has
        them.
        """
        units = self._units.split(chosen.units)
        first, behind = self._stages
        group = chosen.rows["group"]
        self._add_up(first.run(batch, units, flows, behind.wires, group))
        told = batch, units, {**flows, **first.passed}, (), group

        def send_on() -> None:
            self._add_up(behind.run(*told))
            self._distinct.forget(chosen)

        line = None if self.line is None or self._wanted else self.line.behind
        if line is None:
            send_on()
        else:
            line.submit(sum(map(len, first.passed.values())), send_on)

    def _add_up(self, answers: Answers) -> None:
        """Add up what stages say of rows."""
        for name, sums in answers.items():
            before = self._sums.setdefault(name, np.zeros((len(sums), 0), np.int64))
            if (more := sums.shape[1] - before.shape[1]) > 0:
                before = self._sums[name] = np.pad(before, ((0, 0), (0, more)))
            before[:, : sums.shape[1]] += sums

    def _rebuild(self, rows: Ints, chosen: Chosen) -> Batch:
        """Return the accesses as a trace has them, if any stage with state wants them so."""
        known = (
            np.flatnonzero(chosen.rows["number"] >= 0) if self._wanted else np.zeros(0, np.int64)
        )
        base, pattern, group = (c[rows[known]] for c in self._held.columns()[1:4])
        base, pattern = base.astype(np.int64), pattern.astype(np.int64)
        kind = self._windows()[0][group]
        made = self.shapes.rebuild(self.track.kinds, kind, base, pattern)
        return replace(made, row=known)


def count_ordered(
    trace: "LaunchTrace",
    tracks: Sequence[Track],
    sites: Sites,
    zones: Zones,
    take: Callable[[pa.RecordBatch], None],
    tell: Callable[[float], None],
) -> None:
    """Read all rows for the devices with stages that keep state, and enter their counts.

    `take` is handed each batch of accesses too; `tell` hears how much is done, from 0 to 1.
    """
    shapes = Shapes(trace.pattern_store())
    reaches = Reaches(shapes)
    rows = trace.count("accesses") + trace.count("texels")
    with assembly_line(rows) as line:
        orderings = [Ordering(t, sites, shapes, zones, rows, line) for t in tracks if t.lasting]
        for done in read_in_order(trace, orderings, reaches, take):
            tell(done)


def read_in_order(
    trace: "LaunchTrace",
    orderings: Sequence[Ordering],
    reaches: Reaches,
    take: Callable[[pa.RecordBatch], None] = lambda _: None,
) -> Iterator[float]:
    """Have the rows of a launch sent in order; yield how much is done, from 0 to 1.

    `take` is handed each batch of accesses before.
    """
    lowest = [low for low, high in trace.block_ranges.tolist() if low <= high]
    for samples in read_samples(trace):
        for ordering in orderings:
            ordering.take_samples(samples)
    floors = np.minimum.accumulate([NEVER, *reversed(lowest)])[::-1]
    seen, many = 0, max(1, trace.count("accesses"))
    with read_ahead(_taken(trace, take), many) as batches:
        for batch, settled in zip(batches, floors[1:].tolist(), strict=True):
            named = reaches.name(compile_if_worth(counting, 0), batch["pattern"].to_numpy())
            for ordering in orderings:
                ordering.take(batch, named, reaches)
                ordering.release(settled)
            seen += batch.num_rows
            if seen < many:
                yield seen / many
    for ordering in orderings:
        ordering.close()
    yield 1.0


def _taken(
    trace: "LaunchTrace", take: Callable[[pa.RecordBatch], None]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of accesses, each after it was taken."""
    for batch in trace.access_batches():
        if batch.num_rows:
            take(batch)
            yield batch
