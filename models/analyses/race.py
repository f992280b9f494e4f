"""Race: accesses of different warps to the same shared memory that no barrier puts in order.

What the hardware does. Warps of a block run at their own speed; `__syncthreads()` alone lets none
pass before all have come. Where one warp stores what another loads or stores, and no barrier lies
between, the result depends on who was faster.

What is modelled. Two accesses race when they come from different warps of one block, share a byte
of shared memory, at least one of them writes, and both warps have passed equally many barriers.
Atomics do not race among themselves, nor loads and stores with `relaxed`, `acquire` or `release`;
with a plain access they do. Lanes of one warp never race.

What is not. Values are not in a trace: two warps that store the same number race all the same.
Locks and flags in memory order nothing here. An asynchronous copy counts as a store where it is
issued. Launches in which barriers are for some warps only, chosen by a register or a predicate, or
mixed with `mbarrier`, are not checked, and say so.

Source: PTX ISA 8.8, 8 (memory consistency model) and 9.7.13.1 (`bar`, `barrier`); CUDA C++
Programming Guide 13, 7.6.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ...lazy_dataclass import dataclass
from ...traces.place_text import coordinates
from ...traces.schema import LANES, Array, Launch, Space
from ...traces.table.unique import sorted_unique
from ..replay.race.pairs import count_pairs, tally_touches
from ..replay.race.shadow_cells import ATOMIC, LOAD, STORE, Effects, Part, cut_parts, find_contested
from ..replay.rows.patterns import read_patterns
from ..replay.rows.sites import SPACES, element_bytes, read_sites
from ..replay.schedule.barrier_intervals import Intervals, read_intervals
from ..replay.schedule.episodes import Episodes, gather
from ..replay.seam import Bools, Ints

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

Triple = tuple[int, int, int]

ACTS = ("load", "store", "atomic")
"""Names of LOAD, STORE and ATOMIC."""
_ORDERED = frozenset({"relaxed", "acquire", "release", "acq_rel", "mmio"})


@dataclass(frozen=True, slots=True)
class Party:
    """One side of a race: an instruction that a warp ran, and the lanes of it at the address.

    `act` is load, store or atomic; `inlined_at` holds the calls through which its line got here,
    innermost first.
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

    `first` has the lower step. `element` counts from the start of `variable` in units of
    `itemsize` bytes; where no variable is known there, from the start of the block's memory.
    `pairs` counts pairs of accesses by threads, `blocks` the blocks that have any.
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
    """What was found in a launch, in order of source lines; `refusal` says why nothing was sought,
    or is empty.
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
class _Found:
    """Races between two lines so far: `race` is the first, at `key` (block, interval, address,
    sides); `blocks` are all that have any, rising.
    """

    key: tuple[int, ...]
    race: Race
    pairs: int
    blocks: Ints


class _Search:
    """Looks through a launch's episodes. A side is 3 * place + act; a place is a source line."""

    def __init__(self, trace: "LaunchTrace", intervals: Intervals) -> None:
        self._launch = trace.launch
        self._warps = intervals.warps % trace.launch.warps
        self._patterns = read_patterns(*trace.patterns())
        self._instructions = trace.instructions()
        self._effects = _read_effects(self._instructions)
        self._sides = 3 * _number_places(self._instructions) + self._effects.act
        self._found: dict[tuple[int, int], _Found] = {}

    def races(self) -> tuple[Race, ...]:
        """Return what was found, in order of source lines."""
        ordered = [self._found[lines] for lines in sorted(self._found)]
        return tuple(replace(f.race, pairs=f.pairs, blocks=len(f.blocks)) for f in ordered)

    def look_at(self, episodes: Episodes) -> None:
        """Take in some complete episodes."""
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
        known = self._found.get(lines)
        if known is None:
            known = _Found(key, self._show(part, int(cells[0]), key), 0, blocks)
        elif key < known.key:
            known = replace(known, key=key, race=self._show(part, int(cells[0]), key))
        pairs_so_far, blocks = known.pairs + total, np.union1d(known.blocks, blocks)
        self._found[lines] = replace(known, pairs=pairs_so_far, blocks=blocks)

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
        """Return a row of each side, of different warps, with its lanes at the cell."""
        rows = np.flatnonzero(part.episode == cell // part.span)
        touches = [
            touches.take(touches.cell == cell)
            for touches in part.spread(self._patterns, self._effects, rows)
        ]
        row = np.concatenate([found.row for found in touches])
        lane = np.concatenate([found.lane for found in touches])
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
    """Return what each instruction does to shared memory; what is neither load nor store is taken
    for an atomic.
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
