"""The result of a replay, and the ledger that adds up raw counters."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from ....base.dataclass import dataclass
from ....jit.loop import loops_of
from ....traces.column import to_arrow
from ....traces.schema import Launch
from ....traces.unique import sorted_unique
from ...analyses.occupancy import Occupancy
from ..device.wiring import Wire
from ..interface.model import Bools, Ints, Kind
from ..rows.sites import MIXED, SPACES, Sites, Zones, number_rows
from . import counting

KEYS = ("pc", "array", "scope")


@dataclass(frozen=True, slots=True, eq=False)
class LaunchCounts:
    """One launch on one device, counted.

    `counts` has the columns pc (u32), array (the Array of the lowest active lane; "" where there is
    none), scope and one Int64 column per raw counter: every one that the device's models have, zero
    where nothing was counted. Scopes are "sm": blocks of the profiled SM, "cluster": the other
    blocks of its cluster, "rest"; or the number of a sample's group, each of whose blocks is
    weighted by the number of blocks that it represents. `mixed` has the same columns: the rows over
    several arrays once more, under the array "mixed", not to be added to `counts`.

    `lanes_on` has the columns pc, scope and lanes: the lanes whose predicate held, for predicated
    instructions other than memory and branches.

    If `occupancy` has a refusal there are no rows, unless counted `as_if`. `blocks_of_sm` and
    `blocks_of_cluster` are those of the profiled SM and of its cluster.
    """

    device: str
    launch: Launch
    number: int
    counts: pl.DataFrame
    mixed: pl.DataFrame
    lanes_on: pl.DataFrame
    occupancy: Occupancy
    substitutions: tuple[str, ...]
    blocks_of_sm: int
    blocks_of_cluster: int


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows sorted into groups of one site and zone.

    `rows` (m,) are row numbers sorted by group, `group` (m,) is the group of each; `site` and
    `zone` (groups,) are those of each group.
    """

    rows: Ints
    group: Ints
    site: Ints
    zone: Ints

    def sum(self, table: Ints, number: Ints, times: Ints) -> tuple[Ints, Ints]:
        """Sum the columns of rows per group: row i adds `table[:, number[i]]`, `times[i]` times.

        `times` (n, scopes). Returns the number of rows per group, (scopes, groups), and the sums,
        (scopes, groups, columns).
        """
        many = np.zeros((times.shape[1], len(self.site)), np.int64)
        sums = np.zeros((*many.shape, len(table)), np.int64)
        loops = loops_of(counting, 0)
        loops.sum_groups(self.rows, self.group, table, number, times, many, sums)
        return many, sums


def group_rows(site: Ints, zone: Ints, mask: Bools) -> Groups:
    """Group the chosen rows by site and zone, all (n,)."""
    rows = np.flatnonzero(mask)
    zones = int(zone.max(initial=0)) + 1
    key = site[rows] * zones + zone[rows]
    keys, group = number_rows(key, int(key.max(initial=0)) + 1)
    narrow = group.astype(np.min_scalar_type(len(keys)))  # 16 bits are sorted by radix
    order = np.argsort(narrow, kind="stable")
    return Groups(rows[order], group[order], *np.divmod(keys, zones))


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """Pending sums (rows, columns), at `rows` and `columns` (none: all) of the final table."""

    rows: Ints
    columns: Sequence[int]
    sums: Ints


_NOTHING = np.zeros(0, np.int64)

FOLDED = 1 << 12
"""Pending entries that trigger a merge."""


