"""Coalescer: how the accesses of a warp to global and local memory become transactions.

What the hardware does. A warp instruction is cut into *requests* of neighbouring lanes, and the
lanes of a request that lie close together share a *transaction*. How close differs by era:

- 1.0, 1.1 (`half_warp`): a half-warp is coalesced only if it has 4, 8 or 16 bytes a lane and
  active lane k takes word k of an aligned segment of 64, 128 or 2 x 128 bytes. Then it costs one
  transaction of 64 or 128 bytes, or two of 128; otherwise 32 bytes for each active lane.
- 1.2, 1.3 (`segment`): for a half-warp, the lowest lane not yet served names an aligned segment of
  32, 64 or 128 bytes (1, 2, or 4 to 16 bytes a lane); it serves all lanes in it; the transaction
  is halved while only one half of it is touched, down to 32 bytes.
- 2.x global loads through L1 and local memory (`line`): one transaction for each distinct
  128-byte line of a request. 8 bytes a lane make two requests, 16 make four.
- past L1 on 2.x and 3.x, and everywhere from 5.x on (`sector`): one transaction for each distinct
  32-byte sector. On 5.x and 6.x a request has 8, 4 or 2 lanes, but a sector moves once for the
  warp; from 7.0 on an instruction is one request.
- `collide`, for atomics from 2.x on: as `sector`, but lanes on one address, which the assembler has
  not combined, do not share a transaction: a sector is moved as often as its most wanted address.
- `each`: 32 bytes for each active lane. A guess for atomics on 1.x, about which nothing is
  published.

Local memory is interleaved: word i of a thread's memory lies beside word i of its neighbours, so
lanes at equal offsets are coalesced, and a wide access is one access for each of its words.

What is modelled: `split_requests`, those with an active lane; `transactions`; `bytes_moved`,
their sizes; `ideal_transactions`, the fewest in which the same distinct bytes of each group that
shares transactions could move; `packed_transactions`, as many as they make, or the fewest that
could move what every active lane asks for by itself; `transactions_32` to `_128`, those of that
size. The sectors of one 128-byte line leave together, so under `sector` and `collide` these count
lines by the bytes that leave, while `transactions` counts sectors. On 1.x `coherent_*` and
`incoherent_32` are the same sizes by verdict.

What is not: caches; which of several lanes wins a store; whether an inactive lane of an
uncoalesced half-warp costs a transaction (here it does not).

Source: CUDA C Programming Guide 4.2, F.3.2 and F.4.2; 7.5, G.3 to G.5 and 5.3.2; CUDA C Best
Practices Guide 10.1, 9.2.1; Nsight Compute 2022.3 Profiling Guide; forums.developer.nvidia.com,
topic 49571, for the lanes of a request on 5.x and 6.x; docs/validation.md for atomics.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import ClassVar

import numpy as np

from ..errors import CutraceError, nearest
from .replay.lanes import NONE, check_lanes, distinct_bytes, touching_loops
from .replay.seam import Batch, Bools, Ints, Kind, Step, join_batches
from .replay.touching import make_table

SECTOR = 32
LINE = 128
SIZES = (32, 64, 96, 128)
_PAIRS = 1 << 10
"""More than any size: to put two in one number."""
UNCACHED = frozenset({"cg", "cv", "nc"})
"""Cache operators of a load that L1 does not answer; `nc` goes to a cache of sectors."""


@dataclass(frozen=True, slots=True, eq=False)
class Transactions:
    """What a rule makes of n groups of lanes.

    `address` and `size` (n, k) are bytes, size 0 where there is no transaction. `leaving`
    (n, len(SIZES)) counts them by the size in which they go to memory.
    """

    address: Ints
    size: Ints
    leaving: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Of n groups of lanes the number of transactions and their bytes, (n,), and `leaving`."""

    transactions: Ints
    bytes_moved: Ints
    leaving: Ints


Rule = Callable[[Ints, Bools, int], Transactions]
"""addresses (n, lanes) in bytes, active (n, lanes), bytes a lane -> transactions."""


