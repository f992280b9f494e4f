"""Reuse: stack distances of lines, and the misses of LRU caches of all sizes.

What the hardware does: this model is not about hardware. The misses are those of LRU caches, one
per size of `sizes`, all in one pass: an LRU cache of C lines hits exactly if fewer than C other
lines were used since (Mattson, Gecsei, Slutz and Traiger 1970). A cache of several sets is as many
small ones.

What is modelled: `accesses` counts the sectors that loads request, `cold` a unit's first access to
each sector, and `misses_N` the misses of a cache of N bytes, per size. The stack distance of an
access is the number of other lines used since the last use of its line; `histogram` counts accesses
by it. `serves`, `operators`, `store`, `local_store` and `fetch` are as in a cache: a store that
allocates uses its line, and sectors that it covers whole hit later.

The model follows one of every `sampled` lines, chosen by a hash of its number, and multiplies
counts and distances by `sampled` (SHARDS: Waldspurger, Park, Garthwaite and Ahmad, FAST 2015). The
followed lines are divided into SHARES histograms; their differences give the sampling error.

What is not: a sector that several stores cover in pieces does not hit; a line that a store evicts,
or that an atomic bypasses, counts as used.

Source: Mattson and others, IBM Systems Journal 9 (1970); Olken, LBL-12370 (1981), for the tree.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from ..jit.loop import extend, loops_of
from .replay.histogram.hash_table import Table, enlarge, new_table
from .replay.histogram.stages import cut_at_lines
from .replay.interface.model import Batch, Ints, Kind, Step
from .replay.stateful import cache_sim, stack_distances
from .replay.stateful.stack_distances import (
    Counted,
    Head,
    Kinds,
    Lines,
    Requests,
    Shape,
    Stacks,
    Tree,
)

SLICE = 1 << 18
"""Requests that are measured at a time."""
SHARES = 32
"""Histograms of a sample."""
STORES = {
    "pass": stack_distances.PASS,
    "evict": stack_distances.EVICT,
    "through": stack_distances.FILL,
    "back": stack_distances.FILL,
}


@dataclass
class Reuse:
    """`line`, `sector` and `sizes` are in bytes, `sector` 0 for a line; the rest are a cache's
    keys.
    """

    line: int
    sizes: Sequence[int]
    serves: Sequence[str]
    sector: int = 0
    sets: int = 1
    operators: Sequence[str] = ()
    store: str = "pass"
    local_store: str = ""
    fetch: int = 0
    sampled: int = 1

    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    requests: int = field(default=0, init=False)
    _table: Table = field(default_factory=lambda: new_table(1), init=False, repr=False)
    _lines: tuple[Ints, ...] = field(default_factory=lambda: _empty(2), init=False, repr=False)
    _stacks: tuple[Ints, ...] = field(default_factory=lambda: _empty(4), init=False, repr=False)
    _tree: tuple[Ints, ...] = field(default_factory=lambda: _empty(3), init=False, repr=False)
    _head: Head = field(default_factory=Head, init=False, repr=False)
    histogram: Ints = field(
        default_factory=lambda: np.zeros((1, 2), np.int64), init=False, repr=False
    )
    """(shares, most + 2): the number of sectors never present, or at distance 0, 1, ... lines. A
    share is a set, with distances up to the largest size, or one of the SHARES of a sample.
    """

    def __post_init__(self) -> None:
        """Refuse impossible lines and sizes."""
        self.sector = self.sector or self.line
        for name in ("line", "sector", "sampled"):
            if (value := getattr(self, name)) < 1 or value & (value - 1):
                raise CutraceError(f"reuse: {name} = {value}; expected a power of two")
        if self.fetch % self.sector or self.line % (self.fetch or 1):
            raise CutraceError(
                f"reuse: {self.fetch} bytes fetched together; expected whole sectors"
            )
        whole = self.line * self.sets
        for size in self.sizes:
            if self.sets < 1 or size < whole or size % whole:
                raise CutraceError(
                    f"reuse: a size of {size} bytes; expected whole lines of {self.line}"
                    + (f" in each of {self.sets} sets" if self.sets != 1 else "")
                )
        for policy in (self.store, self.local_store or self.store):
            if policy not in STORES:
                raise CutraceError(
                    f"reuse: no policy `{policy}` for stores; there are {', '.join(STORES)}"
                )
        if self.sampled > 1 and self.sets > 1:
            raise CutraceError("reuse: a sample of lines says nothing of sets: sampled or sets")
        most = int(self._ways_by_size().max(initial=0)) if self.sets > 1 else 0
        shares = SHARES if self.sampled > 1 else self.sets
        self.histogram = np.zeros((shares, most + 2), np.int64)

    @property
    def counters(self) -> tuple[str, ...]:
        """All requested sectors, those never present, and the misses at each size."""
        return "accesses", "cold", *(f"misses_{size}" for size in self.sizes)

    def step(self, batch: Batch) -> Step:
        """Look up the requests in order."""
        loops = loops_of(stack_distances, len(batch))
        pieces, owners = cut_at_lines(batch, self.line, loops_of(cache_sim, 0))
        sizes, acts = np.array(
            [self._does(k) for k in pieces.kinds] or [(1, stack_distances.PASS)]
        ).T
        address, kind = pieces.addresses[:, 0], pieces.kind
        group = owners if pieces.group is None else pieces.group
        groups = len(batch) if batch.group is None else batch.groups
        unit = np.zeros(len(kind), np.int64) if pieces.unit is None else pieces.unit
        capacities, at = np.unique(self._ways_by_size(), return_inverse=True)
        counts = np.zeros((groups, len(capacities) + 2), np.int64)
        lookups = np.flatnonzero(acts[kind] != stack_distances.PASS)
        samples, share = self._choose(address // self.line, unit, lookups)
        for begin in range(0, len(samples), SLICE):
            some = samples[begin : begin + SLICE]
            some = some[np.argsort(unit[some].astype(np.int16), kind="stable")]
            columns = address, kind, unit, group, share
            part = Requests(*(column[some].astype(np.int64) for column in columns))
            self._measure(loops, part, Kinds(sizes, acts), capacities, counts)
        beyond = self.sampled * counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        accesses = beyond[:, 0]
        if self.sampled > 1:
            loads = lookups[acts[kind[lookups]] == stack_distances.LOAD]
            sectors = (address[loads] % self.sector + sizes[kind[loads]] - 1) // self.sector + 1
            accesses = np.bincount(group[loads], sectors, groups).astype(np.int64)
        self.requests += int(accesses.sum())
        columns = accesses, beyond[:, -1], *beyond[:, 1 + at].T
        return Step(dict(zip(self.counters, columns, strict=True)))

    @property
    def lines(self) -> int:
        """The number of lines that all units have used."""
        return self._table.size.keys * self.sampled

    def misses(self, lines: int) -> Ints:
        """Return per share the misses in a cache with `lines` lines (per set)."""
        far = self.histogram[:, 1 + -(-lines // self.sampled) :]
        missed: Ints = self.sampled * (self.histogram[:, 0] + far.sum(axis=1))
        return missed

    def _ways_by_size(self) -> Ints:
        """Return the ways at each size, in sampled lines."""
        lines = np.array(self.sizes, np.int64) // (self.line * self.sets)
        return -(-lines // self.sampled)

    def _does(self, kind: Kind) -> tuple[int, int]:
        """Return the bytes of a kind, and its act."""
        size = kind.filled or kind.width
        is_load = kind.access == "load"
        if kind.space not in self.serves:
            return size, stack_distances.PASS
        if is_load:
            is_cacheable = (
                kind.space != "global" or not self.operators or kind.cache in self.operators
            )
            return size, stack_distances.LOAD if is_cacheable else stack_distances.PASS
        policy = (kind.space == "local" and self.local_store) or self.store
        act = STORES[policy]
        if (
            act == stack_distances.FILL and kind.access != "store"
        ):  # an atomic fetches, or takes away
            act = stack_distances.FILL if policy == "back" else stack_distances.EVICT
        elif act == stack_distances.FILL and size % self.sector:
            act = stack_distances.TOUCH
        return size, act

    def _choose(self, lines: Ints, unit: Any, lookups: Ints) -> tuple[Ints, Ints]:
        """Return the indices of the requests to follow, of lines (n,), and the shares of all. Each
        unit follows other lines: that gives more information than the same lines everywhere.
        """
        if self.sampled == 1:
            return lookups, np.zeros(len(lines), np.int64)
        hashed = _mix(lines ^ unit.astype(np.int64) << 48)
        shares: Ints = hashed // self.sampled % SHARES
        return lookups[hashed[lookups] % self.sampled == 0], shares

    def _measure(
        self, loops: Any, requests: Requests, kinds: Kinds, capacities: Ints, counts: Ints
    ) -> None:
        """Measure some requests, after room is made for all that they may add."""
        self._make_room(len(requests.address), int(requests.unit.max(initial=0)) + 1)
        shape = Shape(
            self.line.bit_length() - 1,
            self.sector.bit_length() - 1,
            self.line // self.sector,
            max(1, self.fetch // self.sector),
            self.sets,
            1.0 / self.sets,
            self.histogram.shape[1] - 2,
        )
        state = (
            Lines(self._table, *self._lines),
            Stacks(*self._stacks),
            Tree(self._head, *self._tree),
        )
        loops.measure(requests, kinds, *state, shape, Counted(capacities, counts, self.histogram))

    def _make_room(self, many: int, units: int) -> None:
        """Allocate room for `many` further requests of `units` units."""
        line_count, used = self._table.size.keys, self._head.words
        size, stacks = line_count + many, units * self.sets
        self._table = enlarge(self._table, size)
        turn, worst = self._lines
        sectors = self.line // self.sector
        worst = _larger(worst, size * sectors, line_count * sectors)
        self._lines = _larger(turn, size, line_count), worst
        self._stacks = tuple(extend(each, stacks, 0) for each in self._stacks)
        turns = stack_distances.GROWS * (size + 1) + stack_distances.SMALLEST * min(many, stacks)
        words = used + turns // stack_distances.BITS + min(many, stacks)
        if len(self._tree[0]) < words:
            self._tree = tuple(
                _larger(each, words * size, used * size)
                for each, size in zip(self._tree, (1, 1, stack_distances.BITS), strict=True)
            )
        if self.sets == 1:
            most = int(self._stacks[Stacks._fields.index("lines")].max(initial=0)) + many
            self.histogram = np.stack([_larger(h, most + 2, len(h)) for h in self.histogram])


def _mix(numbers: Ints) -> Ints:
    """Return a pseudo-random hash: the last steps of MurmurHash3 (Appleby, 2011)."""
    mixed = numbers.astype(np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(factor)
    return (mixed >> np.uint64(33)).astype(np.int64)


def _empty(many: int) -> tuple[Ints, ...]:
    return (np.zeros(0, np.int64),) * many


def _larger(values: Ints, size: int, used: int) -> Ints:
    """Return a larger array with the used part copied; the rest is uninitialised."""
    if len(values) >= size:
        return values
    larger = np.zeros(2 * size, np.int64)
    larger[: len(values[:used])] = values[:used]
    return larger
