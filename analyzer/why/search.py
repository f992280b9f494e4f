"""Find an access: the worst of some instructions on a device, or one by its identifier."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import lcm
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.replay.device.device import Device
from ...models.replay.device.fallback import adapt_kinds
from ...models.replay.device.wiring import Wire, wire
from ...models.replay.interface.model import Batch, Bools, Ints, Kind, Model
from ...models.replay.replay_cache import cached_frame
from ...models.replay.rows.patterns import RecentRows, Shapes
from ...models.replay.rows.sites import Sites, read_sites
from ...traces.reader import LaunchTrace
from ...traces.schema import ACCESSES
from ...traces.unique import sorted_places, sorted_unique

Columns = Mapping[str, Ints]
"""Rows of ACCESSES by column, (n,) each."""

FEW = 1 << 15
"""Most distinct rows that are collected at once."""
TABLE = 1 << 24
"""Key range up to which a bitmap holds the keys."""


def distinct_rows(
    trace: LaunchTrace, sites: Sites, period: int, pcs: Ints | None
) -> Iterator[Columns]:
    """Yield rows in trace order, of the instructions `pcs` or of all.

    They include the first row of each site and pattern, and of each base modulo `period` bytes.
    Raises `CutraceError` for a row whose instruction cannot access its space.
    """
    many = max(1, trace.count("patterns"))

    def first_rows(trace: LaunchTrace) -> pl.DataFrame:
        return _first_rows(trace, sites, period, many)

    frame = cached_frame(trace, Path(__file__), first_rows, str(period))
    if len(frame):
        columns = {name: frame[name].to_numpy() for name in frame.columns}
        yield take(columns, _is_wanted(columns["pc"], pcs))
        return
    # Too many kinds to keep: drop repeats only within each batch, so memory stays bounded.
    for batch in trace.access_batches():
        mine = take(columns_of(batch), _is_wanted(batch["pc"].to_numpy(), pcs))
        _, first, _ = sorted_places(_keys(mine, sites, period, many))
        yield take(mine, np.sort(first))


def _first_rows(trace: LaunchTrace, sites: Sites, period: int, many: int) -> pl.DataFrame:
    """Return the first row of each kind; empty if there are too many."""
    key_set = _KeySet(len(sites.kind) * many * period)
    columns_by_name = {name: [np.zeros(0, np.int64)] for name in ACCESSES.names}
    recent = RecentRows()
    for batch in trace.access_batches():
        fresh = recent.choose(batch)
        columns = {name: column(batch, name)[fresh] for name in KEYS}
        rows = fresh[key_set.first(_keys(columns, sites, period, many))]
        for name, parts in columns_by_name.items():
            parts.append(batch[name].to_numpy()[rows].astype(np.int64))
        if key_set.many > FEW:
            return pl.DataFrame(schema=dict.fromkeys(columns_by_name, pl.Int64))
    return pl.DataFrame({name: np.concatenate(parts) for name, parts in columns_by_name.items()})


class _KeySet:
    """The set of seen keys: a bitmap if their range is small, else a sorted array."""

    def __init__(self, size: int) -> None:
        self.many = 0
        self._table: Bools | None = np.zeros(size, np.bool_) if size <= TABLE else None
        self._sorted = np.zeros(0, np.int64)

    def first(self, keys: Ints) -> Ints:
        """Return the rows with a new key, ascending, and add their keys."""
        if self._table is not None:
            fresh = np.flatnonzero(~self._table[keys])
        else:
            place = np.searchsorted(self._sorted, keys)
            # For keys beyond the last, `searchsorted` returns the length; -1 is no key.
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
    """Return a number per row, (n,), equal for rows that look equal to a model."""
    site = sites.locate(columns["pc"], columns["space"])
    # Mixed radix: site, pattern, and base modulo `period`. A model sees no more of a row.
    keys: Ints = (site * many + columns["pattern"]) * period + columns["base"] % period
    return keys


def _is_wanted(pc: Ints, pcs: Ints | None) -> Ints:
    """Return the indices of rows of the instructions `pcs`, or of all rows."""
    return np.arange(len(pc)) if pcs is None else np.flatnonzero(np.isin(pc, pcs))


def take(columns: Columns, rows: Ints) -> Columns:
    """Return some of the rows."""
    return {name: each[rows] for name, each in columns.items()}


def columns_of(batch: pa.RecordBatch) -> Columns:
    """Return all columns of a batch of accesses."""
    return {name: column(batch, name) for name in batch.schema.names}


def column(batch: pa.RecordBatch, name: str) -> Ints:
    """Return a column as integers of 64 bits."""
    return np.asarray(batch[name].to_numpy(), np.int64)


ROWS_PER_QUERY = 1 << 13
"""Rows per query of a model."""
COSTS: Mapping[tuple[str, str], str] = {
    ("transactions", "ideal_transactions"): "transactions",
    ("passes", "ideal_passes"): "wavefronts",
}
"""Counters of an access's cost and ideal cost, by model; and their unit."""
PLACE = ("block", "warp", "step", "part")
Server = tuple[Model, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Access:
    """One row of the trace's accesses, with its cost on a device.

    `addresses` has 32 entries, None for an inactive lane. `unit` is what `cost` and `ideal` count:
    `transactions` or `wavefronts`; `model` computed them.
    """

    launch: int
    block: int
    warp: int
    step: int
    part: int
    pc: int
    kind: Kind
    addresses: tuple[int | None, ...]
    cost: int
    ideal: int
    unit: str
    model: Model

    @property
    def identifier(self) -> str:
        """`launch.block.warp.step.part`: stable, and the same on every device."""
        return ".".join(map(str, (self.launch, self.block, self.warp, self.step, self.part)))

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: excess over the ideal, then cost."""
        return self.cost - self.ideal, self.cost

    def batch(self, addresses: Sequence[int | None]) -> Batch:
        """Return a batch of one row, the access at other addresses; the model returns requests."""
        return Batch(
            (self.kind,),
            np.zeros(1, np.int64),
            np.array([[a or 0 for a in addresses]], np.int64),
            np.array([[a is not None for a in addresses]], np.bool_),
            np.zeros(1, np.int64),
            passes_on=True,
        )


class Searcher:
    """Reads the accesses of one launch for one device."""

    def __init__(self, trace: LaunchTrace, device: Device, dlcm: str) -> None:
        self.trace = trace
        self._sites: Sites = read_sites(trace.instructions(), dlcm)
        self._kinds = adapt_kinds(self._sites.kinds, device.capability, dlcm)
        self._shapes = Shapes(trace.pattern_store())
        self._servers = _servers(wire(device.stages, device.file))

    def worst(self, pcs: Iterable[int] | None) -> list[Access]:
        """Return the worst access of each instruction and space among `pcs` (None: all), worst
        first.

        Of equally bad rows the first in the trace wins.
        """
        accesses: dict[tuple[int, str], Access] = {}
        pc_filter = None if pcs is None else np.fromiter(pcs, np.int64)
        period = lcm(*(max(model.period, 1) for model, _ in self._servers.values()))
        for columns in distinct_rows(self.trace, self._sites, period, pc_filter):
            by = self._sites.locate(columns["pc"], columns["space"])
            for access in self._cost(columns, by):
                key = access.pc, access.kind.space
                if key not in accesses or access.order > accesses[key].order:
                    accesses[key] = access
        return sorted(accesses.values(), key=lambda access: access.order, reverse=True)

    def find(self, place: Sequence[int]) -> Access | None:
        """Return the access at (block, warp, step, part), or None."""
        for batch in self.trace.access_batches():
            mask = np.ones(batch.num_rows, np.bool_)
            for name, value in zip(PLACE, place, strict=True):
                mask &= column(batch, name) == value
            for access in self._cost(take(columns_of(batch), np.flatnonzero(mask))):
                return access
        return None

    def accessed(self) -> set[int]:
        """Return the pcs of all instructions that access memory."""
        pcs: set[int] = set()
        for batch in self.trace.access_batches():
            pcs |= set(sorted_unique(column(batch, "pc")).tolist())
        return pcs

    def _cost(self, columns: Columns, by: Ints | None = None) -> Iterator[Access]:
        """Compute the cost of rows; with `by`, (n,), yield only the worst row of each of its
        values.
        """
        kinds = self._sites.kind[self._sites.locate(columns["pc"], columns["space"])]
        for space, (model, names) in self._servers.items():
            mine = np.flatnonzero([self._kinds[kind].space == space for kind in kinds.tolist()])
            if not len(mine):
                continue
            cost, ideal = (np.zeros(len(mine), np.int64) for _ in names)
            for start in range(0, len(mine), ROWS_PER_QUERY):
                part = slice(start, start + ROWS_PER_QUERY)
                request = self._rebuild(columns, kinds, mine[part])
                counts = model.step(request).counts
                cost[part], ideal[part] = (counts[name] for name in names)
            order = np.lexsort((-mine, cost, cost - ideal))[::-1]
            # Worst first: by excess, then cost, then position in the trace. Distinct values of `by`
            # keep their first, which is the worst.
            if by is not None:
                order = order[sorted_places(by[mine][order])[1]]
            for row in order.tolist():
                yield self._access(columns, kinds, mine[row], cost[row], ideal[row])

    def _rebuild(self, columns: Columns, kinds: Ints, rows: Ints) -> Batch:
        return self._shapes.rebuild(
            self._kinds, kinds[rows], columns["base"][rows], columns["pattern"][rows]
        )

    def _access(self, columns: Columns, kinds: Ints, row: int, cost: int, ideal: int) -> Access:
        batch = self._rebuild(columns, kinds, np.array([row]))
        lanes = zip(batch.addresses[0].tolist(), batch.active[0].tolist(), strict=True)
        kind = self._kinds[int(kinds[row])]
        model, names = self._servers[kind.space]
        block, warp, step, part, pc = (int(columns[name][row]) for name in (*PLACE, "pc"))
        return Access(
            launch=self.trace.number,
            block=block,
            warp=warp,
            step=step,
            part=part,
            pc=pc,
            kind=kind,
            addresses=tuple(address if on else None for address, on in lanes),
            cost=int(cost),
            ideal=int(ideal),
            unit=COSTS[names],
            model=model,
        )


def read_identifier(text: str) -> tuple[int, ...]:
    """Parse `launch.block.warp.step.part` into five numbers."""
    words = text.split(".")
    if len(words) != 1 + len(PLACE) or not all(word.isdecimal() for word in words):
        raise CutraceError(
            f"access {text!r}: expected LAUNCH.{'.'.join(PLACE).upper()}, say 0.0.0.12.0"
        )
    return tuple(map(int, words))


def _servers(wires: Iterable[Wire]) -> dict[str, Server]:
    """Return the first stage of each state space that counts the cost of an access."""
    servers: dict[str, Server] = {}
    for candidate in wires:
        for names in COSTS:
            if set(names) <= set(candidate.counters):
                for space in candidate.direct:
                    servers.setdefault(space, (candidate.build(), names))
    return servers
