"""The address patterns of a launch, interned: an active mask and 32 offsets.

Buffered rows name a pattern by its index in the hash table. Its identifier in the trace is assigned
when rows are written: rows are numbered by first use. So the dictionary depends on the rows alone,
not on when an engine interned its patterns.
"""

from random import Random

import numpy as np
from numpy.typing import NDArray

from ....jit.loop_codegen import compile_routines
from ....jit.machine_code import address
from ....jit.structure import I32, I64, U32, Struct
from ....jit.value import assembly, prefetch
from ..kernel.launch import Sink
from ..ops.lanes import LANES

_DRAWN = Random(20)
_ODD = [_DRAWN.getrandbits(31) | 1 for _ in range(LANES)]
AT_ONCE = 64
"""Patterns looked up as one batch: they fit into the L1 cache."""

FEW_PLACES = 1 << 14
"""Initial size of the hash table, which is cleared whenever patterns are forgotten: room for the
rows of a short launch."""

NONE = (1 << 32) - 1
"""The identifier of a pattern that no row has named yet."""

_WEIGHTS = ", ".join(f"i32 {weight}" for weight in _ODD)


class Table(Struct):
    """A hash table of `count` patterns: `active` (capacity,) and `offsets` (capacity * 32,).

    `places` uses open addressing: at a pattern's hash, or after it, its number + 1 (0: free).
    Patterns from before the last `forget` are not in it.
    """

    active: U32
    offsets: I32
    places: I32
    mask: int
    count: int


@assembly(f"""
declare i32 @llvm.vector.reduce.add.v32i32(<32 x i32>)
define internal i64 @hash_offsets(ptr %offsets, i64 %active) {{
  %a = load <32 x i32>, ptr %offsets, align 4
  %m = mul <32 x i32> %a, <{_WEIGHTS}>
  %s = call i32 @llvm.vector.reduce.add.v32i32(<32 x i32> %m)
  %w = zext i32 %s to i64
  %x = mul i64 %active, 11400714819323198485
  %y = xor i64 %x, %w
  %z = mul i64 %y, -49064778989728563
  %r = lshr i64 %z, 29
  ret i64 %r
}}
""")
def hash_offsets(offsets: I32, active: int) -> int:
    """Return a non-negative hash of a pattern."""
    raise NotImplementedError


@assembly("""
declare i1 @llvm.vector.reduce.or.v32i1(<32 x i1>)
define internal i64 @differ(ptr %p, ptr %q) {
  %a = load <32 x i32>, ptr %p, align 4
  %b = load <32 x i32>, ptr %q, align 4
  %c = icmp ne <32 x i32> %a, %b
  %d = call i1 @llvm.vector.reduce.or.v32i1(<32 x i1> %c)
  %r = zext i1 %d to i64
  ret i64 %r
}
""")
def differ(a: I32, b: I32) -> int:
    """Return 1 if the first 32 elements of two arrays differ, else 0."""
    raise NotImplementedError


@assembly("""
define internal i64 @copy_offsets(ptr %from, ptr %to) {
  %a = load <32 x i32>, ptr %from, align 4
  store <32 x i32> %a, ptr %to, align 4
  ret i64 0
}
""")
def copy_offsets(offsets: I32, to: I32) -> None:
    """Copy 32 elements."""
    raise NotImplementedError


def find_hashed(t: Table, hashed: int, active: int, offsets: I32) -> int:
    """Return the number of the pattern with this hash; insert it if it is new."""
    at = hashed & t.mask
    while t.places[at]:
        pattern = t.places[at] - 1
        if t.active[pattern] == active and not differ(t.offsets[32 * pattern :], offsets):
            return int(pattern)
        at = (at + 1) & t.mask
    pattern = t.count
    t.places[at] = pattern + 1
    t.active[pattern] = active
    copy_offsets(offsets, t.offsets[32 * pattern :])
    t.count = pattern + 1
    return pattern


def find_patterns(t: Table, count: int, active: U32, offsets: I32, numbers: I64) -> None:
    """Write the numbers of `count` patterns to `numbers`."""
    first = 0
    while first < count:
        last = min(first + AT_ONCE, count)
        for place in range(first, last):
            numbers[place] = hash_ahead(t, active[place], offsets[32 * place :])
        find_together(t, last - first, active[first:], offsets[32 * first :], numbers[first:])
        first = last


