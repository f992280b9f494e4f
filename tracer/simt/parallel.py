"""Waves on several threads, with the rows and the memory of one thread.

Each thread runs whole waves; compiled code holds no interpreter lock. A wave's rows are logged, and
written in the order of waves once all waves that ran beside it have ended and exchanged no data
(`ExchangeMarks`):

    thread 1   | wave 1 | wave 3   | wave 5 ...
    thread 2   | wave 2         | wave 4 |
                               ^ wave 1 is written: wave 2, which ran beside it, has ended

If waves do exchange data, or one of them faults, global memory is restored, and all waves are run
again in order: the rows that are written already are the same.
"""

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from threading import Condition, Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.interrupt import check_interrupt
from ...jit.loop_codegen import compile_routines
from ...jit.machine_code import address
from ...jit.structure import I32, I64, LENDER, U8, U32, Struct
from ...jit.value import assembly, greatest, least, trailing_zeros
from ...traces.schema import Space
from .access.reach import REFUSE
from .kernel.launch import REDUCTION, NullSink, Sink
from .rows.pattern import PatternTable
from .tier import LaunchTier
from .warp.instruction_set import InstructionSet
from .wave import WaveMaker, WavePools, pools_of

GLOBAL = int(Space.GLOBAL)
STORES, LOADS, UPDATES, LOCK, KINDS = 0, 1, 2, 3, 4
"""The bitmaps of a range, and a lock; a word of each, KINDS in all, lie side by side in memory."""
FULL = (1 << 32) - 1


class Marks(Struct):
    """Bitmaps of stores, loads and updates, a bit per 4 bytes of each range: `bits` has KINDS words
    side by side. The first `marked` of `places` are those with bits that are set.

    Range r is from `starts[r]` to `ends[r]`; its words begin at number `words[r]`. Rows: their
    `pc`, `space`, `base` and the number of their `pattern`, an entry of `active` and `offsets`.
    """

    ranges: int
    starts: I64
    ends: I64
    words: I64
    moves: I32
    bits: I64
    marked: int
    places: I32

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
        kind = STORES if moved < 0 else LOADS
        kind = UPDATES if moved < -REDUCTION else kind
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
            mark(k, kind, last, low, 32 * width)
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
                mark(k, kind, last, address, size)


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


def mark(k: Marks, kind: int, which: int, address: int, size: int) -> None:
    """Mark `size` bytes of a range."""
    bits = k.bits
    first = (address - k.starts[which]) >> 2
    last = (address - k.starts[which] + size - 1) >> 2
    while first <= last:
        word = k.words[which] + (first >> 6)
        low = first & 63
        high = min(last - first + low, 63)
        at = KINDS * word
        if bits[at + STORES] | bits[at + LOADS] | bits[at + UPDATES] == 0:
            k.places[k.marked] = word
            k.marked += 1
        if high - low == 63:
            bits[at + kind] = -1
        else:
            bits[at + kind] = bits[at + kind] | (((1 << (high - low + 1)) - 1) << low)
        first += high - low + 1


@assembly("""
define internal i64 @acquire(ptr %lock) {
  br label %try
try:
  %old = atomicrmw xchg ptr %lock, i64 1 acquire
  %free = icmp eq i64 %old, 0
  br i1 %free, label %done, label %try
done:
  ret i64 0
}
""")
def acquire(lock: I64) -> int:
    """Wait until the first element is 0, and set it."""
    raise NotImplementedError


@assembly("""
define internal i64 @release(ptr %lock) {
  store atomic i64 0, ptr %lock release, align 8
  ret i64 0
}
""")
def release(lock: I64) -> int:
    """Set the first element to 0."""
    raise NotImplementedError


def join_marks(k: Marks, earlier: Marks) -> int:
    """Add the marks of a chain to those of all chains, and clear them; return whether it exchanges
    data with one of these. Threads join at once: each place of `earlier` has a lock."""
    conflict = 0
    own = k.bits
    others = earlier.bits
    places = k.places
    for place in range(k.marked):
        at = KINDS * places[place]
        stores = own[at + STORES]
        loads = own[at + LOADS]
        updates = own[at + UPDATES]
        acquire(others[at + LOCK :])
        stored = others[at + STORES]
        loaded = others[at + LOADS]
        updated = others[at + UPDATES]
        others[at + STORES] = stored | stores
        others[at + LOADS] = loaded | loads
        others[at + UPDATES] = updated | updates
        release(others[at + LOCK :])
        conflict = conflict | (stores & (stored | loaded | updated))
        conflict = conflict | (loads & (stored | updated)) | (updates & (stored | loaded))
        own[at + STORES] = 0
        own[at + LOADS] = 0
        own[at + UPDATES] = 0
    k.marked = 0
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
        count = int(words.sum()) + 1
        k.bits, k.places = np.zeros(KINDS * count, np.int64), np.empty(count, np.int32)

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


