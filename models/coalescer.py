"""Coalescer: the memory transactions of a warp's accesses to global and local memory.

What the hardware does. A warp instruction is split into *requests* of neighbouring lanes, and
nearby lanes of a request share a *transaction*. The rule differs by era:

- 1.0, 1.1 (`half_warp`): a half-warp is coalesced only if it has 4, 8 or 16 bytes per lane and
  active lane k accesses word k of an aligned segment of 64, 128 or 2 x 128 bytes. Then it costs one
  transaction of 64 or 128 bytes, or two of 128; otherwise 32 bytes for each active lane.
- 1.2, 1.3 (`segment`): in a half-warp, the lowest lane not yet served selects an aligned segment:
  32 bytes for 1 byte per lane, 64 for 2, 128 for 4 to 16. One transaction serves all lanes in the
  segment. It is halved while the lanes touch only one of its halves, down to 32 bytes.
- 2.x global loads through L1 and local memory (`line`): one transaction per distinct 128-byte line
  of a request. 8 bytes per lane make two requests, 16 make four.
- loads and stores that bypass L1 on 2.x and 3.x, and all from 5.x on (`sector`): one transaction
  per distinct 32-byte sector. On 5.x and 6.x a request has 8, 4 or 2 lanes for up to 4, for 8 and
  for 16 bytes per lane, but the lanes of a warp share a sector (not those of stores on 6.1, where
  each request moves it). From 7.0 on an instruction is one request.
- atomics from 2.x on (`collide`): as `sector`, but a sector moves as many times as there are lanes
  on its most frequent address, unless the assembler has combined them.
- `each`: 32 bytes for each active lane. A guess for atomics on 1.x, which are not documented.

Local memory is interleaved: word i of a thread is beside word i of its neighbours, so lanes at
equal offsets are coalesced, and a wide access is one access per word.

What is modelled:

- `split_requests`, the requests with an active lane; their `transactions`; `bytes_moved`, the sum
  of the transactions' sizes.
- `ideal_transactions`, the fewest that could hold the distinct bytes of each group of lanes that
  shares transactions; `packed_transactions`, the fewest that could hold the bytes of all active
  lanes (a byte of two lanes twice), but no more than `transactions`.
- `transactions_32` to `_128`, the transactions of that size. With `sector` and `collide` they count
  128-byte lines by the bytes that move (`transactions_96`: three sectors), while `transactions`
  counts sectors. On 1.x `coherent_*` counts transactions of coalesced half-warps, `incoherent_32`
  of uncoalesced.

What is not: caches; the lane whose store wins; whether an inactive lane of an uncoalesced half-warp
costs a transaction (here it does not).

Source: CUDA C Programming Guide 4.2, F.3.2 and F.4.2; 7.5, G.3 to G.5 and 5.3.2; CUDA C Best
Practices Guide 10.1, 9.2.1; Nsight Compute 2022.3 Profiling Guide; forums.developer.nvidia.com,
topic 49571, for the lanes of a request on 5.x and 6.x; docs/validation.md for atomics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError, nearest
from .replay.interface.model import Batch, Ints, Kind, Step, join_batches, one_lane
from .replay.rows.lanes import NONE, check_lanes, count_true, mark_new, sum_parts
from .replay.rows.sites import number_rows
from .replay.rows.transactions import (
    LINE,
    RULES,
    SECTOR,
    SIZES,
    UNITS,
    Lanes,
    Totals,
    Transactions,
    add_up,
    count_units,
    largest_size,
)

_PAIRS = 1 << 10
"""A base larger than any size, to pack two sizes into one number."""
UNCACHED = frozenset({"cg", "cv", "nc"})
"""Cache operators of loads that bypass L1; `nc` goes to a sectored cache."""


@dataclass(frozen=True)
class Coalescer:
    """The rules of one device.

    `load`, `uncached_load`, `store`, `atomic` (reductions too) and `local` name rules.
    `request_lanes` are the lanes per request, and `merge_lanes` the lanes that share transactions,
    for up to 4, for 8, and for 16 bytes per lane; `store_lanes` are those of stores, if others.
    """

    load: str
    uncached_load: str
    store: str
    atomic: str
    local: str
    request_lanes: Sequence[int]
    merge_lanes: Sequence[int]
    store_lanes: Sequence[int] = ()

    counters: ClassVar[tuple[str, ...]] = (
        "split_requests",
        "transactions",
        "bytes_moved",
        "ideal_transactions",
        "packed_transactions",
        *(f"transactions_{size}" for size in SIZES),
        *(f"coherent_{size}" for size in (32, 64, 128)),
        "incoherent_32",
    )
    period: ClassVar[int] = LINE

    def __post_init__(self) -> None:
        """Refuse unknown rules, and groups that do not divide a warp."""
        check_lanes("coalescer: request_lanes", self.request_lanes)
        check_lanes("coalescer: merge_lanes", self.merge_lanes)
        if self.store_lanes:
            check_lanes("coalescer: store_lanes", self.store_lanes)
        for key in ("load", "uncached_load", "store", "atomic", "local"):
            if (name := getattr(self, key)) not in RULES:
                raise CutraceError(
                    f"coalescer: no rule `{name}` for {key}; there are {', '.join(RULES)}"
                    + nearest(name, RULES)
                )

    def step(self, batch: Batch) -> Step:
        """Serve each kind by its rule."""
        counts = {name: np.zeros(len(batch), np.int64) for name in self.counters}
        passed: list[Batch] = []
        for kind, rows in batch.parts():
            rule = self._rule(kind)
            is_whole = len(rows) == len(batch)
            place = slice(None) if is_whole else rows
            for lanes in _words(kind, batch if is_whole else batch.take(rows)):
                shape = -1, self.lanes_of(kind, lanes.width)
                group = lanes
                if shape[1] != lanes.addresses.shape[1]:
                    addresses, active = lanes.addresses.reshape(shape), lanes.active.reshape(shape)
                    group = Lanes(addresses, active, lanes.width)
                if rule in UNITS and not batch.passes_on:
                    totals = count_units(group, UNITS[rule])
                else:
                    transactions = RULES[rule](group)
                    totals = add_up(transactions)
                for name, values in self._count(rule, totals, group).items():
                    counts[name][place] += sum_parts(values, len(rows))
                if batch.passes_on:
                    plain = kind.access in ("load", "store")
                    used = _fill(transactions, group) if plain else np.zeros_like(transactions.size)
                    lane = replace(kind, lane=group.width)
                    passed.append(_pass_on(lane, transactions, used, rows, batch))
        return Step(counts, join_batches(passed) if passed else None)

    def lanes_of(self, kind: Kind, width: int) -> int:
        """Return the lanes that share the transactions of a kind, of `width` bytes per lane."""
        is_store = self.store_lanes and (kind.space, kind.access) == ("global", "store")
        return (self.store_lanes if is_store else self.merge_lanes)[_size_class(width)]

    def _count(self, rule: str, totals: Totals, group: Lanes) -> Mapping[str, Ints]:
        """Return each nonzero counter, by group of lanes or by request."""
        largest = largest_size(rule, group.width)
        lanes = self.request_lanes[_size_class(group.width)]
        active = group.count_active()
        is_request = lanes == group.active.shape[1]
        asking = (active if is_request else count_true(group.active.reshape(-1, lanes))) > 0
        packed = -(-active * group.width // largest)
        touched: Ints = totals.transactions
        if rule == "collide":
            touched = totals.leaving @ (np.array(SIZES) // SECTOR)
        sized = dict(zip(SIZES, totals.leaving.T, strict=True))
        return {
            "split_requests": asking.astype(np.int64),
            "transactions": totals.transactions,
            "bytes_moved": totals.bytes_moved,
            "ideal_transactions": -(-group.distinct_bytes() // largest),
            "packed_transactions": np.minimum(packed, touched),
            **{f"transactions_{size}": sized[size] for size in SIZES},
            **{name: sized[size] for name, size in _VERDICTS.get(rule, {}).items()},
        }

    def _rule(self, kind: Kind) -> str:
        """Return the name of the rule of a kind."""
        if kind.space == "local":
            return self.local
        if kind.access == "load":
            return self.uncached_load if kind.cache in UNCACHED else self.load
        if kind.access == "store":
            return self.store
        return "sector" if self.atomic == "collide" and kind.collision == "elected" else self.atomic


_VERDICTS: Mapping[str, Mapping[str, int]] = {
    "half_warp": {"incoherent_32": 32, "coherent_64": 64, "coherent_128": 128},
    "segment": {"coherent_32": 32, "coherent_64": 64, "coherent_128": 128},
}
"""Counters of 1.x and their sizes; 32 bytes can be a single lane's."""