def hash_ahead(t: Table, active: int, offsets: I32) -> int:
    """Return a pattern's hash, and prefetch its place in the table for a later lookup."""
    hashed = hash_offsets(offsets, active)
    prefetch(t.places[hashed & t.mask])
    return int(hashed)


def find_together(t: Table, count: int, active: U32, offsets: I32, numbers: I64) -> None:
    """Look up at most AT_ONCE patterns: replace their hashes in `numbers` by their numbers."""
    for place in range(count):
        # First prefetch the candidates of the whole batch (128 bytes of offsets, two lines), then
        # compare: the cache misses overlap.
        pattern = t.places[numbers[place] & t.mask]
        if pattern:
            prefetch(t.offsets[32 * pattern - 32])
            prefetch(t.offsets[32 * pattern - 16])
    for place in range(count):
        numbers[place] = find_hashed(t, numbers[place], active[place], offsets[32 * place :])


def name_patterns(
    numbers: U32, count: int, identifiers: U32, first: int, names: U32, fresh: I64
) -> int:
    """Write the identifiers of `count` rows' patterns to `names`; return the number of new ones.

    A pattern without an identifier (NONE) gets the next one from `first` on, in order of rows, and
    its number is added to `fresh`.
    """
    new = 0
    for row in range(count):
        number = numbers[row]
        if identifiers[number] == NONE:
            identifiers[number] = first + new
            fresh[new] = number
            new += 1
        names[row] = identifiers[number]
    return new


