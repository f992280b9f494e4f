"""Whether thread blocks that run at the same time exchange data: one loads or stores what another
stores.

A wave marks the words of 4 bytes of global memory that it stores to, and those that it loads from
`ranges`, the allocations that a wave has stored to, in a bitmap each:

    wave 1   stores  11110000    loads  00000000
    wave 2   stores  00001111    loads  00010000   loads what wave 1 stores: an exchange

Waves that exchange nothing give the same rows and the same memory in any order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.loop_codegen import compile_routines
from ....jit.structure import I32, I64, U8, U32, Struct
from ....jit.value import assembly, greatest, least, trailing_zeros
from ....traces.schema import Space
from ..kernel.launch import REDUCTION

GLOBAL = int(Space.GLOBAL)
CHUNK = 64
"""Words of a bitmap that are compared, or skipped, together."""
FULL = (1 << 32) - 1


class Marks(Struct):
    """Bitmaps of `stores`, `loads` and `updates`, a bit per 4 bytes of each range; `touched` chunks
    of them.

    Range r is from `starts[r]` to `ends[r]`; its bits begin at the word `words[r]`. Rows: their
    `pc`, `space`, `base` and the number of their `pattern`, an entry of `active` and `offsets`.
    """

    ranges: int
    starts: I64
    ends: I64
    words: I64
    moves: I32
    stores: I64
    loads: I64
    updates: I64
    touched: U8
    chunks: int

    rows: int
    pc: U32
    space: U8
    base: I64
    pattern: U32
    active: U32
    offsets: I32


_STRIDES = ", ".join(f"i32 {lane}" for lane in range(32))


@assembly(f"""
declare i1 @llvm.vector.reduce.or.v32i1(<32 x i1>)
define internal i64 @is_dense(ptr %offsets, i64 %width) {{
  %a = load <32 x i32>, ptr %offsets, align 4
  %w = trunc i64 %width to i32
  %w0 = insertelement <32 x i32> poison, i32 %w, i64 0
  %ws = shufflevector <32 x i32> %w0, <32 x i32> poison, <32 x i32> zeroinitializer
  %e = mul <32 x i32> %ws, <{_STRIDES}>
  %c = icmp ne <32 x i32> %a, %e
  %d = call i1 @llvm.vector.reduce.or.v32i1(<32 x i1> %c)
  %n = xor i1 %d, true
  %r = zext i1 %n to i64
  ret i64 %r
}}
""")
def is_dense(offsets: I32, width: int) -> int:
    """Return whether the 32 lanes are contiguous, in order."""
    raise NotImplementedError


def mark_rows(k: Marks) -> None:
    """Mark the rows of global memory."""
    last = 0
    for row in range(k.rows):
        moved = k.moves[k.pc[row]]
        if k.space[row] != GLOBAL or moved == 0 or k.ranges == 0:
            continue
        bits = k.stores if moved < 0 else k.loads
        bits = k.updates if moved < -REDUCTION else bits
        width = max(moved, -moved) % REDUCTION
        pattern = k.pattern[row]
        offsets = k.offsets[32 * pattern :]
        base = k.base[row]
        lanes = k.active[pattern]
        low = base + least(offsets)
        high = base + greatest(offsets) + width
        last = range_touched(k, low, high, last)
        if last == k.ranges:
            last = 0
            continue
        is_inside = low >= k.starts[last] and high <= k.ends[last]
        is_dense_row = is_dense(offsets, width) or is_dense(offsets, -width)
        if lanes == FULL and is_inside and is_dense_row:
            mark(k, bits, last, low, 32 * width)
            continue
        while lanes:
            address = base + offsets[trailing_zeros(lanes)]
            size = width
            lanes = lanes & (lanes - 1)
            if is_inside:  # lanes that go on where this one ends
                while lanes and base + offsets[trailing_zeros(lanes)] == address + size:
                    size += width
                    lanes = lanes & (lanes - 1)
            else:
                last = range_at(k, address, last)
            if is_inside or (address >= k.starts[last] and address < k.ends[last]):
                mark(k, bits, last, address, size)


def range_touched(k: Marks, low: int, high: int, last: int) -> int:
    """Return a range with bytes from `low` to before `high`, first trying the last one; the number
    of ranges if there is none."""
    if high > k.starts[last] and low < k.ends[last]:
        return last
    which = 0
    while which < k.ranges and (high <= k.starts[which] or low >= k.ends[which]):
        which += 1
    return which


def range_at(k: Marks, address: int, last: int) -> int:
    """Return the range of an address, first trying the last one; any range if it is in none."""
    if address >= k.starts[last] and address < k.ends[last]:
        return last
    for which in range(k.ranges):
        if address >= k.starts[which] and address < k.ends[which]:
            return which
    return last


def mark(k: Marks, bits: I64, which: int, address: int, size: int) -> None:
    """Mark `size` bytes of a range."""
    first = (address - k.starts[which]) >> 2
    last = (address - k.starts[which] + size - 1) >> 2
    while first <= last:
        word = k.words[which] + (first >> 6)
        low = first & 63
        high = min(last - first + low, 63)
        if high - low == 63:
            bits[word] = -1
        else:
            bits[word] = bits[word] | (((1 << (high - low + 1)) - 1) << low)
        k.touched[word // CHUNK] = 1
        first += high - low + 1


def join_marks(k: Marks, earlier: Marks) -> int:
    """Add the marks of a wave to those of all waves, and clear them; return whether it exchanges
    data with one of these."""
    conflict = 0
    for chunk in range(k.chunks):
        if k.touched[chunk]:
            k.touched[chunk] = 0
            for word in range(CHUNK * chunk, CHUNK * (chunk + 1)):
                stores = k.stores[word]
                loads = k.loads[word]
                updates = k.updates[word]
                stored = earlier.stores[word]
                loaded = earlier.loads[word]
                updated = earlier.updates[word]
                conflict = conflict | (stores & (stored | loaded | updated))
                conflict = conflict | (loads & (stored | updated)) | (updates & (stored | loaded))
                earlier.stores[word] = stored | stores
                earlier.loads[word] = loaded | loads
                earlier.updates[word] = updated | updates
                k.stores[word] = 0
                k.loads[word] = 0
                k.updates[word] = 0
    return 1 if conflict != 0 else 0


class ExchangeMarks:
    """The marks of a wave, or of all waves, in these `ranges`: starts and ends (n,), as in rows."""

    def __init__(
        self, moves: NDArray[np.int32], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None:
        k = self._marks = Marks()
        words = -(-(ends - starts) // (4 * 64))
        k.ranges, k.starts, k.ends, k.moves = len(starts), starts, ends, moves
        k.words = np.concatenate(([0], np.cumsum(words)))
        k.chunks = -(-int(words.sum()) // CHUNK)
        for name in ("stores", "loads", "updates"):
            setattr(k, name, np.zeros(k.chunks * CHUNK + 1, np.int64))
        k.touched = np.zeros(k.chunks + 1, np.uint8)

    def add(
        self, active: NDArray[np.uint32], offsets: NDArray[np.int32], **rows: NDArray[Any]
    ) -> None:
        """Mark rows: columns of the table of accesses, and the patterns that they name."""
        k = self._marks
        k.active, k.offsets, k.rows = active, offsets, len(rows["pc"])
        for name in ("pc", "space", "base", "pattern"):
            setattr(k, name, rows[name])
        (mark_all,) = compile_routines(mark_rows)
        mark_all(k.address)

    def join(self, earlier: "ExchangeMarks") -> bool:
        """Pass the marks of a wave on to those of all; return whether the wave exchanges data."""
        (join_all,) = compile_routines(join_marks)
        return bool(join_all(self._marks.address, earlier._marks.address))