def _size_class(width: int) -> int:
    """Return the index of an access of `width` bytes in `request_lanes`."""
    return (width > 4) + (width > 8)


def _words(kind: Kind, batch: Batch) -> Iterator[Lanes]:
    """Yield the accesses of a kind as the coalescer sees them, once per pass."""
    if kind.space != "local":
        yield Lanes(batch.addresses, batch.active, kind.width, batch.touched, batch.ordered)
        return
    lane = 4 * np.arange(batch.addresses.shape[1])
    for word in range(0, kind.width, 4):
        offset = batch.addresses + word
        addresses = offset // 4 * LINE + lane + offset % 4
        yield Lanes(addresses, batch.active, min(kind.width, 4))


def _pass_on(
    kind: Kind, transactions: Transactions, filled: Ints, rows: Ints, batch: Batch
) -> Batch:
    """Return the transactions of one kind as rows of one lane, for the next stage.

    `filled` (groups, k) is the number of bytes of each that lanes read or write, 0 for all.
    """
    size = transactions.size.reshape(len(rows), -1)
    at, column = np.nonzero(size)
    pair = size[at, column] + filled.reshape(size.shape)[at, column] * _PAIRS
    pairs, number = number_rows(pair, int(pair.max(initial=0)) + 1)
    kinds = tuple(replace(kind, width=p % _PAIRS, filled=p // _PAIRS) for p in pairs.tolist())
    address = transactions.address.reshape(len(rows), -1)[at, column]
    return one_lane(kinds, number, address, batch.row[rows[at]])


def _fill(transactions: Transactions, group: Lanes) -> Ints:
    """Return the used bytes of each sector, 0 for all; of larger transactions nothing."""
    ordered = group.ordered
    opens = np.flatnonzero(mark_new(ordered // SECTOR, NONE // SECTOR))
    filled = np.zeros_like(transactions.size)
    if filled.shape != ordered.shape or not np.array_equal(
        np.flatnonzero(transactions.size), opens
    ):
        return filled
    byte_counts = mark_new(ordered) * group.width
    if len(opens):
        filled.ravel()[opens] = np.add.reduceat(byte_counts.ravel(), opens)
    return np.where(filled < SECTOR, filled, 0)
