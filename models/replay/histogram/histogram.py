"""Access histogram: the distinct rows of a launch with their frequencies, for all devices at once.

The counts of a stateless model depend only on the kind of the instruction, the pattern, and the
base modulo a period. A regular kernel has a handful of such combinations, however many rows. So
rows are numbered by distinct row and counted, and a model counts each distinct row once.
"""

from collections.abc import Sequence
from dataclasses import field
from types import ModuleType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop import loops_of
from ....traces.column import signed
from ..interface.model import Batch, Bools, Ints, Kind, join_batches, one_lane
from ..rows.patterns import Named, Reaches, Shapes
from ..rows.sites import Sites, Zones
from ..schedule.place import Placement
from . import counting
from .hash_table import NONE, Table, new_table

READ = ("block", "pc", "space", "base", "pattern")
"""The columns of ACCESSES on which order-independent counts depend."""
SLICE = 1 << 16
"""Rows that are numbered at a time: half of a typical batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Distinct rows: site, pattern, `phase` (base modulo the period), zone, mixed, each (n,);
    `times` (devices, n, scopes) is the frequency of each per scope.
    """

    site: Ints
    pattern: Ints
    phase: Ints
    zone: Ints
    mixed: Bools
    times: Ints

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.site)


@dataclass(slots=True)
class AccessHistogram:
    """Finds the distinct rows of batches of ACCESSES, at most SLICE rows at a time.

    Its tables, and the offset ranges of patterns, are kept from one batch to the next.
    """

    sites: Sites
    shapes: Shapes
    zones: Zones
    period: int
    placements: Sequence[Placement]
    _table: Table = field(default_factory=lambda: new_table(SLICE), init=False)
    _runs: Ints = field(default_factory=lambda: np.empty((3, SLICE), np.int64), init=False)
    _reaches: Reaches = field(init=False)

    def __post_init__(self) -> None:
        """Begin without patterns."""
        self._reaches = Reaches(self.shapes)

    def count(self, batch: pa.RecordBatch) -> Bins:
        """Find the distinct rows of a batch.

        Raises `CutraceError` where a row is in a space that its instruction cannot reach.
        """
        loops = loops_of(counting, batch.num_rows)
        named = self._reaches.name(loops, signed(batch, "pattern"))
        columns = {name: signed(batch, name) for name in ("pc", "space", "base", "block")}
        rows = counting.AccessRows(pattern=named.pattern, **columns)
        facts = look_up_in(self.sites, self.zones, self._reaches, named)
        table, runs = self._table, counting.Runs(*self._runs)
        table = table._replace(slots=table.slots[: 2 << (batch.num_rows - 1).bit_length()])
        table.slots.fill(NONE)
        table.size.keys = 0
        count = loops.number_rows(rows, facts, self.period, table, runs)
        if count < 0:
            self.sites.refuse(rows.pc[-1 - count], rows.space[-1 - count])
        many = table.size.keys
        runs = counting.Runs(*self._runs[:, :count])
        times = [_count(loops, runs, many, placement) for placement in self.placements]
        place, mixed = np.divmod(table.first[:many], 2)
        site, zone = np.divmod(place, len(facts.zone_end))
        shape, phase = np.divmod(table.second[:many], self.period)
        pattern = self._reaches.patterns[shape]
        return Bins(site, pattern, phase, zone, mixed.astype(np.bool_), np.stack(times))


def look_up_in(sites: Sites, zones: Zones, reaches: Reaches, named: Named) -> counting.Facts:
    """Return the tables in which rows with named patterns are looked up."""
    ends = np.append(zones.cuts, counting.FAR)
    return counting.Facts(sites.kind, sites.width, named.first, named.shape, *reaches.ends, ends)


def _count(loops: ModuleType, runs: counting.Runs, many: int, placement: Placement) -> Ints:
    """Return (many, scopes): the frequency of each number per scope."""
    number, block, length = runs
    first, last = int(block.min()), int(block.max())
    if placement.sampling is not None or last - first > length.sum():
        every = np.repeat(number, length), many, np.repeat(block, length)
        return count_scopes(*every, placement)
    times = np.zeros((many, len(placement.names)), np.int64)
    loops.count_scopes(runs, first, placement.scope(np.arange(first, last + 1)), times)
    return times