AMPLE_LOGGED = 1 << 27
"""Bytes of logged rows from which on no wave begins before some are written."""

MOST_LOGGED = 1 << 30
"""Bytes of logged rows beyond which the waves are run in order: few waves have as many rows."""

START_SECONDS = 0.06
"""Seconds that work of one thread takes at least, to be worth threads."""

SAVED_RATE = 600e6
"""Bytes a second that are copied before threads begin, and looked at for exchanges."""

THREAD_SECONDS = 0.012
"""Seconds by which each further thread delays the others: its arrays get new pages. These three are
from twelve launches of 0.02 to 4 s on 1 to 16 threads of a virtual machine of 16 cores."""

AHEAD = 4
"""Chains per thread that may have begun before the first of them is written."""

CHAINS = 3
"""Chains per thread: few cost least between them, with many all threads end together."""

AMPLE_ROWS = 1 << 18
"""Rows of a chain of several waves, about."""

MOST_SAVED = 1 << 30
"""Bytes of global memory that are saved at most."""

FEW_BYTES = 1 << 22
"""Bytes that a thread copies, at least."""

INTERRUPTS = 0.05
"""Seconds between looks for an interrupt."""

MANY_PATTERNS = 1 << 12
"""Patterns of a thread after which it numbers them anew, to bound memory."""

KERNELS = 256

_EXCHANGES: dict[Hashable, None] = {}
"""Kernels of which a launch exchanged data between blocks, by key: their blocks run in order."""


class Stopped(Exception):
    """A wave ends because its launch does."""


def rename_rows(numbers: U32, count: int, names: U32) -> None:
    """Replace the numbers of rows' patterns by names."""
    for row in range(count):
        numbers[row] = names[numbers[row]]


class ThreadPatterns:
    """The patterns of a thread's waves by their numbers there, and their names in the launch.

    The names are those of an `epoch` of the launch's patterns (rows/pattern.py).
    """

    def __init__(self) -> None:
        self.count, self.epoch = 0, -1
        self.active: NDArray[np.uint32] = np.empty(1 << 8, np.uint32)
        self.offsets: NDArray[np.int32] = np.empty((1 << 8, 32), np.int32)
        self._names: NDArray[np.uint32] = np.empty(1 << 8, np.uint32)

    def add(self, active: NDArray[np.uint32], offsets: NDArray[np.int32]) -> int:
        """Number patterns; return the first number."""
        first, self.count = self.count, self.count + len(active)
        if self.count > len(self.active):
            room = 2 * self.count
            self.active = np.resize(self.active, room)
            self.offsets = np.resize(self.offsets, (room, 32))
        self.active[first : self.count] = active
        self.offsets[first : self.count] = offsets
        return first

    def set_names(self, first: int, names: NDArray[np.uint32]) -> None:
        """Set the names of patterns from number `first` on."""
        if first + len(names) > len(self._names):
            self._names = np.resize(self._names, 2 * (first + len(names)))
        self._names[first : first + len(names)] = names

    def names(
        self, numbers: NDArray[np.uint32], is_named: bool, patterns: PatternTable, sink: Sink
    ) -> NDArray[np.uint32]:
        """Return the names of rows' patterns; name those that the launch does not know."""
        if is_named:
            (rename,) = compile_routines(rename_rows)
            rename(address(numbers), len(numbers), address(self._names))
            return numbers
        used, places = np.unique(numbers, return_inverse=True)
        known = patterns.store.find(self.active[used], self.offsets[used])
        return patterns.write(known.astype(np.uint32)[places], sink)