def name_rows(
    numbers: NDArray[np.uint32], identifiers: NDArray[np.uint32], first: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the identifiers of rows' patterns, and the numbers of the patterns named for the
    first time.
    """
    names = np.empty(len(numbers), dtype=np.uint32)
    fresh = np.empty(len(numbers), dtype=np.int64)
    row_numbers = np.ascontiguousarray(numbers)
    ours, theirs = address(row_numbers), address(identifiers)
    (name,) = compile_routines(name_patterns)
    new = name(ours, len(row_numbers), theirs, first, address(names), address(fresh))
    return names, fresh[:new]


class PatternStore:
    """Numbers patterns by content, from 0 on; after `forget` equal ones get new numbers."""

    def __init__(self) -> None:
        self.table = Table()
        self._room: NDArray[np.int32] = np.empty(FEW_PLACES, dtype=np.int32)
        self._since = 0
        self._resize(1 << 10)
        self.forget(drop=True)

    @property
    def count(self) -> int:
        """The number of assigned numbers."""
        return self.table.count

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        t = self.table
        return int(t.active.nbytes + t.offsets.nbytes + self._room.nbytes)

    def forget(self, drop: bool = False) -> None:
        """Clear the hash table; with `drop` restart the numbers from 0, too."""
        if drop:
            self.table.count, self._places = 0, FEW_PLACES
        self._since = self.table.count
        self._rehash()

    def reserve(self, more: int) -> None:
        """Make room for `more` new patterns; keep the load factor at one half or less."""
        count = self.table.count
        if count + more > len(self.table.active):
            self._resize(max(count + more, 2 * len(self.table.active)))
        # Only patterns since `forget` are in the hash table: earlier ones do not count for its
        # load.
        if 2 * (count - self._since + more) > self._places:
            while 2 * (count - self._since + more) > self._places:
                self._places *= 4
            self._rehash()

    def find(self, active: NDArray[np.uint32], offsets: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the numbers (n,) of patterns: masks (n,) and offsets (n, 32)."""
        self.reserve(len(active))
        return self._find(active, offsets)

    def _find(self, active: NDArray[np.uint32], offsets: NDArray[np.int32]) -> NDArray[np.int64]:
        numbers = np.empty(len(active), dtype=np.int64)
        masks, lanes = np.ascontiguousarray(active), np.ascontiguousarray(offsets)
        places = (address(array) for array in (masks, lanes, numbers))
        (look_up,) = compile_routines(find_patterns)
        look_up(self.table.address, len(masks), *places)
        return numbers

    def take(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Return masks (n,) and offsets (n, 32) of patterns."""
        lanes = self.table.offsets.reshape(-1, LANES)  # indexing takes three times as long as take
        return self.table.active[numbers], lanes.take(numbers, axis=0)

    def _resize(self, capacity: int) -> None:
        count = self.table.count
        active = np.empty(capacity, dtype=np.uint32)
        offsets = np.empty(capacity * LANES, dtype=np.int32)
        if count:
            active[:count] = self.table.active[:count]
            offsets[: count * LANES] = self.table.offsets[: count * LANES]
        self.table.active, self.table.offsets = active, offsets

    def _rehash(self) -> None:
        """Reinsert the patterns since `forget` into a larger table, in order, so that they
        keep their numbers.
        """
        if len(self._room) < self._places:
            self._room = np.zeros(self._places, dtype=np.int32)
            self.table.places = self._room
        else:
            self.table.places = self._room[: self._places]
            self.table.places[:] = 0
        self.table.mask = self._places - 1
        count, self.table.count = self.table.count, self._since
        if count > self._since:
            self._find(*self.take(np.arange(self._since, count)))


EPOCH = 1 << 16
"""Written patterns after which all are forgotten, to bound memory."""


class PatternTable:
    """Interns patterns, and assigns trace identifiers to those that rows name.

    `epoch` is incremented when all are forgotten: cached numbers are invalid then. `waves` is the
    number of waves with buffered rows. Successive launches share one table.
    """

    def __init__(self) -> None:
        self.store = PatternStore()
        self.epoch = -1
        self._identifiers: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self.begin_launch()

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.store.nbytes + self._identifiers.nbytes

    def begin_launch(self) -> None:
        """Reset for a new launch: identifiers start from 0."""
        self.waves = 0
        self._written = 0
        self._forget()

    def write(self, numbers: NDArray[np.uint32], sink: Sink) -> NDArray[np.uint32]:
        """Return the identifiers of rows' patterns; write new patterns to the sink first."""
        self._grow()
        names, fresh = name_rows(numbers, self._identifiers, self._written)
        if len(fresh):
            active, offsets = self.store.take(fresh)
            first = sink.put("patterns", active=active, offsets=offsets)
            if first != self._written:
                raise AssertionError(f"pattern {self._written} was given the identifier {first}")
            self._written += len(fresh)
        if self._written - self._epoch_start >= EPOCH:
            self._forget()
        return names

    def _grow(self) -> None:
        """Make room for the identifiers of all numbered patterns."""
        if self.store.count > len(self._identifiers):
            more = np.full(2 * self.store.count - len(self._identifiers), NONE, dtype=np.uint32)
            self._identifiers = np.concatenate((self._identifiers, more))

    def _forget(self) -> None:
        """Begin a new epoch."""
        # Other waves' buffered rows still name patterns by number: then numbers must not be reused.
        is_sole_wave = self.waves <= 1
        if is_sole_wave:
            self._identifiers[: self.store.count] = NONE
        self.store.forget(drop=is_sole_wave)
        self.epoch += 1
        self._epoch_start = self._written


class Questions(Struct):
    """A batch of `count` lookups: `active` (AT_ONCE,), `offsets` (AT_ONCE * 32,) and hashes in
    `numbers`.

    The resulting numbers are written to the rows at `row`, and to the last patterns at `last`.
    """

    count: int
    active: U32
    offsets: I32
    numbers: I64
    row: I64
    last: I64


def no_questions() -> Questions:
    """Return an empty batch."""
    q = Questions()
    q.numbers, q.row, q.last = np.empty((3, AT_ONCE), dtype=np.int64)
    q.active = np.empty(AT_ONCE, dtype=np.uint32)
    q.offsets = np.empty(AT_ONCE * LANES, dtype=np.int32)
    return q


def enqueue(q: Questions, t: Table, active: int, row: int, last: int) -> None:
    """Add a lookup; its offsets are in `offsets` already."""
    q.numbers[q.count] = hash_ahead(t, active, q.offsets[32 * q.count :])
    q.active[q.count] = active
    q.row[q.count] = row
    q.last[q.count] = last
    q.count += 1


def answer(q: Questions, t: Table, rows: I32, lasts: I32) -> None:
    """Look up the whole batch, and write the results."""
    find_together(t, q.count, q.active, q.offsets, q.numbers)
    for place in range(q.count):
        rows[q.row[place]] = q.numbers[place]
        lasts[q.last[place]] = q.numbers[place]
    q.count = 0
