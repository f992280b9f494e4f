"""The dictionary of address patterns of a launch: an active mask and 32 offsets, by content.

While rows wait their patterns have numbers of the hash table. Identifiers of the trace are given
when rows are written, in the order in which the rows name them first: so the dictionary follows
from the rows alone, however the engine came to look its patterns up.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray

from ....jit.loop_codegen import translate
from ....jit.machine_code import address, compile_assembly
from ....jit.structure import I32, I64, U32, Struct
from ....jit.value import assembly, prefetch
from ..kernel.launch import Sink
from ..ops.lanes import LANES, Array, Bits

_DRAWN = Random(20)
_ODD = [_DRAWN.getrandbits(31) | 1 for _ in range(LANES)]
AT_ONCE = 64
"""Patterns that are looked up together: they fit into the nearest cache."""

FEW_PLACES = 1 << 12
"""Places of a table of hashes at first: all are emptied when patterns are forgotten."""

NONE = (1 << 32) - 1
"""The identifier of a pattern that no row has named."""

_WEIGHTS = ", ".join(f"i32 {weight}" for weight in _ODD)


class Table(Struct):
    """`count` patterns, `active` (capacity,) and `offsets` (capacity * 32,); `places` holds at the
    hash of a pattern, or after it, its number + 1 (0: nothing), for those from `first` on."""

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
    """Return a number that is mostly different for different patterns; not below 0."""
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
    """Return 1 if the first 32 elements of two arrays are not the same, else 0."""
    raise NotImplementedError


@assembly("""
define internal i64 @copy_offsets(ptr %from, ptr %to) {
  %a = load <32 x i32>, ptr %from, align 4
  store <32 x i32> %a, ptr %to, align 4
  ret i64 0
}
""")
def copy_offsets(offsets: I32, to: I32) -> None:
    """Put 32 elements of an array into another."""
    raise NotImplementedError


def find_hashed(t: Table, hashed: int, active: int, offsets: I32) -> int:
    """Return the number of a pattern with this hash, a new one if it is not in the table."""
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
    """Put the numbers of `count` patterns into `numbers`."""
    first = 0
    while first < count:
        last = min(first + AT_ONCE, count)
        for place in range(first, last):
            numbers[place] = hash_ahead(t, active[place], offsets[32 * place :])
        find_together(t, last - first, active[first:], offsets[32 * first :], numbers[first:])
        first = last


def hash_ahead(t: Table, active: int, offsets: I32) -> int:
    """Return the hash of a pattern that is looked up later: its place is on its way."""
    hashed = hash_offsets(offsets, active)
    prefetch(t.places[hashed & t.mask])
    return int(hashed)


def find_together(t: Table, count: int, active: U32, offsets: I32, numbers: I64) -> None:
    """Put the numbers of AT_ONCE patterns at most into `numbers`, which has their hashes."""
    for place in range(count):
        pattern = t.places[numbers[place] & t.mask]
        if pattern:
            prefetch(t.offsets[32 * pattern - 32])
            prefetch(t.offsets[32 * pattern - 16])
    for place in range(count):
        numbers[place] = find_hashed(t, numbers[place], active[place], offsets[32 * place :])


def name_patterns(
    numbers: U32, count: int, identifiers: U32, first: int, names: U32, fresh: I64
) -> int:
    """Put the identifiers of `count` rows' patterns into `names`; those that have none, NONE, get
    the next from `first` on, in order, and go into `fresh`. Return how many these are."""
    new = 0
    for row in range(count):
        number = numbers[row]
        if identifiers[number] == NONE:
            identifiers[number] = first + new
            fresh[new] = number
            new += 1
        names[row] = identifiers[number]
    return new


@cache
def _routines() -> tuple[Callable[..., int], Callable[..., int]]:
    """Return the compiled find_patterns and name_patterns."""
    find = compile_assembly(translate([find_patterns, name_patterns]), vectors=False)
    place, number = ctypes.c_void_p, ctypes.c_int64
    look = ctypes.CFUNCTYPE(number, place, number, place, place, place)
    name = ctypes.CFUNCTYPE(number, place, number, place, number, place, place)
    return look(find("find_patterns")), name(find("name_patterns"))


def name_rows(
    numbers: NDArray[np.uint32], identifiers: NDArray[np.uint32], first: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the identifiers of rows' patterns, and the numbers of those that were named now."""
    names = np.empty(len(numbers), dtype=np.uint32)
    fresh = np.empty(len(numbers), dtype=np.int64)
    row_numbers = np.ascontiguousarray(numbers)
    ours, theirs = address(row_numbers), address(identifiers)
    new = _routines()[1](ours, len(row_numbers), theirs, first, address(names), address(fresh))
    return names, fresh[:new]


