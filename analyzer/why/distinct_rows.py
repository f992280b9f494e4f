"""Distinct rows of a launch: the first one of each site, pattern and base modulo a period.

Where they are few, as in most kernels, a search asks about them alone; they are found once for all
devices and questions (`kept.py`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from ...models.replay.kept import kept_frame
from ...models.replay.rows.repeats import RecentRows
from ...models.replay.rows.sites import Sites
from ...models.replay.seam import Bools, Ints
from ...traces.reader import LaunchTrace
from ...traces.schema import ACCESSES
from ...traces.table.unique import sorted_places

Columns = Mapping[str, Ints]
"""Rows of ACCESSES by column, (n,) each."""

FEW = 1 << 15
"""Rows that differ, at most, where they are put together."""
TABLE = 1 << 24
"""Keys that have a table of what was seen."""


def distinct_rows(
    trace: LaunchTrace, sites: Sites, period: int, wanted: Ints | None
) -> Iterator[Columns]:
    """Yield rows in order of the trace, of some instructions if any are `wanted`.

    Among them is the first of each site and pattern, and of each place in so many bytes that lie
    `period` apart. Raises `CutraceError` for a row whose instruction cannot reach its space.
    """
    many = max(1, trace.count("patterns"))

    def first_rows(trace: LaunchTrace) -> pl.DataFrame:
        return _first_rows(trace, sites, period, many)

    frame = kept_frame(trace, Path(__file__), first_rows, str(period))
    if len(frame):
        columns = {name: frame[name].to_numpy() for name in frame.columns}
        yield take(columns, _is_wanted(columns["pc"], wanted))
        return
    for batch in trace.access_batches():
        mine = take(columns_of(batch), _is_wanted(batch["pc"].to_numpy(), wanted))
        _, first, _ = sorted_places(_keys(mine, sites, period, many))
        yield take(mine, np.sort(first))


def _first_rows(trace: LaunchTrace, sites: Sites, period: int, many: int) -> pl.DataFrame:
    """Return the first row of each kind, and none if they are more than a few."""
    seen = _Seen(len(sites.kind) * many * period)
    found = {name: [np.zeros(0, np.int64)] for name in ACCESSES.names}
    recent = RecentRows()
    for batch in trace.access_batches():
        fresh = recent.choose(batch)
        columns = {name: column(batch, name)[fresh] for name in KEYS}
        rows = fresh[seen.first(_keys(columns, sites, period, many))]
        for name, parts in found.items():
            parts.append(batch[name].to_numpy()[rows].astype(np.int64))
        if seen.many > FEW:
            return pl.DataFrame(schema=dict.fromkeys(found, pl.Int64))
    return pl.DataFrame({name: np.concatenate(parts) for name, parts in found.items()})


class _Seen:
    """The keys that came before: in a table where they lie close together, else sorted."""

    def __init__(self, size: int) -> None:
        self.many = 0
        self._table: Bools | None = np.zeros(size, np.bool_) if size <= TABLE else None
        self._sorted = np.zeros(0, np.int64)

    def first(self, keys: Ints) -> Ints:
        """Return the rows, rising, that have a key first, and remember their keys."""
        if self._table is not None:
            fresh = np.flatnonzero(~self._table[keys])
        else:
            place = np.searchsorted(self._sorted, keys)
            ends = np.append(self._sorted, -1)
            fresh = np.flatnonzero(ends[place] != keys)
        new, first, _ = sorted_places(keys[fresh])
        self.many += len(new)
        if self._table is not None:
            self._table[new] = True
        else:
            self._sorted = np.sort(np.concatenate([self._sorted, new]))
        rows: Ints = fresh[np.sort(first)]
        return rows


KEYS = ("pc", "space", "base", "pattern")


def _keys(columns: Columns, sites: Sites, period: int, many: int) -> Ints:
    """Return a number for each row, (n,), of what a model knows of it."""
    site = sites.locate(columns["pc"], columns["space"])
    keys: Ints = (site * many + columns["pattern"]) * period + columns["base"] % period
    return keys


def _is_wanted(pc: Ints, wanted: Ints | None) -> Ints:
    """Return the rows of some instructions, or all."""
    return np.arange(len(pc)) if wanted is None else np.flatnonzero(np.isin(pc, wanted))


def take(columns: Columns, rows: Ints) -> Columns:
    """Return some of the rows."""
    return {name: each[rows] for name, each in columns.items()}


def columns_of(batch: pa.RecordBatch) -> Columns:
    """Return all columns of a batch of accesses."""
    return {name: column(batch, name) for name in batch.schema.names}


def column(batch: pa.RecordBatch, name: str) -> Ints:
    """Return a column as integers of 64 bits."""
    return np.asarray(batch[name].to_numpy(), np.int64)
