"""Which words of global memory waves that run side by side have read and written, compiled."""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....native.machine_code import compile_assembly
from ..native.language import I32, I64, U8, U32, Struct, trailing_zeros
from ..native.translate import translate
from ..rows.pattern_table import Table

WORD_BITS = 2
"""A mark stands for a word of 4 bytes."""

READS, WRITES, UPDATES = 1, 2, 4
_WIDE = 8
"""What an access does to memory, and the unit of the bytes of a lane, as Rows has them."""

FURTHEST = 16
"""Bytes of a lane at most: lanes that lie further apart leave gaps."""

_ALL = (1 << 32) - 1


class Rows(Struct):
    """`count` rows: the instruction, where the lowest active lane's bytes lie, and the pattern.

    Of each instruction `ways` is what it does plus _WIDE times the bytes of a lane, 0 if it does
    not reach global memory. Patterns are `active` and `offsets` (n * 32,), `last` (n,) is the
    offset of the highest active lane. `forms` (n,) is 0 for those not looked at yet, else one more
    than the bytes from each lane to the next, which may lie on top of it instead, more than
    FURTHEST + 1 where there is no such number. A word has a bit in `reads`,
    `writes` and `updates`: by atomics that leave the same in any order.
    """

    count: int
    pc: U32
    base: I64
    pattern: U32
    ways: I32
    active: U32
    offsets: I32
    forms: U8
    last: I32
    reads: U32
    writes: U32
    updates: U32


def mark_rows(r: Rows) -> None:
    """Mark what the rows reach."""
    pcs = r.pc
    bases = r.base
    patterns = r.pattern
    ways = r.ways
    forms = r.forms
    lasts = r.last
    for row in range(r.count):
        way = ways[pcs[row]]
        if way:
            width = way // _WIDE
            pattern = patterns[row]
            if forms[pattern] == 0:
                find_form(r, pattern)
            if forms[pattern] <= width + 1:
                start = bases[row]
                end = start + lasts[pattern] + width
                if way & READS:
                    mark_range(r.reads, start, end)
                if way & WRITES:
                    mark_range(r.writes, start, end)
                if way & UPDATES:
                    mark_range(r.updates, start, end)
            else:
                if way & READS:
                    mark_lanes(r, r.reads, pattern, bases[row], width)
                if way & WRITES:
                    mark_lanes(r, r.writes, pattern, bases[row], width)
                if way & UPDATES:
                    mark_lanes(r, r.updates, pattern, bases[row], width)


def mark_lanes(r: Rows, bits: U32, pattern: int, base: int, width: int) -> None:
    """Mark the words of each lane of a row."""
    offsets = r.offsets[32 * pattern :]
    rest = r.active[pattern]
    while rest:
        start = base + offsets[trailing_zeros(rest)]
        mark_range(bits, start, start + width)
        rest = rest & (rest - 1)


def find_form(r: Rows, pattern: int) -> None:
    """Find the form of a pattern, and its last active lane's offset."""
    rest = r.active[pattern]
    before = 0
    step = 0
    while rest:
        offset = r.offsets[32 * pattern + trailing_zeros(rest)]
        apart = offset - before
        if step == 0 and apart > 0:
            step = min(apart, FURTHEST + 1)
        if apart != 0 and apart != step:
            step = FURTHEST + 1
            rest = 0
        before = offset
        rest = rest & (rest - 1)
    r.forms[pattern] = step + 1
    r.last[pattern] = before


def mark_range(bits: U32, start: int, end: int) -> None:
    """Mark the words of bytes `start` to `end`."""
    word = start >> 2
    last = (end - 1) >> 2
    while word >> 5 < last >> 5:
        bits[word >> 5] = bits[word >> 5] | (_ALL - ((1 << (word & 31)) - 1))
        word = ((word >> 5) + 1) << 5
    bits[word >> 5] = bits[word >> 5] | ((2 << (last & 31)) - (1 << (word & 31)))


class Meeting(Struct):
    """`words` words of marks of one, and of others."""

    words: int
    reads: I64
    writes: I64
    updates: I64
    others_read: I64
    others_wrote: I64
    others_updated: I64


def find_clash(m: Meeting) -> int:
    """Return, laid over each other, the words in which one has changed what others have reached, or
    reached what others have changed, unless both have updated it."""
    reads = m.reads
    writes = m.writes
    updates = m.updates
    read = m.others_read
    wrote = m.others_wrote
    updated = m.others_updated
    both = 0
    for word in range(m.words):
        both = both | (writes[word] & (read[word] | wrote[word] | updated[word]))
        both = both | (reads[word] & (wrote[word] | updated[word]))
        both = both | (updates[word] & (read[word] | wrote[word]))
    return both


def way_of(opcode: str, size: int) -> int:
    """Return what a global access of `size` bytes a lane does, as Rows has it."""
    does = {"st": WRITES, "atom": UPDATES, "red": UPDATES}.get(opcode, READS)
    return does + _WIDE * size


@cache
def _routines() -> tuple[Callable[[int], int], Callable[[int], int]]:
    mark = compile_assembly(translate([mark_rows]), vectors=False)("mark_rows")
    find = compile_assembly(translate([find_clash]))("find_clash")
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
    return kind(mark), kind(find)


class Marks:
    """The words of `size` bytes of memory that the waves of one thread reach; `ways` as Rows has
    them."""

    def __init__(self, ways: NDArray[np.int32], size: int) -> None:
        words = -(-size // (64 << WORD_BITS)) + 1
        self.reads: NDArray[np.int64] = np.zeros(words, dtype=np.int64)
        self.writes: NDArray[np.int64] = np.zeros(words, dtype=np.int64)
        self.updates: NDArray[np.int64] = np.zeros(words, dtype=np.int64)
        self._rows = Rows()
        self._rows.ways = ways
        self._rows.reads = self.reads.view(np.uint32)
        self._rows.writes = self.writes.view(np.uint32)
        self._rows.updates = self.updates.view(np.uint32)
        self.begin_wave(0)

    def begin_wave(self, patterns: int = 0) -> None:
        """Forget the forms of patterns; have room for so many."""
        self._rows.forms = np.zeros(patterns, dtype=np.uint8)
        self._rows.last = np.zeros(patterns, dtype=np.int32)

    def mark(
        self, pc: NDArray[np.uint32], base: NDArray[np.uint64], pattern: NDArray[np.uint32],
        table: Table,
    ) -> None:  # fmt: skip
        """Mark what rows reach; `table` has their patterns."""
        r = self._rows
        if table.count > len(r.forms):
            self.begin_wave(2 * table.count)
        r.count, r.pc, r.base, r.pattern = len(pc), pc, base.view(np.int64), pattern
        r.active, r.offsets = table.active, table.offsets
        _routines()[0](r.address)


def do_clash(marks: Sequence[Marks]) -> bool:
    """Whether one has changed what another has reached, other than by updates of both."""
    m = Meeting()
    first, *others = marks
    read, wrote, updated = first.reads, first.writes, first.updates
    for other in others:
        m.words, m.reads, m.writes, m.updates = len(read), other.reads, other.writes, other.updates
        m.others_read, m.others_wrote, m.others_updated = read, wrote, updated
        if _routines()[1](m.address):
            return True
        if other is not others[-1]:
            read, wrote = read | other.reads, wrote | other.writes
            updated = updated | other.updates
    return False