def count_scopes(number: Ints, size: int, block: Ints, placement: Placement) -> Ints:
    """Return (size, scopes): the frequency of each number per scope.

    Weights are summed in float64: exact up to 2**53.
    """
    scopes = len(placement.names)
    place = number * scopes + scope_of(block, placement)
    totals = np.bincount(place, placement.weight(block), size * scopes)
    return totals.astype(np.int64, copy=False).reshape(size, scopes)


def scope_of(block: Ints, placement: Placement) -> NDArray[np.uint8]:
    """Return the scope of each row; where blocks are dense, each block is placed only once."""
    first, last = int(block.min()), int(block.max())
    if placement.sampling is not None or last - first > 4 * len(block):
        return placement.scope(block)
    return placement.scope(np.arange(first, last + 1))[block - first]


def join(parts: Sequence[Bins]) -> Bins:
    """Concatenate the distinct rows of several chunks."""
    names = ("site", "pattern", "phase", "zone", "mixed")
    columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
    return Bins(**columns, times=np.concatenate([p.times for p in parts], axis=1))


LOCAL_STRIDE = 32
"""The stride of local memory: a warp moves so many bytes per byte of a thread, as words are
interleaved.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Requests of one lane: input row r has those from `first[r]` to `first[r + 1]`, with `kind`
    and `address`, (requests,).
    """

    kinds: tuple[Kind, ...]
    kind: Ints
    address: Ints
    first: Ints

    def repeat(self, number: Ints, shift: Ints, row: Ints) -> Batch:
        """Return the requests of the rows `number`, (n,), moved by `shift` bytes, as rows `row`."""
        many = int((self.first[number + 1] - self.first[number]).sum())
        requests = counting.Expanded(*np.empty((3, many), np.int64))
        loops_of(counting, many).repeat(self.columns(), number, shift, row, requests)
        return one_lane(self.kinds, requests.kind, requests.address, requests.row)

    def columns(self) -> counting.Pooled:
        """Return the requests as loops take them."""
        moved = [LOCAL_STRIDE if kind.space == "local" else 1 for kind in self.kinds]
        stride = np.array(moved or [1], np.int64)
        return counting.Pooled(self.first, self.kind, self.address, stride)


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """Requests of n rows in order, not expanded.

    Each of `rows` has the requests of row `number` of the pool, moved by `shift` bytes; its counts
    belong to sum `group`, of `groups`. `unit` (n,), `turn` (n,) and `passes_on` are those of a
    `Batch`. `rows` are CHOSEN of `stateful/reorder_loops.py`.
    """

    pool: Pool
    rows: NDArray[np.void]
    unit: Ints | None = None
    groups: int = 0
    passes_on: bool = False
    turn: Ints | None = None

    def batch(self) -> Batch:
        """Expand the requests; `row` is the number of the row."""
        number, shift = (self.rows[name].astype(np.int64) for name in ("number", "shift"))
        return self.pool.repeat(number, shift, np.arange(len(number)))


def make_pool(passed: Batch | None, rows: int) -> Pool:
    """Return the pool of the requests that a stage passed on for `rows` rows."""
    if passed is None:
        nothing = np.zeros(0, np.int64)
        return Pool((), nothing, nothing, np.zeros(rows + 1, np.int64))
    if (passed.row[1:] < passed.row[:-1]).any():
        passed = passed.take(np.argsort(passed.row, kind="stable"))
    first = np.searchsorted(passed.row, np.arange(rows + 1))
    return Pool(passed.kinds, passed.kind, np.ascontiguousarray(passed.addresses[:, 0]), first)


def extend_pool(pool: Pool | None, more: Pool, rows: int) -> Pool:
    """Return a pool with `rows` rows of `more` appended."""
    if pool is None:
        pool = make_pool(None, rows)
    if not rows:
        return more
    kinds = tuple(dict.fromkeys((*pool.kinds, *more.kinds)))
    place = np.array([kinds.index(kind) for kind in more.kinds] or [0], np.int64)
    return Pool(
        kinds,
        np.concatenate([pool.kind, place[more.kind]]),
        np.concatenate([pool.address, more.address]),
        np.concatenate([pool.first[:-1], more.first + pool.first[-1]]),
    )


def join_flows(flows: Sequence[Batch]) -> Batch | None:
    """Join the requests that several parts passed on, or return None if there are none."""
    some = [flow for flow in flows if len(flow)]
    return join_batches(some) if some else None
