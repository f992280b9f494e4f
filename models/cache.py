"""Cache: sector hits, fills, write-backs, and the requests to the next stage.

What the hardware does. A cache has lines, each with a tag and some sectors. A load hits if its line
and sectors are present. A missing sector is fetched, in portions of `fetch` bytes. A missing line
replaces a victim in its set: the least recently used line, or another by the `policy`.

What is modelled, by the keys of each unit in the device's TOML:

- L1 of 2.x: lines of 128 bytes, fetched whole. A global store evicts its line (`evict`). A local
  store makes its line dirty, and the line is written back when it is evicted (`back`). On 3.x L1
  holds local memory only; from 3.5 on the texture cache holds read-only loads.
- L1 from 7.0 on: a store is written through to L2 (`through`), and allocates a line too. A load
  hits the sectors that were stored whole, or word by word. An atomic is passed to L2 and
  invalidates its sectors. A store to a line that an earlier store allocated hits, unless the
  earlier one is in flight: more than `on_the_way[0]` and at most `on_the_way[1]` cycles old. For
  this age L1 has a clock, which each instruction advances by 8 cycles, and by one more for each
  line that it looks up in the bank of tags with most of its lines.
- Merged stores (`merged_lines`, known of 9.0 only): a store waits some 10 to 30 cycles before it
  leaves L1 for L2, and takes along what the SM stores to its sector meanwhile. So it does here if
  the SM has stored to fewer than `merged_lines` lines in between, in one turn of its warps, without
  a load. Stores of a warp that are at most 8 instructions apart are in one turn. If an SM has more
  than 4 warps, its other schedulers store to three times as many lines between two of a warp's. If
  it has fewer, stores leave sooner: an instruction that stores to one line, and does not merge,
  counts as half of `merged_lines` and one, to fewer than a third of them as a third and one.
- L2: a store is written back when its line is evicted (`back`). L2 executes atomics. At most
  `dirty_bytes` of the cache are dirty, and lines with a partly stored sector have at most
  `partial_bytes`; both limits are divided equally among the sets. Beyond a limit the least recently
  used such line of the set is written back. A partly stored sector is fetched first, unless memory
  can write single bytes (`masks`).
- Constant and texture caches: loads only.

`serves` are the state spaces that the cache holds, `operators` the cache operators of the global
loads that it holds (default: all); other requests are passed to the next stage. `reads` and
`writes` count the sectors looked up, `read_hits` and `write_hits` those that hit, `fills` sectors
fetched, and `write_backs` sectors written by evictions. A cache with `wavers` is pseudo-LRU: it
evicts the least recently used line or the next one, at random. With S sets, S neighbouring lines
are in S different sets, one after another; the next S lines begin at another set, by a hash, so
that no power-of-two stride fills a few sets only.

What is not: time. A load of a sector in flight is a hit, as on the measured chip. That merges fewer
stores of warps that no barrier has joined, or with arithmetic between, none beyond a fence or with
`L1::no_allocate`, and more beyond a load that nobody waits for.
`models/replay/schedule` decides the order of warps. Sectors that are dirty at the end of a launch
are not written back. Every launch starts with empty caches, or (`--l2 warm`) with what the same
launch left in L2.

Source: CUDA C Programming Guide 7.5, G.3 to G.5; Nsight Compute 2022.3 Profiling Guide;
docs/validation.md for stores and atomics in L1, portions of 64 bytes, and sizes on 9.0;
`tests/validate/test_merged_stores.py` for merged stores.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError, nearest
from ..jit.loop import aligned, compile_module, extend, loops_of, rows_asked
from ..jit.value import Fixed
from .replay.histogram.histogram import Pool, Repeated
from .replay.histogram.stages import cut_at_lines, slices_of
from .replay.interface.model import ACCESSES, Batch, Ints, Kind, Step, one_lane
from .replay.stateful import cache_sim, row_lines
from .replay.stateful.cache_sim import Head, Kinds, Lines, Passed, Requests, Shape
from .replay.stateful.reorder_loops import Chosen

Columns: TypeAlias = tuple[Ints, ...]
POLICIES = {
    "pass": cache_sim.NO_ALLOCATE,
    "evict": cache_sim.EVICT,
    "through": cache_sim.THROUGH,
    "back": cache_sim.BACK,
}
REPLACEMENTS = {
    "lru": cache_sim.LRU,
    "fifo": cache_sim.FIFO,
    "random": cache_sim.RANDOM,
    "rrip": cache_sim.RRIP,
}
ACTS = {"load": cache_sim.READ, "store": cache_sim.WRITE}
SLICE = 1 << 15
"""Requests that are served at a time."""
BLOCK = 1 << 8
"""Lines of repeated rows that are computed ahead of their lookup."""
SLOTS = 1 << 10
"""Slots for recent lines of a unit."""
ROW = np.dtype(
    [
        *(("number", "<i4"), ("unit", "<i4"), ("shift", "<i8"), ("time", "<i8")),
        *(("group", "<i4"), ("row", "<i4"), ("turn", "<i8")),
    ]
)
"""The fields of `row_lines.Rows`: 40 contiguous bytes."""
PIECES = ("i4", "i8", "u1", "i4", "i4", "i4", "i4")
"""The types of `row_lines.Pieces`, in as few bytes as hold them, since random rows have many
pieces.
"""
MOST_SECTORS = 8
"""The most sectors of a line: the bits of a mask."""
WORD = 4
"""Bytes of a word, which is present as a whole or not, in a write-through cache."""

_NONE = np.zeros(0, np.int64)


@dataclass
class Cache:
    """One unit, by the keys of its stage.

    - `bytes`, `line`, `sector`: sizes, the last two powers of two.
    - `sets`: the number of sets, of as many whole lines each as `bytes` hold; or in its place
      `ways`: lines per set, with as many sets as fit.
    - `serves`: state spaces. `operators`: cache operators of global loads, none for all.
    - `store`, and `local_store` where local memory differs: `pass` (stores and atomics bypass the
      cache), `evict`, `through` or `back`.
    - `fetch`: bytes per fetch, 0 for a sector.
    - `dirty_bytes`: the most dirty bytes, 0 for no limit. `partial_bytes`: the same for lines with
      partially stored sectors.
    - `masks`: whether memory writes single bytes; where words have a check code (ECC) it cannot.
    - `on_the_way`: the two ages of a store in cycles.
    - `merged_lines`: the lines within which stores of a turn merge, 0 for none.
    - `wavers`: whether the victim may be the second-oldest line under `lru`.
    - `policy`: the replacement policy, a key of REPLACEMENTS. `seed`: of `random`.

    A stage also has `model`, `from` and `scope`, and `beside_shared = true` if `bytes` include
    shared memory: `models/replay/device/wiring.py`.
    """

    bytes: int
    line: int
    sector: int
    serves: Sequence[str]
    sets: int | None = None
    ways: int | None = None
    operators: Sequence[str] = ()
    store: str = "pass"
    local_store: str = ""
    fetch: int = 0
    dirty_bytes: int = 0
    partial_bytes: int = 0
    masks: bool = False
    wavers: bool = False
    on_the_way: Sequence[int] = ()
    merged_lines: int = 0
    policy: str = "lru"
    seed: int = 0

    counters: ClassVar[tuple[str, ...]] = (
        "reads",
        "read_hits",
        "writes",
        "write_hits",
        "fills",
        "write_backs",
    )
    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    _sets: int = field(default=0, init=False, repr=False)
    _ways: int = field(default=0, init=False, repr=False)
    _lines: Ints = field(default_factory=_NONE.copy, init=False, repr=False)
    _set_places: Ints = field(default_factory=_NONE.copy, init=False, repr=False)
    _clocks: Ints = field(default_factory=_NONE.copy, init=False, repr=False)
    _queues: Ints = field(default_factory=_NONE.copy, init=False, repr=False)
    _rows: Any = field(default_factory=lambda: np.empty(0, ROW), init=False, repr=False)
    _used: int = field(default=0, init=False, repr=False)
    _passed: Columns = field(default=(_NONE,) * 3, init=False, repr=False)
    _most: int = field(default=0, init=False, repr=False)
    _kind_tables: Any = field(default=((), (), ()), init=False, repr=False)
    _pool: Pool | None = field(default=None, init=False, repr=False)
    _lookups: Ints = field(default_factory=_NONE.copy, init=False, repr=False)
    _pieces: Any = field(default=(), init=False, repr=False)
    _is_within: bool = field(default=False, init=False, repr=False)
    _now: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse impossible geometries and policies."""
        for name in ("line", "sector"):
            if (value := getattr(self, name)) < 1 or value & (value - 1):
                raise CutraceError(f"cache: {name} = {value}; expected a power of two")
        if not self.sector <= self.line <= MOST_SECTORS * self.sector:
            raise CutraceError(
                f"cache: lines of {self.line} bytes in sectors of {self.sector}; "
                f"expected 1 to {MOST_SECTORS} sectors a line"
            )
        if self.fetch % self.sector or self.line % (self.fetch or 1):
            raise CutraceError(
                f"cache: {self.fetch} bytes fetched together; expected whole sectors of "
                f"{self.sector} bytes, and a line of {self.line} in equal parts"
            )
        self._divide()
        # the most that one request passes on: two lines written back, one fetched, and itself
        self._most = 5 * (self.line // self.sector) + 1
        if self.merged_lines < 0:
            raise CutraceError("cache: merged_lines: expected no number below zero")
        if min(self.fetch, self.dirty_bytes, self.partial_bytes) < 0:
            raise CutraceError(
                "cache: fetch, dirty_bytes and partial_bytes: expected no number below zero"
            )
        if (ages := list(self.on_the_way)) and (len(ages) != 2 or not 0 <= ages[0] <= ages[1]):
            raise CutraceError(f"cache: on_the_way = {ages}; expected two ages, the lesser first")
        for policy in (self.store, self.local_store or self.store):
            if policy not in POLICIES:
                raise CutraceError(
                    f"cache: no policy `{policy}` for stores; there are {', '.join(POLICIES)}"
                    + nearest(policy, POLICIES)
                )
        if self.policy not in REPLACEMENTS:
            raise CutraceError(
                f"cache: no replacement policy `{self.policy}`; there are "
                f"{', '.join(REPLACEMENTS)}{nearest(self.policy, REPLACEMENTS)}"
            )
        for space in self.serves:
            if space not in ACCESSES:
                raise CutraceError(f"cache: no state space {space!r}{nearest(space, ACCESSES)}")

    def _divide(self) -> None:
        """Compute the number of sets and ways."""
        options = {name: getattr(self, name) for name in ("sets", "ways")}
        options = {name: many for name, many in options.items() if many is not None}
        if len(options) != 1 or min(options.values()) < 1:
            summary = " and ".join(f"{name} = {many}" for name, many in options.items())
            raise CutraceError(
                f"cache: {summary or 'neither sets nor ways'}; expected one of sets and ways, at "
                "least 1"
            )
        (many,) = options.values()
        lines = self.bytes // self.line
        self._sets = self.sets or lines // many
        self._ways = self.ways or lines // many
        if min(self._sets, self._ways) < 1:
            raise CutraceError(
                f"cache: {self.bytes} bytes are too few; expected "
                f"{self.line * many} at least, {many} lines of {self.line}"
            )

    @property
    def _shape(self) -> Shape:
        """Return the geometry; loops are compiled for what is `Fixed`."""
        wavers = self.wavers and self.policy == "lru"
        near, far = self.on_the_way or (0, 0)
        dirty, partial = self._share(self.dirty_bytes), self._share(self.partial_bytes)
        return Shape(
            self._ways,
            Fixed(self.line.bit_length() - 1),
            Fixed(self.sector.bit_length() - 1),
            Fixed(max(1, self.fetch // self.sector)),
            Fixed(near),
            Fixed(far),
            Fixed(self.merged_lines),
            Fixed(wavers),
            Fixed(REPLACEMENTS[self.policy]),
            Fixed(self.masks),
            self.seed,
            self._sets,
            1.0 / self._sets,
            *dirty,
            *partial,
        )

    def _share(self, many: int) -> tuple[int, int]:
        """Return the number of ways that hold a number of bytes, and the lines left over."""
        return divmod(many // self.line, self._sets) if many else (self._ways, 0)

    def step(self, batch: Batch) -> Step:
        """Serve the requests in order; the loop is compiled once there were many requests."""
        loops = loops_of(cache_sim, len(batch))
        pieces, owners = cut_at_lines(batch, self.line, loops)
        unit = np.zeros(len(pieces), np.int64) if pieces.unit is None else pieces.unit
        group = owners if pieces.group is None else pieces.group
        kinds, onward = self._encode_kinds(pieces.kinds)
        is_asked = kinds.act[pieces.kind] != cache_sim.PASS
        time = self._now + np.cumsum(is_asked)
        turn = np.zeros(len(pieces), np.int64) if pieces.turn is None else pieces.turn
        request_columns = (pieces.addresses[:, 0], pieces.kind, pieces.row, unit, group, time, turn)
        groups = len(batch) if batch.group is None else batch.groups
        counts = np.zeros((groups, len(self.counters)), np.int64)
        parts: list[Columns] = [(_NONE,) * 3]
        for part in slices_of(pieces.row, SLICE):
            requests = Requests(*(np.ascontiguousarray(column[part]) for column in request_columns))
            parts.append(self._serve(loops, requests, kinds, counts))
        self._now += int(is_asked.sum())
        passed = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return self._answer(counts, onward, passed if batch.passes_on else None)

    def step_repeated(self, rows: Repeated) -> Step | None:
        """Serve requests of repeated rows, unit by unit; None where `step` must serve them."""
        if rows_asked[cache_sim.__name__] + len(rows.rows) < cache_sim.WORTH:
            return None
        compiled: Any = compile_module(row_lines.__name__)
        distinct = self._cut(compiled, rows.pool)
        if not self._is_within:
            return None
        units = np.zeros(len(rows.rows), np.int32) if rows.unit is None else rows.unit
        turns = _NONE if rows.turn is None else rows.turn
        many = 1 + int(units.max(initial=0))
        if len(self._rows) < len(units):
            self._rows = aligned(len(units), ROW)
        sorted_rows = row_lines.Rows(
            *(self._rows[name][: len(units)] for name in row_lines.Rows._fields)
        )
        chosen = Chosen(*(rows.rows[name] for name in Chosen._fields))
        starts = np.zeros(1 + many, np.int64)
        requests, now, bits = compiled.arrange(
            distinct.pool.first, self._lookups, chosen, units, turns, self._now, starts, sorted_rows
        )
        if bits & (self.line - 1):
            return None
        self._now = now
        rows_asked[cache_sim.__name__] += requests
        self._make_room(many)
        kinds, onward = self._encode_kinds(rows.pool.kinds)
        counts = np.zeros((rows.groups, len(self.counters)), np.int64)
        passed = self._serve_rows(compiled, distinct, sorted_rows, requests, kinds, counts)
        return self._answer(counts, onward, passed if rows.passes_on else None)

    def _answer(self, counts: Ints, kinds: tuple[Kind, ...], passed: Iterable[Ints] | None) -> Step:
        out = None
        if passed is not None:
            address, kind, row = passed
            out = one_lane(kinds, kind, address, row)
        return Step(dict(zip(self.counters, counts.T, strict=True)), out)

    def _cut(self, compiled: Any, pool: Pool) -> row_lines.Distinct:
        """Cut the rows of a pool into pieces, and find out whether each request is within one
        line.
        """
        if self._pool is not pool:
            kinds, _ = self._encode_kinds(pool.kinds)
            widths = np.array([kind.width for kind in pool.kinds] or [0], np.int64)
            over = (pool.address & (self.line - 1)) + widths[pool.kind] > self.line
            is_asked = kinds.act[pool.kind] != cache_sim.PASS
            offsets = np.concatenate([[0], np.cumsum(is_asked)])[pool.first]
            size = max(len(pool.first), 1 + len(pool.kind))
            self._pieces = row_lines.Pieces(*(np.empty(size, column) for column in PIECES))
            compiled.cut_pieces(
                row_lines.Distinct(pool.columns(), self._pieces), kinds, self._shape
            )
            self._pool, self._lookups, self._is_within = pool, np.diff(offsets), not over.any()
        return row_lines.Distinct(pool.columns(), self._pieces)

    def _serve_rows(
        self,
        compiled: Any,
        distinct: row_lines.Distinct,
        rows: row_lines.Rows,
        requests: int,
        kinds: Kinds,
        counts: Ints,
    ) -> Columns:
        """Serve and count rows; return the requests passed on, in order."""
        longest = int(np.diff(distinct.pool.first).max(initial=0))
        *columns, bases = np.empty((8, longest), np.int64)
        near = row_lines.Near(*np.empty((3, max(BLOCK, longest)), np.int64))
        recent = row_lines.Recent(*np.empty((3, SLOTS), np.int64))
        head, begin, most = self._new_head(), 0, longest * self._most
        while begin < len(rows.number):
            capacity = head.passed + requests + most
            self._passed = tuple(extend(column, capacity, 0) for column in self._passed)
            scratch = Requests(*columns), near, recent
            cache = self._cache(head, counts, bases)
            begin = compiled.serve_rows(distinct, rows, begin, most, *scratch, kinds, cache)
        self._used = head.allocated
        ordered = tuple(np.empty((3, head.passed), np.int64))
        starts = np.zeros(len(rows.number) + 1, np.int64)
        compiled.put_back(Passed(head, *self._passed), starts, Passed(head, *ordered))
        return ordered

    def _serve(self, loops: ModuleType, requests: Requests, kinds: Kinds, counts: Ints) -> Columns:
        """Serve and count a slice; return the requests passed on: address, kind and row."""
        self._make_room(1 + int(requests.unit.max()))
        if len(self._passed[0]) < (capacity := len(requests.address) * self._most):
            self._passed = tuple(np.empty((3, capacity), np.int64))
        head = self._new_head()
        bases = np.empty_like(requests.address)
        loops.simulate(requests, kinds, self._cache(head, counts, bases))
        self._used = head.allocated
        return tuple(column[: head.passed].copy() for column in self._passed)

    def _new_head(self) -> Head:
        head = Head()
        head.allocated = self._used
        return head

    def _cache(self, head: Head, counts: Ints, bases: Ints) -> cache_sim.Cache:
        """Return the state with all its units."""
        fields = (self._lines[self._ways * number :] for number in range(cache_sim.FIELDS))
        return cache_sim.Cache(
            Lines(*fields),
            self._set_places,
            self._clocks,
            self._queues,
            self._shape,
            cache_sim.Counts(*counts.T),
            Passed(head, *self._passed),
            bases,
        )

    def _make_room(self, units: int) -> None:
        """Allocate the sets of `units` units, and lines for all of them: pages that are not touched
        take no memory.
        """
        self._set_places = extend(self._set_places, units * self._sets, cache_sim.EMPTY)
        self._clocks = extend(self._clocks, units, 0)
        self._queues = extend(self._queues, 2 * units, 0)
        most = len(self._set_places) * self._ways * cache_sim.FIELDS
        if len(self._lines) < most:
            larger = aligned(most, np.dtype(np.int64))
            larger[: self._used] = self._lines[: self._used]
            self._lines = larger

    def _act(self, kind: Kind) -> tuple[int, int]:
        """Return the act of requests of a kind, and the write policy of its stores."""
        local = kind.space == "local" and self.local_store
        policy = POLICIES[local or self.store]
        act = ACTS.get(kind.access, cache_sim.ATOMIC)
        if kind.space not in self.serves or (
            act != cache_sim.READ and policy == cache_sim.NO_ALLOCATE
        ):
            return cache_sim.PASS, policy
        is_eligible = kind.space != "global" or not self.operators or kind.cache in self.operators
        return (act if is_eligible or act != cache_sim.READ else cache_sim.PASS), policy

    def _encode_kinds(self, kinds: tuple[Kind, ...]) -> tuple[Kinds, tuple[Kind, ...]]:
        """Return kinds as `cache_sim.py` takes them, and those of requests passed on."""
        if kinds is self._kind_tables[0]:
            return self._kind_tables[1:]  # type: ignore[no-any-return]
        onward: dict[Kind, int] = {}
        rows = []
        for kind in kinds:
            sector = replace(kind, width=self.sector, image=None, filled=0)
            written, merged = replace(sector, access="store"), replace(kind, merged=True)
            moves = replace(sector, access="load"), kind, written, merged
            numbers = [onward.setdefault(move, len(onward)) for move in moves]
            rows.append((*self._does(kind), not kind.merged, *numbers))
        columns = np.array(rows, np.int64).reshape(-1, len(Kinds._fields)).T.copy()
        self._kind_tables = kinds, Kinds(*columns), tuple(onward)
        return self._kind_tables[1:]  # type: ignore[no-any-return]

    def _does(self, kind: Kind) -> tuple[int, int, int, int]:
        """Return bytes, act, policy and parts of a kind."""
        size = kind.filled or kind.width
        act, policy = self._act(kind)
        lost = kind.filled and 0 < kind.lane < WORD
        if act == cache_sim.WRITE and policy == cache_sim.THROUGH and lost:
            return size, act, policy, 0
        return size, act, policy, -(-size * cache_sim.PARTS // self.sector)
