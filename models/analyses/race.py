"""Race: accesses of different warps to the same shared memory that no barrier orders.

Hardware: the warps of a block run at their own speed; only `__syncthreads()` makes each wait until
all have arrived. Where one warp stores what another loads or stores, without a barrier between, the
result depends on timing.

Model: two accesses race if they come from different warps of one block, share a byte of shared
memory, at least one of them writes, and both warps have passed equally many barriers. Atomics do
not race with each other, nor do loads and stores with `relaxed`, `acquire` or `release`; they do
race with a plain access. Lanes of one warp never race.

Limits: a trace has no values, so two warps that store the same number also count as a race. Locks
and flags in memory do not order accesses. An asynchronous copy counts as a store at its issue.
Launches are refused if a barrier is for some warps only, is chosen by a register or a predicate, or
is mixed with `mbarrier`.

Source: PTX ISA 8.8, 8 (memory consistency model) and 9.7.13.1 (`bar`, `barrier`); CUDA C++
Programming Guide 13, 7.6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.out_of_bounds import coordinates
from ...traces.schema import LANES, Array, Launch, Space
from ...traces.unique import sorted_unique
from ..replay.interface.model import Bools, Ints
from ..replay.rows.lanes import unpack_masks
from ..replay.rows.patterns import Patterns, read_patterns
from ..replay.rows.sites import SPACES, broken, element_bytes, read_sites
from ..replay.schedule.barrier_intervals import Intervals, read_intervals
from ..replay.schedule.episodes import (
    Episodes,
    Rows,
    find_openings,
    gather,
    list_ranges,
    pack_columns,
)

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace


ROWS = 1 << 14
"""Rows that are expanded to lanes at a time: half a million lanes."""
CELLS = 1 << 22
"""Cells per part of the episodes, unless a single episode has more."""
WIDEST = 16
"""The most bytes of a cell."""
MEMORY = 1 << 28
"""The most bytes of shared memory per block; a trace with more is broken."""
LOAD, STORE, ATOMIC = range(3)
"""The access types; atomics do not race with each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """The access of each instruction to shared memory, (pcs,): `act` is LOAD, STORE or ATOMIC,
    `width` is in bytes per lane.
    """

    act: Ints
    width: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """Lanes at cells, (n,): `cell` is its number within a part, `row` a row of the part; `opens` is
    whether the lane's bytes begin in this cell.
    """

    cell: Ints
    row: Ints
    lane: Ints
    opens: Bools

    def take(self, which: Ints | Bools) -> "Touches":
        """Return the selected touches."""
        return Touches(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some distinct episodes, with a common numbering of their cells of `size` bytes.

    Cell c of episode `numbers[e]` has number e * span + c. Per row of `rows`, `episode` is its e,
    and `warp` its warp in the block.
    """

    numbers: Ints
    rows: Rows
    episode: Ints
    warp: Ints
    size: int
    span: int

    def spread(
        self, patterns: Patterns, effects: Effects, rows: Ints | None = None
    ) -> Iterator[Touches]:
        """Yield the touched cells of all lanes of the rows, or of the selected rows, a few rows at
        a time.
        """
        rows = np.arange(len(self.rows)) if rows is None else rows
        for start in range(0, len(rows), ROWS):
            yield self._spread(patterns, effects, rows[start : start + ROWS])

    def _spread(self, patterns: Patterns, effects: Effects, rows: Ints) -> Touches:
        pattern = self.rows.pattern[rows]
        on = np.flatnonzero(unpack_masks(patterns.active[pattern]))
        address = self.rows.base[rows][:, None] + patterns.offsets[pattern]
        row, lane = rows[on >> 5], on & 31
        cell = address.reshape(-1)[on] // self.size + self.episode[row] * self.span
        lengths = effects.width[self.rows.pc[rows]] // self.size
        touches = Touches(cell, row, lane, np.ones(len(cell), np.bool_))
        if lengths.max(initial=1) == 1:
            return touches
        lengths = lengths[on >> 5]
        repeated = touches.take(np.repeat(np.arange(len(cell)), lengths))
        further = np.arange(len(repeated.cell)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return replace(repeated, cell=repeated.cell + further, opens=further == 0)


def cut_parts(
    episodes: Episodes, warps: Ints, patterns: Patterns, effects: Effects, limit: int
) -> Iterator[Part]:
    """Yield the episodes with several warps and a write, a few at a time.

    `warps` maps an owner to its warp in the block. Raises `CutraceError` for addresses
    outside the block's `limit` bytes of shared memory.
    """
    rows = episodes.rows
    if not len(rows):
        return
    size, span = _measure(rows, patterns, effects, limit)
    act, warp = effects.act[rows.pc], warps[rows.owner]
    opens = episodes.first[:-1]
    several = np.minimum.reduceat(warp, opens) != np.maximum.reduceat(warp, opens)
    writes = np.logical_or.reduceat(act != LOAD, opens)
    plain = np.logical_or.reduceat(act != ATOMIC, opens)
    conflicts = np.flatnonzero(several & writes & plain)
    together = max(1, CELLS // span)
    for start in range(0, len(conflicts), together):
        numbers = conflicts[start : start + together]
        lengths = np.diff(episodes.first)[numbers]
        indices = list_ranges(opens[numbers], lengths)
        episode = np.repeat(np.arange(len(numbers)), lengths)
        yield Part(numbers, rows.take(indices), episode, warp[indices], size, span)


def _measure(rows: Rows, patterns: Patterns, effects: Effects, limit: int) -> tuple[int, int]:
    """Return the size of a cell, and the number of cells that cover all touched bytes."""
    used = sorted_unique(rows.pattern)
    width = effects.width[sorted_unique(rows.pc)]
    low = rows.base + patterns.lowest[rows.pattern]
    end = rows.base + patterns.highest[rows.pattern] + effects.width[rows.pc]
    if low.min() < 0 or end.max() > min(limit, MEMORY):
        raise broken(f"shared-memory accesses outside the {limit} bytes of a block")
    odd = WIDEST
    for values in (rows.base, patterns.offsets[used].reshape(-1), width):
        odd |= int(np.bitwise_or.reduce(values))
    size = odd & -odd
    return size, -(-int(end.max()) // size)


def find_contested(part: Part, patterns: Patterns, effects: Effects) -> Bools:
    """Return per cell whether several warps touch it, one of them writing, and one with a plain
    access.
    """
    cells = len(part.numbers) * part.span
    owner = np.full(cells, -1, np.int16)
    several, written, plain = (np.zeros(cells, np.bool_) for _ in range(3))
    for touches in part.spread(patterns, effects):
        warp = part.warp[touches.row].astype(np.int16)
        act = effects.act[part.rows.pc[touches.row]]
        unowned = owner[touches.cell] < 0
        owner[touches.cell[unowned]] = warp[unowned]
        several[touches.cell[owner[touches.cell] != warp]] = True
        written[touches.cell[act != LOAD]] = True
        plain[touches.cell[act != ATOMIC]] = True
    return several & written & plain


Triple = tuple[int, int, int]

ACTS = ("load", "store", "atomic")
"""Names of LOAD, STORE and ATOMIC."""
_ORDERED = frozenset({"relaxed", "acquire", "release", "acq_rel", "mmio"})


@dataclass(frozen=True, slots=True)
class Party:
    """One side of a race: an instruction that a warp ran, and its lanes at the address.

    `act` is load, store or atomic; `inlined_at` is the inline call stack of its line, innermost
    first.
    """

    act: str
    pc: int
    file: str
    line: int
    inlined_at: tuple[tuple[str, int], ...]
    text: str
    warp: int
    step: int
    lanes: tuple[int, ...]
    threads: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Race:
    """All races between two source lines, and the first of them: lowest block, then interval, then
    address.

    `first` has the lower step. `element` counts from the start of `variable` in units of `itemsize`
    bytes; without a known variable, from the start of the block's memory. `pairs` counts pairs of
    accesses by threads, `blocks` the blocks with a race.
    """

    first: Party
    second: Party
    block: Triple
    interval: int
    address: int
    variable: str
    element: int
    itemsize: int
    pairs: int
    blocks: int


@dataclass(frozen=True, slots=True)
class RaceCheck:
    """The races of a launch, in order of source lines; `refusal` is the reason why the launch was
    not checked, or empty.
    """

    launch: Launch
    number: int
    races: tuple[Race, ...]
    refusal: str = ""


def find_races(trace: "LaunchTrace") -> RaceCheck:
    """Check one launch; raises `CutraceError` for a broken trace."""
    if not trace.launch.kept.is_whole:
        return RaceCheck(trace.launch, trace.number, (), "the launch was recorded in part")
    intervals = read_intervals(trace)
    if intervals.refusal:
        return RaceCheck(trace.launch, trace.number, (), intervals.refusal)
    search = _Search(trace, intervals)
    for episodes in gather(trace, intervals):
        search.look_at(episodes)
    return RaceCheck(trace.launch, trace.number, search.races())


@dataclass(frozen=True, slots=True)
class _LineRaces:
    """Races between two lines so far: `race` is the first, at `key` (block, interval, address,
    sides); `blocks` are all with a race, rising.
    """

    key: tuple[int, ...]
    race: Race
    pairs: int
    blocks: Ints


class _Search:
    """Searches a launch's episodes. A side is 3 * place + act; a place is a source line."""

    def __init__(self, trace: "LaunchTrace", intervals: Intervals) -> None:
        self._launch = trace.launch
        self._warps = intervals.warps % trace.launch.warps
        self._patterns = read_patterns(*trace.patterns())
        self._instructions = trace.instructions()
        self._effects = _read_effects(self._instructions)
        self._sides = 3 * _number_places(self._instructions) + self._effects.act
        self._found: dict[tuple[int, int], _LineRaces] = {}

    def races(self) -> tuple[Race, ...]:
        """Return the races, in order of source lines."""
        ordered = [self._found[lines] for lines in sorted(self._found)]
        return tuple(replace(f.race, pairs=f.pairs, blocks=len(f.blocks)) for f in ordered)

    def look_at(self, episodes: Episodes) -> None:
        """Search some complete episodes."""
        limit = self._launch.shared_static + self._launch.shared_dynamic
        for part in cut_parts(episodes, self._warps, self._patterns, self._effects, limit):
            contested = find_contested(part, self._patterns, self._effects)
            if contested.any():
                self._count(episodes, part, contested)

    def _count(self, episodes: Episodes, part: Part, contested: Bools) -> None:
        tally = tally_touches(part, self._patterns, self._effects, self._sides, contested)
        for sides in combinations_with_replacement(sorted_unique(tally.side).tolist(), 2):
            if {side % 3 for side in sides} not in ({LOAD}, {ATOMIC}):
                cells, pairs = count_pairs(tally, *sides)
                if len(cells):
                    self._enter(episodes, part, sides, cells, pairs)

    def _enter(
        self, episodes: Episodes, part: Part, sides: tuple[int, int], cells: Ints, pairs: Ints
    ) -> None:
        """Add races between two sides: `pairs` of them open at each of `cells`."""
        numbers = part.numbers[cells // part.span]
        total = int((pairs * np.bincount(episodes.members)[numbers]).sum())
        raced = np.isin(episodes.members, numbers)
        blocks = sorted_unique(episodes.block[raced])
        first, address = int(raced.argmax()), int(cells[0]) % part.span * part.size
        key = (int(episodes.block[first]), int(episodes.interval[first]), address, *sides)
        lines = (sides[0] // 3, sides[1] // 3)
        entry = self._found.get(lines)
        if entry is None:
            entry = _LineRaces(key, self._show(part, int(cells[0]), key), 0, blocks)
        elif key < entry.key:
            entry = replace(entry, key=key, race=self._show(part, int(cells[0]), key))
        pairs_so_far, blocks = entry.pairs + total, np.union1d(entry.blocks, blocks)
        self._found[lines] = replace(entry, pairs=pairs_so_far, blocks=blocks)

    def _show(self, part: Part, cell: int, key: tuple[int, ...]) -> Race:
        """Describe a race at a cell; of each side the first row in order of warp and pc."""
        block, interval, address, *sides = key
        one, other = self._find_rows(part, cell, sides)
        parties = [self._describe(part, row, lanes) for row, lanes in (one, other)]
        first, second = sorted(parties, key=lambda party: (party.step, party.warp))
        variable, start, itemsize = _locate(self._launch.arrays, address)
        itemsize = itemsize or element_bytes(self._instructions["type"][first.pc].as_py()) or 1
        return Race(
            first, second, coordinates(block, self._launch.grid), interval, address, variable,
            (address - start) // itemsize, itemsize, 0, 0,
        )  # fmt: skip

    def _find_rows(
        self, part: Part, cell: int, sides: Sequence[int]
    ) -> tuple[tuple[int, Ints], tuple[int, Ints]]:
        """Return a row of each side, from different warps, with its lanes at the cell."""
        rows = np.flatnonzero(part.episode == cell // part.span)
        touches = [
            touches.take(touches.cell == cell)
            for touches in part.spread(self._patterns, self._effects, rows)
        ]
        row = np.concatenate([touch.row for touch in touches])
        lane = np.concatenate([touch.lane for touch in touches])
        side = self._sides[part.rows.pc[row]]
        ours, theirs = row[side == sides[0]], row[side == sides[1]]
        foreign = theirs[part.warp[theirs] != part.warp[ours[0]]]
        other = int(foreign[0] if len(foreign) else theirs[0])
        one = int(ours[part.warp[ours] != part.warp[other]][0])
        return (one, lane[row == one]), (other, lane[row == other])

    def _describe(self, part: Part, row: int, lanes: Ints) -> Party:
        pc, warp = int(part.rows.pc[row]), int(part.warp[row])
        [line] = self._instructions.slice(pc, 1).to_pylist()
        return Party(
            ACTS[self._effects.act[pc]],
            pc,
            line["file"],
            line["line"],
            tuple((outer["file"], outer["line"]) for outer in line["inlined_at"]),
            line["text"],
            warp,
            int(part.rows.step[row]),
            tuple(lanes.tolist()),
            tuple(coordinates(warp * LANES + lane, self._launch.block) for lane in lanes.tolist()),
        )


def _read_effects(instructions: pa.Table) -> Effects:
    """Return the effects of instructions on shared memory; an access that is neither load nor store
    is treated as an atomic.
    """
    sites = read_sites(instructions, "ca")
    names = [kind.access for kind in sites.kinds] + ["atomic"]
    kind = sites.kind.reshape(-1, SPACES)[:, Space.SHARED]
    act = np.array([{"load": LOAD, "store": STORE}.get(name, ATOMIC) for name in names])[kind]
    act[np.isin(instructions["order"].to_pylist(), list(_ORDERED))] = ATOMIC
    width = np.maximum(instructions["bytes"].to_numpy().astype(np.int64), 1)
    return Effects(act, width)


def _number_places(instructions: pa.Table) -> Ints:
    """Number source lines in order of file and line, (pcs,); without a line each pc is a place."""
    rows = instructions.select(["file", "line", "pc"]).to_pylist()
    places = [(row["file"], row["line"], 0 if row["line"] else row["pc"]) for row in rows]
    number = {place: index for index, place in enumerate(sorted(set(places)))}
    return np.array([number[place] for place in places], np.int64)


def _locate(arrays: Sequence[Array], address: int) -> tuple[str, int, int]:
    """Return name, start and itemsize of the shared variable at an address, or `""`, 0, 0."""
    for array in arrays:
        if array.space == Space.SHARED and 0 <= address - array.offset < array.bytes:
            return array.name, array.offset, array.itemsize
    return "", 0, 0


WARPS = 1 << 16
"""An upper bound of the warps of a block."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Touches of cells by lanes, (n,) columns in order of side, cell and warp.

    `every` counts all touches, `closed` those by lanes with bytes that began in an earlier cell.
    """

    side: Ints
    cell: Ints
    warp: Ints
    every: Ints
    closed: Ints


def tally_touches(
    part: Part, patterns: Patterns, effects: Effects, sides: Ints, contested: Bools
) -> Tally:
    """Count the touches of contested cells; `sides` (pcs,) is the side of each instruction."""
    parts = []
    for touches in part.spread(patterns, effects):
        subset = touches.take(contested[touches.cell])
        times = part.rows.times[subset.row]
        side = sides[part.rows.pc[subset.row]]
        warp = part.warp[subset.row]
        parts.append(_merge(Tally(side, subset.cell, warp, times, times * ~subset.opens)))
    names = ("side", "cell", "warp", "every", "closed")
    return _merge(Tally(*(np.concatenate([getattr(p, name) for p in parts]) for name in names)))


def _merge(tally: Tally) -> Tally:
    """Merge rows with equal side, cell and warp."""
    key = pack_columns([tally.side, tally.cell, tally.warp])
    order = np.argsort(key, kind="stable")
    counts = _sum_runs(_Counts(key[order], tally.every[order], tally.closed[order]), key[order])
    first = order[find_openings(key[order])]
    return Tally(
        tally.side[first], tally.cell[first], tally.warp[first], counts.every, counts.closed
    )


def count_pairs(tally: Tally, one: int, other: int) -> tuple[Ints, Ints]:
    """Return the cells where accesses of two sides meet, rising, and the number of pairs that open
    there.

    These are all pairs at a cell, less those within a warp; of a side with itself each pair once.
    """
    sides = _of_side(tally, one), _of_side(tally, other)
    cells, pairs = _multiply(*(_sum_runs(side, side.key // WARPS) for side in sides))
    keys, own = _multiply(*sides)
    np.subtract.at(pairs, np.searchsorted(cells, keys // WARPS), own)
    if one == other:
        pairs //= 2
    return cells[pairs > 0], pairs[pairs > 0]


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """Touches by key, (n,) each; keys rise and differ."""

    key: Ints
    every: Ints
    closed: Ints


def _of_side(tally: Tally, side: int) -> _Counts:
    """Return the touches of a side by cell * WARPS + warp."""
    low, high = np.searchsorted(tally.side, [side, side + 1])
    key = tally.cell[low:high] * WARPS + tally.warp[low:high]
    return _Counts(key, tally.every[low:high], tally.closed[low:high])


def _sum_runs(counts: _Counts, key: Ints) -> _Counts:
    """Sum adjacent counts with the same new key."""
    opens = find_openings(key)
    if not len(opens):
        return counts
    sums = (np.add.reduceat(column, opens) for column in (counts.every, counts.closed))
    return _Counts(key[opens], *sums)


def _multiply(one: _Counts, other: _Counts) -> tuple[Ints, Ints]:
    """Return the common keys, and per key the pairs of touches that open there."""
    keys, here, there = np.intersect1d(one.key, other.key, assume_unique=True, return_indices=True)
    # Two accesses that overlap share several cells. Their pair counts once, at the first of these,
    # where one of them opens: all pairs, less those in which both lanes began in earlier cells.
    #
    # cell      0 1 2 3
    # lane a    o x x      o: opens, x: closed
    # lane b      o x x    the pair counts at cell 1
    every = one.every[here] * other.every[there]
    return keys, every - one.closed[here] * other.closed[there]