class RowLog:
    """A sink that keeps the rows of a wave; it marks what they load and store."""

    def __init__(
        self,
        marks: ExchangeMarks,
        patterns: ThreadPatterns,
        check: Callable[[], None],
    ) -> None:
        self._marks, self._patterns, self._check = marks, patterns, check
        self._numbers = NullSink()
        self.puts: list[tuple[str, dict[str, Any], int]] = []
        self.bytes = 0

    def put(self, table: str, **columns: Any) -> int:
        """Keep rows."""
        self._check()
        own = self._patterns
        first = own.add(**columns) if table == "patterns" else self._numbers.put(table, **columns)
        if table == "accesses":
            self._marks.add(own.active, own.offsets.reshape(-1), **columns)
        self.puts.append((table, columns, first))
        self.bytes += sum([c.nbytes for c in columns.values() if isinstance(c, np.ndarray)])
        return first

    def write(self, patterns: PatternTable, sink: Sink) -> None:
        """Write the rows, with the numbers that patterns and paths have in the whole launch."""
        # New patterns of a thread come in order of first use, before the rows that use them: each
        # gets its name once. After the launch has forgotten its patterns, rows give the order.
        own, first_path = self._patterns, 0
        if own.epoch < 0:
            own.epoch = patterns.epoch
        is_named = own.epoch == patterns.epoch
        for table, columns, first in self.puts:
            if table == "patterns":
                is_named = own.epoch == patterns.epoch
                if is_named:
                    numbers = patterns.store.find(**columns).astype(np.uint32)
                    own.set_names(first, patterns.write(numbers, sink))
                continue
            if table == "accesses":
                columns["pattern"] = own.names(columns["pattern"], is_named, patterns, sink)
                is_named = own.epoch == patterns.epoch
            elif table == "control":
                columns["path"] += np.uint32(first_path)
            begin = sink.put(table, **columns)
            if table == "paths":
                first_path = begin - first


@dataclass(frozen=True, slots=True)
class _Ended:
    """A wave that has ended: its rows, and how many waves had begun by then."""

    log: RowLog
    begun: int


class _StoppableTier(LaunchTier):
    """The machine code of a launch for waves that end early if the launch does."""

    def __init__(self, tier: LaunchTier, check: Callable[[], None]) -> None:
        self.__dict__.update(vars(tier))
        self._check = check

    def spend(self, instructions: int) -> None:
        """Let the wave end."""
        self._check()


