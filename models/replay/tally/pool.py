"""Results of stateless stages by distinct row, to be repeated for all equal rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ..compiled import compile_if_worth
from ..schedule.episodes import list_ranges
from ..seam import Batch, Ints, Kind, join_batches, one_lane
from . import counting

LOCAL_STRIDE = 32
"""A byte of a thread's local memory moves what its warp does by as many: words are interleaved."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Requests of one lane: row number r of whatever went in has those from `first[r]` to
    `first[r + 1]`, with `kind` and `address`, (requests,).
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
            made = tuple(np.empty(requests, np.int64) for _ in range(3))
            pool, rows = (self.first, self.kind, self.address), (number, shift, row)
            loops.repeat(pool, stride, rows, made)
            return one_lane(self.kinds, made[1], made[0], made[2])
        chosen = list_ranges(self.first[number], many)
        kind = self.kind[chosen]
        address = self.address[chosen] + np.repeat(shift, many) * stride[kind]
        return one_lane(self.kinds, kind, address, np.repeat(row, many))


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """Requests of n rows in order, which need not be written down one by one.

    Each of `rows` has those of row `number` of the pool, moved by `shift` bytes; its counts belong
    to sum `group`, of `groups`. `unit` (n,) and `passes_on` are those of a `Batch`. `rows` are
    `ordered/distinct.py`'s CHOSEN.
    """

    pool: Pool
    rows: NDArray[np.void]
    unit: Ints | None = None
    groups: int = 0
    passes_on: bool = False

    def batch(self) -> Batch:
        """Write them down; `row` is the number of the row."""
        number, shift = (self.rows[name].astype(np.int64) for name in ("number", "shift"))
        return self.pool.repeat(number, shift, np.arange(len(number)))


def make_pool(passed: Batch | None, rows: int) -> Pool:
    """Keep what a stage passed on for `rows` rows."""
    if passed is None:
        nothing = np.zeros(0, np.int64)
        return Pool((), nothing, nothing, np.zeros(rows + 1, np.int64))
    if (passed.row[1:] < passed.row[:-1]).any():
        passed = passed.take(np.argsort(passed.row, kind="stable"))
    first = np.searchsorted(passed.row, np.arange(rows + 1))
    return Pool(passed.kinds, passed.kind, np.ascontiguousarray(passed.addresses[:, 0]), first)


def extend_pool(pool: Pool | None, more: Pool, rows: int) -> Pool:
    """Return a pool of `rows` rows with those of another one behind them."""
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
    """Join what several parts passed on, or return None if nothing did."""
    some = [flow for flow in flows if len(flow)]
    return join_batches(some) if some else None


def strides(kinds: Sequence[Kind]) -> Ints:
    """Return by how many bytes a request of each kind moves for each byte that its row does."""
    moved = [LOCAL_STRIDE if kind.space == "local" else 1 for kind in kinds]
    return np.array(moved or [1], np.int64)