def _half_warp(addresses: Ints, active: Bools, width: int) -> Transactions:
    """Compute capability 1.0 and 1.1."""
    lanes = addresses.shape[1]
    start = addresses - np.arange(lanes) * width
    first = np.take_along_axis(start, active.argmax(axis=1)[:, None], axis=1)
    in_order = np.all((start == first) | ~active, axis=1, keepdims=True)
    aligned = first % (64 if width == 4 else 128) == 0
    coalesced = in_order & aligned if width in (4, 8, 16) else np.zeros_like(in_order)
    wanted = coalesced & active.any(axis=1, keepdims=True)
    segment = 64 if width == 4 else 128
    number = np.arange(lanes)
    size = np.where(active, SECTOR, 0)
    size = np.where(coalesced, 0, size) + np.where(
        wanted & (number < lanes * width // segment), segment, 0
    )
    address = np.where(coalesced, first + number * segment, addresses // SECTOR * SECTOR)
    return Transactions(address, size, _by_size(size))


def _segment(addresses: Ints, active: Bools, width: int) -> Transactions:
    """Compute capability 1.2 and 1.3."""
    segment = {1: 32, 2: 64}.get(width, 128)
    address, size = np.zeros_like(addresses), np.zeros_like(addresses)
    pending = active.copy()
    for number in range(addresses.shape[1]):
        if not pending.any():
            break
        lowest = np.take_along_axis(addresses, pending.argmax(axis=1)[:, None], axis=1)
        served = pending & (addresses // segment == lowest // segment)
        start, bytes_ = _shrink(lowest // segment * segment, segment, addresses, served, width)
        address[:, number] = start
        size[:, number] = np.where(served.any(axis=1), bytes_, 0)
        pending &= ~served
    return Transactions(address, size, _by_size(size))


def _shrink(
    start: Ints, segment: int, addresses: Ints, served: Bools, width: int
) -> tuple[Ints, Ints]:
    """Halve each segment while the lanes that it serves touch one half of it only."""
    low = np.where(served, addresses, NONE).min(axis=1)
    high = np.where(served, addresses + width - 1, -1).max(axis=1)
    start, size = start[:, 0].copy(), np.full(len(start), segment)
    while segment > SECTOR:
        segment //= 2
        whole = size == 2 * segment
        upper = whole & (low >= start + segment)
        size[upper | (whole & (high < start + segment))] = segment
        start[upper] += segment
    return start, size


def _line(addresses: Ints, active: Bools, width: int) -> Transactions:
    """Whole 128-byte lines."""
    number = _touched(addresses, active, width, LINE)
    size = _is_new(number) * LINE
    return Transactions(number * LINE, size, _by_size(size))


def _sector(addresses: Ints, active: Bools, width: int) -> Transactions:
    """32-byte sectors; those of one 128-byte line leave together."""
    number = _touched(addresses, active, width, SECTOR)
    new = _is_new(number)
    first = np.flatnonzero(new & _is_new(number // (LINE // SECTOR)))  # of each line
    before = np.cumsum(new.ravel())[first] - 1
    sectors = np.diff(before, append=np.count_nonzero(new))
    leaving = _count_sizes(first // number.shape[1], sectors * SECTOR, len(number))
    return Transactions(number * SECTOR, new * SECTOR, leaving)


def _collide(addresses: Ints, active: Bools, width: int) -> Transactions:
    """32-byte sectors, once more for each further lane on an address."""
    ordered = np.sort(np.where(active, addresses, NONE), axis=1)
    place = np.arange(ordered.shape[1])
    opens = np.where(_is_new(ordered), place, 0)
    turn = place - np.maximum.accumulate(opens, axis=1)
    key = np.sort(np.where(ordered == NONE, NONE, ordered // SECTOR * LINE + turn), axis=1)
    size = _is_new(key) * SECTOR
    return Transactions(key // LINE * SECTOR, size, _sector(addresses, active, width).leaving)


def _each(addresses: Ints, active: Bools, width: int) -> Transactions:
    """Every active lane on its own."""
    size = np.where(active, SECTOR, 0)
    return Transactions(addresses // SECTOR * SECTOR, size, _by_size(size))


def _touched(addresses: Ints, active: Bools, width: int, unit: int) -> Ints:
    """Return the numbers of the units that each group touches, sorted, NONE behind them."""
    first, last = addresses // unit, (addresses + width - 1) // unit
    if np.array_equal(first, last):
        return np.sort(np.where(active, first, NONE), axis=1)
    both = np.concatenate([first, last], axis=1)
    return np.sort(np.where(np.tile(active, 2), both, NONE), axis=1)


def _is_new(ordered: Ints) -> Bools:
    """Whether each of the sorted numbers of a group is the first of its value, and not NONE."""
    new = ordered < NONE // LINE
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return new


def _by_size(size: Ints) -> Ints:
    """Count the transactions of each group by size, (n, len(SIZES))."""
    group, number = np.nonzero(size)
    return _count_sizes(group, size[group, number], len(size))


def _count_sizes(group: Ints, size: Ints, groups: int) -> Ints:
    """Return (groups, len(SIZES)): how many transactions of each size belong to each group."""
    number = group * len(SIZES) + size // SECTOR - 1
    times = np.bincount(number, minlength=groups * len(SIZES))
    return times.reshape(groups, len(SIZES))


UNITS: Mapping[str, int] = {"line": LINE, "sector": SECTOR}
"""Rules by which each aligned unit that a group touches is a transaction, and its bytes."""

RULES: Mapping[str, Rule] = {
    "half_warp": _half_warp,
    "segment": _segment,
    "line": _line,
    "sector": _sector,
    "collide": _collide,
    "each": _each,
}


def _total(found: Transactions) -> Totals:
    """Add up what a rule made of groups."""
    many = np.asarray(np.count_nonzero(found.size, axis=1), np.int64)
    return Totals(many, found.size.sum(axis=1), found.leaving)


def _total_units(
    loops: ModuleType, addresses: Ints, active: Bools, width: int, unit: int
) -> Totals:
    """Add up what a rule of UNITS makes of groups, without listing it."""
    units = LINE // unit
    touched = np.zeros(len(addresses), np.int64)
    together = np.zeros((len(addresses), units), np.int64)
    shifts = unit.bit_length() - 1, units.bit_length() - 1
    loops.count_units(addresses, active, width, shifts, *make_table(), touched, together)
    leaving = np.zeros((len(addresses), len(SIZES)), np.int64)
    leaving[:, unit // SECTOR - 1 :] = together
    return Totals(touched, touched * unit, leaving)


def _largest(rule: str, width: int) -> int:
    """Return the largest transaction that a rule makes of `width` bytes a lane."""
    if rule == "half_warp":
        return 64 if width <= 4 else 128
    if rule == "segment":
        return {1: 32, 2: 64}.get(width, 128)
    return LINE if rule == "line" else SECTOR


@dataclass(frozen=True)
class Coalescer:
    """The rules of one device.

    `load`, `uncached_load`, `store`, `atomic` (reductions too) and `local` name rules.
    `request_lanes` and `merge_lanes` are lanes of a request, and lanes that share transactions,
    for up to 4, for 8, and for 16 bytes a lane.
    """

    load: str
    uncached_load: str
    store: str
    atomic: str
    local: str
    request_lanes: Sequence[int]
    merge_lanes: Sequence[int]

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
        """Refuse rules that do not exist, and groups that are no parts of a warp."""
        check_lanes("coalescer: request_lanes", self.request_lanes)
        check_lanes("coalescer: merge_lanes", self.merge_lanes)
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
            rule, alone = self._rule(kind), len(rows) == len(batch)
            active = batch.active if alone else batch.active[rows]
            for addresses, width in _words(
                kind, batch.addresses if alone else batch.addresses[rows]
            ):
                groups, mask = self._cut(addresses, active, width)
                loops = None if batch.passes_on or rule not in UNITS else touching_loops(len(rows))
                if loops:
                    totals = _total_units(loops, groups, mask, width, UNITS[rule])
                else:
                    found = RULES[rule](groups, mask, width)
                    totals = _total(found)
                self._enter(rule, totals, groups, mask, width, rows, counts)
                if batch.passes_on:
                    plain = kind.access in ("load", "store")
                    used = _fill(found, groups, mask, width) if plain else np.zeros_like(found.size)
                    lane = replace(kind, lane=width)
                    passed.append(_pass_on(lane, found, used, rows, batch))
        return Step(counts, join_batches(passed) if passed else None)

    def _cut(self, addresses: Ints, active: Bools, width: int) -> tuple[Ints, Bools]:
        """Return addresses and active lanes by groups of lanes that share transactions."""
        lanes = self.merge_lanes[(width > 4) + (width > 8)]
        return addresses.reshape(-1, lanes), active.reshape(-1, lanes)

    def _enter(
        self,
        rule: str,
        totals: Totals,
        groups: Ints,
        mask: Bools,
        width: int,
        rows: Ints,
        counts: Mapping[str, Ints],
    ) -> None:
        """Add the counts of one kind's rows."""
        largest = _largest(rule, width)
        ideal = -(-distinct_bytes(groups, mask, width) // largest)
        packed = -(-np.count_nonzero(mask, axis=1) * width // largest)
        lanes = self.request_lanes[(width > 4) + (width > 8)]
        asking: Bools = np.any(mask.reshape(-1, lanes), axis=1)
        for name, values in _count(rule, totals, ideal, packed, asking).items():
            counts[name][rows] += values.reshape(len(rows), -1).sum(axis=1)

    def _rule(self, kind: Kind) -> str:
        """Return the name of the rule that serves a kind."""
        if kind.space == "local":
            return self.local
        if kind.access == "load":
            return self.uncached_load if kind.cache in UNCACHED else self.load
        if kind.access == "store":
            return self.store
        return "sector" if self.atomic == "collide" and kind.collision == "elected" else self.atomic


def _words(kind: Kind, addresses: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield what the coalescer sees of an access: (addresses, bytes a lane), a pair a pass."""
    if kind.space != "local":
        yield addresses, kind.width
        return
    lane = 4 * np.arange(addresses.shape[1])
    for word in range(0, kind.width, 4):
        offset = addresses + word
        yield offset // 4 * LINE + lane + offset % 4, min(kind.width, 4)


def _count(
    rule: str, totals: Totals, ideal: Ints, packed: Ints, asking: Bools
) -> Mapping[str, Ints]:
    """Return each counter by group of lanes or, if there are more of these, by request."""
    sized = dict(zip(SIZES, totals.leaving.T, strict=True))
    nothing = np.zeros_like(ideal)
    old = rule in ("half_warp", "segment")
    alone = rule == "half_warp"  # where 32 bytes are the mark of a lane served by itself
    return {
        "split_requests": asking.astype(np.int64),
        "transactions": totals.transactions,
        "bytes_moved": totals.bytes_moved,
        "ideal_transactions": ideal,
        "packed_transactions": np.minimum(packed, _touched_by(rule, totals)),
        **{f"transactions_{size}": sized[size] for size in SIZES},
        "coherent_32": sized[32] if old and not alone else nothing,
        "coherent_64": sized[64] if old else nothing,
        "coherent_128": sized[128] if old else nothing,
        "incoherent_32": sized[32] if alone else nothing,
    }


def _touched_by(rule: str, totals: Totals) -> Ints:
    """Return the transactions of each group; the sectors that it touches if lanes collide."""
    if rule == "collide":
        sectors: Ints = totals.leaving @ (np.array(SIZES) // SECTOR)
        return sectors
    return totals.transactions


def _pass_on(kind: Kind, found: Transactions, filled: Ints, rows: Ints, batch: Batch) -> Batch:
    """Return the transactions of one kind as rows of one lane, for the next stage.

    `filled` (groups, k) is how many bytes of each the lanes read or write, 0 for all.
    """
    size = found.size.reshape(len(rows), -1)
    at, column = np.nonzero(size)
    pair = size[at, column] + filled.reshape(size.shape)[at, column] * _PAIRS
    pairs, number = np.unique(pair, return_inverse=True)
    return Batch(
        tuple(replace(kind, width=p % _PAIRS, filled=p // _PAIRS) for p in pairs.tolist()),
        number,
        found.address.reshape(len(rows), -1)[at, column][:, None],
        np.ones((len(at), 1), np.bool_),
        batch.row[rows[at]],
    )


def _fill(found: Transactions, addresses: Ints, active: Bools, width: int) -> Ints:
    """Return how many bytes of each sector lanes use, 0 where all; of larger ones nothing."""
    ordered = np.sort(np.where(active, addresses, NONE), axis=1)
    opens = np.flatnonzero(_is_new(ordered // SECTOR))
    filled = np.zeros_like(found.size)
    if filled.shape != ordered.shape or not np.array_equal(np.flatnonzero(found.size), opens):
        return filled
    same = np.zeros(ordered.shape, np.bool_)
    same[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    wants = np.where(same | (ordered == NONE), 0, width)
    if len(opens):
        filled.ravel()[opens] = np.add.reduceat(wants.ravel(), opens)
    return np.where(filled < SECTOR, filled, 0)