class _Threads:
    """Runs chains of waves on threads; gives their rows in order."""

    def __init__(
        self, code: InstructionSet, chains: Sequence[Sequence[NDArray[np.int64]]],
        tier: LaunchTier, stored: NDArray[np.int32], make_marks: Callable[[], ExchangeMarks],
    ) -> None:  # fmt: skip
        self._code, self._chains, self._stored = code, chains, stored
        self._tier = _StoppableTier(tier, self._check)
        self._make_marks, self._all_marks = make_marks, make_marks()
        self._changed = Condition()
        self._begun = self._checked = self._written = self._logged = 0
        self._ahead = 0
        self._ended: dict[int, _Ended] = {}
        self._stopped = np.zeros(1, np.int64)

    def run(
        self, jobs: int, patterns: PatternTable, sink: Sink, tell: Callable[[int], None]
    ) -> int:
        """Run the waves; return how many are written: all, unless they exchange data or fault."""
        ends = np.cumsum([0, *map(len, self._chains)]).tolist()
        memory, self._ahead = self._code.program.memory, AHEAD * jobs
        threads = [
            Thread(target=self._work, args=(pools_of(memory, number + 1),), daemon=True)
            for number in range(jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            while (log := self._next()) is not None:
                log.write(patterns, sink)
                tell(ends[self._written])
        finally:
            self._stop()
            for thread in threads:
                thread.join()
        return int(ends[self._written])

    def _next(self) -> RowLog | None:
        """Return the rows of the next chain, once they are certain; None at the end."""
        with self._changed:
            while not self._stopped[0] and self._written < len(self._chains):
                first = self._ended.get(self._written)
                if first is not None and self._checked >= first.begun:
                    del self._ended[self._written]
                    self._written += 1
                    self._logged -= first.log.bytes
                    self._changed.notify_all()
                    return first.log
                check_interrupt()
                self._changed.wait(INTERRUPTS)
            return None

    def _stop(self) -> None:
        with self._changed:
            self._stopped[0] = 1
            self._changed.notify_all()

    def _check(self) -> None:
        if self._stopped[0]:
            raise Stopped

    def _work(self, pools: WavePools) -> None:
        """Run one chain after another."""
        marks, patterns = self._make_marks(), ThreadPatterns()
        maker = WaveMaker(self._code, pools, self._tier, REFUSE, self._stored)
        pools.patterns.begin_launch()
        try:
            with np.errstate(all="ignore"):
                while (number := self._take()) is not None:
                    if patterns.count > MANY_PATTERNS:
                        patterns = ThreadPatterns()
                        pools.patterns.begin_launch()
                    log = RowLog(marks, patterns, self._check)
                    maker.run(self._chains[number], log, self._stopped)
                    self._end(number, log, marks)
            maker.close()
        except BaseException:  # a fault comes back when the waves are run in order
            self._stop()

    def _take(self) -> int | None:
        """Return the next chain to run."""
        with self._changed:
            while not self._stopped[0] and self._begun < len(self._chains):
                is_ahead = self._begun >= self._written + self._ahead
                if not is_ahead and self._logged < AMPLE_LOGGED:
                    self._begun += 1
                    return self._begun - 1
                self._changed.wait()
            return None

    def _end(self, number: int, log: RowLog, marks: ExchangeMarks) -> None:
        if marks.join(self._all_marks):
            raise Stopped
        with self._changed:
            self._logged += log.bytes
            if self._logged > MOST_LOGGED:
                raise Stopped
            self._ended[number] = _Ended(log, self._begun)
            while self._checked in self._ended:
                self._checked += 1
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class Work:
    """What waves cost: all of them `seconds` of one thread, each of them `rows`."""

    seconds: float
    rows: int


def threads_for(seconds: float, saved: int, most: int) -> int:
    """Return how many threads are worth it for work of so many seconds of one thread, before which
    `saved` bytes are copied; at most `most`. With n threads it takes seconds / n, and their start
    takes n times as long as that of one."""
    if seconds <= START_SECONDS + saved / SAVED_RATE:
        return 1
    return min(most, int(sqrt(seconds / THREAD_SECONDS)))


def run_on_threads(
    code: InstructionSet, waves: Sequence[NDArray[np.int64]], tier: LaunchTier,
    stored: NDArray[np.int32], jobs: int, work: Work, patterns: PatternTable, sink: Sink,
    tell: Callable[[int], None],
) -> int:  # fmt: skip
    """Run waves of machine code that store to no allocation but those `stored`; return how many of
    them are written, in order. If some are not, memory is as it was before. There are at most
    `jobs` threads, and none where they would cost more than they save.
    """
    moves, arena = code.traits.moves, code.program.memory.global_
    allocations = [arena.allocations[n] for n in np.flatnonzero(stored[: len(arena.allocations)])]
    saved_bytes = sum(a.size for a in allocations)
    jobs = threads_for(work.seconds, saved_bytes, jobs)
    if jobs < 2 or moves is None or code.key in _EXCHANGES or saved_bytes > MOST_SAVED:
        return 0
    chained = max(1, min(len(waves) // (CHAINS * jobs), AMPLE_ROWS // max(work.rows, 1)))
    starts = np.array([a.offset for a in allocations], np.int64)
    ends = starts + np.array([a.size for a in allocations], np.int64)
    saved = [(view := arena.view(each), _copy(view, jobs)) for each in allocations]
    chains = [waves[first : first + chained] for first in range(0, len(waves), chained)]
    threads = _Threads(code, chains, tier, stored, lambda: ExchangeMarks(moves, starts, ends))
    with LENDER.keep(MOST_LOGGED // 2):
        written = threads.run(jobs, patterns, sink, tell)
    if written < len(waves):
        for view, before in saved:
            view[:] = before
        if len(_EXCHANGES) >= KERNELS:
            _EXCHANGES.clear()
        _EXCHANGES[code.key] = None
    return written


def _copy(array: NDArray[np.uint8], threads: int) -> NDArray[np.uint8]:
    """Return a copy, made by threads: most of the time goes into new pages."""
    copy = np.empty_like(array)
    step = max(-(-len(array) // threads), FEW_BYTES)

    def copy_from(first: int) -> None:
        copy[first : first + step] = array[first : first + step]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(copy_from, range(0, len(array), step)))
    return copy
