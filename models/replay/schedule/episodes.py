"""Episodes: the shared-memory accesses of one block's warps between two barriers.

Rows are gathered until every warp of their block has passed the interval, so memory holds only the
intervals in progress. Most episodes of a regular kernel are alike: equal ones (the same warps with
the same instructions, patterns and bases, as often) are examined once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ....base.dataclass import dataclass
from ....traces.schema import Space
from ..interface.model import Bools, Ints
from .barrier_intervals import Intervals

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace

MOST_PENDING = 1 << 20
"""Waiting rows from which on complete episodes are yielded."""

_WEIGHTS = np.array([592925406497092373, 2302512737525391003], np.int64)
"""Odd random multipliers of the hash, as constants: importing `numpy.random` takes ten
milliseconds.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Warp accesses to shared memory as (n,) columns; `owner` is an index in `Intervals.warps`.

    A row represents `times` equal ones, the earliest of them at `step`.
    """

    owner: Ints
    interval: Ints
    pc: Ints
    pattern: Ints
    base: Ints
    step: Ints
    times: Ints

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.owner)

    def take(self, which: Ints | Bools | slice) -> "Rows":
        """Return the selected rows."""
        return Rows(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """Distinct episodes: number e has the rows from `first[e]` to `first[e + 1]`.

    They are in order of block and interval, and so are the `members`: per episode of the trace, the
    number of the distinct one that it equals, with its `block` and `interval`. The rows of a
    distinct episode are those of its first member, in order of warp and pc.
    """

    rows: Rows
    first: Ints
    members: Ints
    block: Ints
    interval: Ints

    def __len__(self) -> int:
        """Return the number of distinct episodes."""
        return len(self.first) - 1


def gather(trace: "LaunchTrace", intervals: Intervals) -> Iterator[Episodes]:
    """Read all shared-memory accesses of a launch and yield complete episodes."""
    backlog = _count(trace, intervals)
    latest = np.where(backlog > 0, -1, np.iinfo(np.int64).max)
    buffer: list[Rows] = []
    limit = MOST_PENDING
    for batch in trace.access_batches():
        rows = _read(batch, intervals)
        np.maximum.at(latest, rows.owner, rows.interval)
        backlog -= np.bincount(rows.owner, minlength=len(backlog))
        latest[backlog == 0] = np.iinfo(np.int64).max
        buffer.append(rows)
        if sum(map(len, buffer)) > limit:
            merged = _merge(_join(buffer), intervals)
            complete = merged.interval < _slowest(latest, intervals)[merged.owner]
            buffer = [merged.take(~complete)]
            limit = max(MOST_PENDING, 2 * len(buffer[0]))
            yield _share(merged.take(complete), intervals)
    if buffer:
        yield _share(_merge(_join(buffer), intervals), intervals)


def _count(trace: "LaunchTrace", intervals: Intervals) -> Ints:
    """Return the number of accesses to shared memory per warp, (warps,)."""
    counts = np.zeros(len(intervals.warps), np.int64)
    for batch in trace.access_batches():
        block, warp = _columns(batch, "block", "warp")
        counts += np.bincount(intervals.locate(block, warp), minlength=len(counts))
    return counts


def _columns(batch: pa.RecordBatch, *names: str) -> Sequence[Ints]:
    """Return columns of the rows in shared memory, as int64."""
    shared = np.flatnonzero(batch["space"].to_numpy() == Space.SHARED)
    return [batch[name].to_numpy()[shared].astype(np.int64) for name in names]


def _read(batch: pa.RecordBatch, intervals: Intervals) -> Rows:
    block, warp, step, pc, pattern, base = _columns(
        batch, "block", "warp", "step", "pc", "pattern", "base"
    )
    owner = intervals.locate(block, warp)
    interval = intervals.count(owner, step)
    return Rows(owner, interval, pc, pattern, base, step, np.ones_like(step))


def _slowest(latest: Ints, intervals: Intervals) -> Ints:
    """Return per warp the interval of the slowest warp of its block: earlier intervals are
    complete.
    """
    opens = np.flatnonzero(np.diff(intervals.blocks, prepend=-1))
    slowest = np.minimum.reduceat(latest, opens)
    return np.repeat(slowest, np.diff(opens, append=len(latest)))


def _join(parts: Sequence[Rows]) -> Rows:
    return Rows(*(np.concatenate([getattr(part, c.name) for part in parts]) for c in fields(Rows)))


def _merge(rows: Rows, intervals: Intervals) -> Rows:
    """Merge equal rows, and sort by block, interval, warp, pc, pattern and base."""
    if not len(rows):
        return rows
    block = intervals.blocks[rows.owner]
    place = pack_columns([block, rows.interval, rows.owner, rows.pc, rows.pattern, rows.base])
    order = np.argsort(place, kind="stable")
    opens = find_openings(place[order])
    step = np.minimum.reduceat(rows.step[order], opens)
    times = np.add.reduceat(rows.times[order], opens)
    return replace(rows.take(order[opens]), step=step, times=times)


def _share(rows: Rows, intervals: Intervals) -> Episodes:
    """Cut merged rows into episodes, and keep one of each set of equal episodes."""
    block = intervals.blocks[rows.owner]
    opens = find_openings(block, rows.interval)
    lengths = np.diff(opens, append=len(rows))
    warp = rows.owner - np.searchsorted(intervals.blocks, block)
    content = pack_columns([warp, rows.pc, rows.pattern, rows.base, rows.times])
    members, representatives = _find_equal(content, opens, lengths)
    row_indices = list_ranges(opens[representatives], lengths[representatives])
    first = np.concatenate([[0], np.cumsum(lengths[representatives])])
    return Episodes(rows.take(row_indices), first, members, block[opens], rows.interval[opens])


def _find_equal(content: Ints, opens: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return for each episode the number of the one that it equals, and the first of each kind.

    Hash matches are compared in full: if two episodes that differ share a hash, none is shared.
    """
    everyone = np.arange(len(opens))
    if len(everyone) < 2:
        return everyone, everyone
    position = np.arange(len(content)) - np.repeat(opens, lengths)
    mixed = (content ^ (content >> 29)) * _WEIGHTS[0] + position * _WEIGHTS[1]
    mixed = (mixed ^ (mixed >> 31)) * _WEIGHTS[1]
    keys = np.add.reduceat(mixed ^ (mixed >> 30), opens) * 31 + lengths
    _, representatives, number = np.unique(keys, return_index=True, return_inverse=True)
    if not (lengths[representatives][number] == lengths).all():
        return everyone, everyone
    if not (content[list_ranges(opens[representatives][number], lengths)] == content).all():
        return everyone, everyone
    order = np.argsort(representatives)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[number], representatives[order]


def pack_columns(columns: Iterable[Ints]) -> Ints:
    """Return a number per row, (n,), that has the lexicographic order of the columns.

    Columns are taken one at a time, so that not all need be in memory.
    """
    packed, span = np.zeros(0, np.int64), 1
    for number, column in enumerate(columns):
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        if span * (high - low + 1) >= 1 << 62:
            distinct, packed = np.unique(packed, return_inverse=True)
            span = len(distinct)
        packed = packed * (high - low + 1) if number else np.zeros(len(column), np.int64)
        packed += column
        packed -= low
        span *= high - low + 1
    return packed


def find_openings(*columns: Ints) -> Ints:
    """Return the indices of rows that differ from the one before; the first row is one."""
    differs = np.zeros(len(columns[0]), np.bool_)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def list_ranges(first: Ints, lengths: Ints) -> Ints:
    """Return first[0], first[0] + 1, ... (lengths[0] of them), then those of first[1], ..."""
    ends = np.cumsum(lengths)
    return np.arange(lengths.sum()) - np.repeat(ends - lengths - first, lengths)