class PatternStore:
    """Numbers patterns by content, from 0 on; `forget` lets equal ones be new again."""

    def __init__(self) -> None:
        self.table = Table()
        self._room: NDArray[np.int32] = np.empty(FEW_PLACES, dtype=np.int32)
        self._since = 0
        self._resize(1 << 10)
        self.forget(drop=True)

    @property
    def count(self) -> int:
        """How many numbers were given."""
        return self.table.count

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        t = self.table
        return int(t.active.nbytes + t.offsets.nbytes + self._room.nbytes)

    def forget(self, drop: bool = False) -> None:
        """Find no earlier pattern again; with `drop` the numbers start from 0 again too."""
        if drop:
            self.table.count, self._places = 0, FEW_PLACES
        self._since = self.table.count
        self._rehash()

    def reserve(self, more: int) -> None:
        """Make room for so many new patterns."""
        count = self.table.count
        if count + more > len(self.table.active):
            self._resize(max(count + more, 2 * len(self.table.active)))
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
        _routines()[0](self.table.address, len(masks), *places)
        return numbers

    def take(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """Return masks (n,) and offsets (n, 32) of patterns."""
        lanes = self.table.offsets.reshape(-1, LANES)  # [numbers] would take three times as long
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
        """Put the patterns since `forget` into a new table of places, in order: they keep their
        numbers."""
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
"""Patterns remembered at most when a batch of rows has been written; then none is."""


class PatternTable:
    """Gives numbers to patterns, and identifiers to those that rows name.

    `epoch` grows when all are forgotten, and what had a number has to be looked up again. `waves`
    is how many waves have rows that wait. Launches use one in turn.
    """

    def __init__(self) -> None:
        self.store = PatternStore()
        self.epoch = -1
        self._identifiers: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self.begin_launch()

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self.store.nbytes + self._identifiers.nbytes

    def begin_launch(self) -> None:
        """Forget the launch before: identifiers start from 0 again."""
        self.waves = 0
        self._written = 0
        self._forget()

    def intern(self, active: Bits, offsets: Array) -> NDArray[np.uint32]:
        """Return the numbers (n,) of patterns given as masks (n,) and offsets (n, 32).

        An empty mask is no pattern: it gets number 0, since nothing accesses memory there.
        """
        if not (on := active != 0).all():
            identifiers = np.zeros(len(active), dtype=np.uint32)
            if on.any():
                identifiers[on] = self.intern(active[on], offsets[on])
            return identifiers
        narrow = offsets.astype(np.int32, copy=False)
        if len(active) > 1 and bool((active == active[0]).all() and (narrow == narrow[0]).all()):
            one = self.store.find(active[:1], narrow[:1])
            return np.full(len(active), one[0], dtype=np.uint32)
        return self.store.find(active, narrow).astype(np.uint32)

    def write(self, numbers: NDArray[np.uint32], sink: Sink) -> NDArray[np.uint32]:
        """Return the identifiers of the patterns of rows, after handing new ones to the sink."""
        self._grow()
        names, fresh = name_rows(numbers, self._identifiers, self._written)
        if len(fresh):
            self._hand_over(fresh, sink)
        if self._written - self._epoch_start >= EPOCH:
            self._forget()
        return names

    def _hand_over(self, fresh: NDArray[np.int64], sink: Sink) -> None:
        active, offsets = self.store.take(fresh)
        first = sink.put("patterns", active=active, offsets=offsets)
        if first != self._written:
            raise AssertionError(f"pattern {self._written} was given the identifier {first}")
        self._written += len(fresh)

    def _grow(self) -> None:
        """Make room for the identifiers of the patterns that have numbers by now."""
        if self.store.count > len(self._identifiers):
            more = np.full(2 * self.store.count - len(self._identifiers), NONE, dtype=np.uint32)
            self._identifiers = np.concatenate((self._identifiers, more))

    def _forget(self) -> None:
        """Begin a new epoch; numbers are used again unless rows of another wave wait."""
        is_sole_wave = self.waves <= 1
        if is_sole_wave:
            self._identifiers[: self.store.count] = NONE
        self.store.forget(drop=is_sole_wave)
        self.epoch += 1
        self._epoch_start = self._written


class Questions(Struct):
    """`count` patterns: `active` (AT_ONCE,) and `offsets` (AT_ONCE * 32,), and their hashes in
    `numbers`; the number of each goes into the rows at `row` and the last patterns at `last`."""

    count: int
    active: U32
    offsets: I32
    numbers: I64
    row: I64
    last: I64


def no_questions() -> Questions:
    """Return room for AT_ONCE patterns."""
    q = Questions()
    q.numbers, q.row, q.last = np.empty((3, AT_ONCE), dtype=np.int64)
    q.active = np.empty(AT_ONCE, dtype=np.uint32)
    q.offsets = np.empty(AT_ONCE * LANES, dtype=np.int32)
    return q


def enqueue(q: Questions, t: Table, active: int, row: int, last: int) -> None:
    """Add the pattern that lies in `offsets` already, behind those that wait."""
    q.numbers[q.count] = hash_ahead(t, active, q.offsets[32 * q.count :])
    q.active[q.count] = active
    q.row[q.count] = row
    q.last[q.count] = last
    q.count += 1


def answer(q: Questions, t: Table, rows: I32, lasts: I32) -> None:
    """Look up all that wait."""
    find_together(t, q.count, q.active, q.offsets, q.numbers)
    for place in range(q.count):
        rows[q.row[place]] = q.numbers[place]
        lasts[q.last[place]] = q.numbers[place]
    q.count = 0