class Ledger:
    """Adds up raw counters by pc, array and scope, for one launch on one device.

    `counters` are the names of all counters, `scopes` those of the scopes. Internally a row is (pc
    * names + name) * scopes + scope, where `name` is the index of the array's name.
    """

    def __init__(
        self, sites: Sites, zones: Zones, counters: Sequence[str], scopes: Sequence[str]
    ) -> None:
        self._sites = sites
        self._scopes = tuple(scopes)
        self._counters = tuple(counters)
        self._column = {name: number for number, name in enumerate(counters)}
        first: dict[str, int] = {}
        kinds = (first.setdefault(kind.prefix, n) for n, kind in enumerate(sites.kinds))
        self._first = np.array([*kinds], np.int64)  # kind that has the same prefix
        self._names = sorted({"", *zones.names})
        self._name = np.array([self._names.index(name) for name in zones.names], np.int64)
        self._entries: dict[bool, list[_Entry]] = {False: [], True: []}
        nothing = _Entry(_NOTHING, (), np.zeros((0, len(self._counters)), np.int64))
        self._sums = dict.fromkeys((False, True), nothing)

    def add_sums(
        self, wire: Wire, site: Ints, zone: Ints, scope: Ints, sums: Ints, mixed: bool
    ) -> None:
        """Add sums (n, counters) of a stage's counts, by site, zone and scope."""
        rows = (site // SPACES * len(self._names) + self._name[zone]) * len(self._scopes) + scope
        for kind, members in self._by_prefix(site):
            if kind.space in wire.spaces:
                columns = [self._column[wire.name(kind, name)] for name in wire.counters]
                self._enter(_Entry(rows[members], columns, sums[members]), mixed)

    def add_by_pc(self, scope: int, counts: Mapping[str, Ints]) -> None:
        """Add counters that belong to no array: each (pcs,)."""
        sums = np.stack([*counts.values()], axis=1)
        pcs = np.flatnonzero(sums.any(axis=1))
        rows = (pcs * len(self._names) + self._names.index("")) * len(self._scopes) + scope
        columns = [self._column[name] for name in counts]
        self._enter(_Entry(rows, columns, sums[pcs]), False)

    def close(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return `counts` and `mixed`."""
        counts = self._table(False)
        self._fold(True)
        if not len(self._sums[True].rows):
            return counts, counts.clear()
        mixed = self._table(True)
        mixed = mixed.with_columns(array=pl.lit(MIXED))
        mixed = mixed.group_by(KEYS).agg(pl.col(self._counters).sum()).sort(KEYS)
        return counts, mixed.select(*KEYS, *self._counters)

    def _by_prefix(self, site: Ints) -> Iterator[tuple[Kind, Ints]]:
        """Yield the indices of sites, (g,), grouped by the prefix of their counters."""
        firsts = self._first[self._sites.kind[site]]
        for first in sorted_unique(firsts).tolist():
            yield self._sites.kinds[first], np.flatnonzero(firsts == first)

    def _enter(self, entry: _Entry, mixed: bool) -> None:
        self._entries[mixed].append(entry)
        if len(self._entries[mixed]) >= FOLDED:
            self._fold(mixed)

    def _fold(self, mixed: bool) -> None:
        """Merge pending entries into the sums, which have a column for every counter."""
        entries, before = self._entries[mixed], self._sums[mixed]
        rows = sorted_unique(np.concatenate([before.rows, *(entry.rows for entry in entries)]))
        table = np.zeros((len(rows), len(self._counters)), np.int64)
        table[np.searchsorted(rows, before.rows)] = before.sums
        for entry in entries:
            place = np.searchsorted(rows, entry.rows)
            np.add.at(table, (place[:, None], np.array(entry.columns, np.int64)), entry.sums)
        self._sums[mixed] = _Entry(rows, (), table)
        entries.clear()

    def _table(self, mixed: bool) -> pl.DataFrame:
        """Return the sums with a column for every counter."""
        self._fold(mixed)
        rows, table = self._sums[mixed].rows, np.ascontiguousarray(self._sums[mixed].sums.T)
        quotient, scope = np.divmod(rows, len(self._scopes))
        pc, name = np.divmod(quotient, len(self._names))
        flat, size = to_arrow(table.reshape(-1), pa.int64()), len(rows)
        columns = [
            to_arrow(pc.astype(np.uint32), pa.uint32()),
            pa.array([self._names[n] for n in name.tolist()], pa.string()),
            pa.array([self._scopes[n] for n in scope.tolist()], pa.string()),
            *(flat.slice(size * number, size) for number in range(len(self._counters))),
        ]
        return pl.DataFrame(pa.RecordBatch.from_arrays(columns, [*KEYS, *self._counters]))
