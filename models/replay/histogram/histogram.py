"""Access histogram: the distinct rows of a launch with their frequencies, for all devices at once.

The counts of a stateless model depend only on the kind of the instruction, the pattern, and the
base modulo a period. A regular kernel has a handful of such combinations, however many rows. So
rows are numbered by distinct row and counted, and a model counts each distinct row once.
"""

from collections.abc import Sequence
from dataclasses import field
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop import as_lists, compile_if_worth
from ....traces.column import signed
from ..interface.model import Batch, Bools, Ints, Kind, join_batches, one_lane
from ..rows.patterns import Reaches, Shapes
from ..rows.sites import Sites, Zones
from ..schedule.episodes import list_ranges
from ..schedule.place import Placement
from . import counting

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
    _slots: NDArray[np.int32] = field(init=False)
    _slot_bins: Ints = field(init=False)
    _runs: Ints = field(init=False)
    _reaches: Reaches = field(init=False)

    def __post_init__(self) -> None:
        """Allocate the tables."""
        self._reaches = Reaches(self.shapes)
        self._slots = np.empty(2 * SLICE, np.int32)
        self._slot_bins = np.empty((counting.FIELDS, SLICE), np.int64)
        self._runs = np.empty((3, SLICE), np.int64)

    def count(self, batch: pa.RecordBatch) -> Bins:
        """Find the distinct rows of a batch.

        Raises `CutraceError` where a row is in a space that its instruction cannot reach.
        """
        compiled = compile_if_worth(counting, batch.num_rows)
        rows = tuple(signed(batch, name) for name in ("pc", "space", "base", "block"))
        named = self._reaches.name(compiled, signed(batch, "pattern"))
        sites, ends = (self.sites.kind, self.sites.width), self._reaches.ends
        operands: Any = (rows, named, sites, ends, np.append(self.zones.cuts, counting.FAR))
        loops, operands = (compiled, operands) if compiled else (counting, as_lists(operands))
        slots = self._slots[: 2 << (batch.num_rows - 1).bit_length()]
        many, count = loops.number_rows(
            *operands, self.period, (slots, self._slot_bins, self._runs)
        )
        if many < 0:
            pc, space, _, _ = rows
            self.sites.refuse(pc[-1 - many], space[-1 - many])
        site, shape, phase, zone, mixed = self._slot_bins[:, :many].copy()
        runs = self._runs[:, :count]
        times = [_count(loops, runs, many, placement) for placement in self.placements]
        which = self._reaches.patterns[shape]
        return Bins(site, which, phase, zone, mixed.astype(np.bool_), np.stack(times))


def _count(loops: ModuleType, runs: Ints, many: int, placement: Placement) -> Ints:
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
        many = self.first[number + 1] - self.first[number]
        stride = strides(self.kinds)
        requests = int(many.sum())
        if (loops := compile_if_worth(counting, requests)) is not None:
            columns = tuple(np.empty(requests, np.int64) for _ in range(3))
            pool, rows = (self.first, self.kind, self.address), (number, shift, row)
            loops.repeat(pool, stride, rows, columns)
            return one_lane(self.kinds, columns[1], columns[0], columns[2])
        indices = list_ranges(self.first[number], many)
        kind = self.kind[indices]
        address = self.address[indices] + np.repeat(shift, many) * stride[kind]
        return one_lane(self.kinds, kind, address, np.repeat(row, many))


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """Requests of n rows in order, not expanded.

    Each of `rows` has the requests of row `number` of the pool, moved by `shift` bytes; its counts
    belong to sum `group`, of `groups`. `unit` (n,) and `passes_on` are those of a `Batch`. `rows`
    are CHOSEN of `stateful/reorder_loops.py`.
    """

    pool: Pool
    rows: NDArray[np.void]
    unit: Ints | None = None
    groups: int = 0
    passes_on: bool = False

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


def strides(kinds: Sequence[Kind]) -> Ints:
    """Return per kind the bytes that a request moves for each byte that its row moves."""
    moved = [LOCAL_STRIDE if kind.space == "local" else 1 for kind in kinds]
    return np.array(moved or [1], np.int64)
