"""The machine code of a kernel as blocks and loops, and how often a warp ran each.

The trace records the basic blocks of the PTX that a warp ran; the assembler moves, copies and
merges their instructions. A machine block runs as often as most of its instructions ran in PTX. An
unrolled loop has blocks with several copies of its instructions: the block with most copies takes
as many iterations as it can, the others the remainder.

Assumptions: each of two equal copies ran half of the time, and subroutines inside a function, for
rare operands, never run.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from statistics import median_low

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.machine_schedule import Scheduled, unpack_schedule
from ...traces.schema import Launch

History = Sequence[tuple[int, int]]
BRANCH, CALLS, INDIRECT, LEAVES = 0x147, (0x143, 0x144), (0x149, 0x14A), (0x14D, 0x150)
"""Operations: BRA; CALL; BRX, JMX; EXIT, RET."""
FIXED = frozenset({
    *(0x11D, 0x185, 0x186, 0x187, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, BRANCH),
})  # fmt: skip
"""Operations that stay in their block: barriers, stores, atomics and branches."""
MEETINGS = frozenset({0x145, 0x141, 0x142})
"""Operations of reconvergence points: BSSY, BSYNC, BREAK; their pc carries no information."""
FEW = 3
"""Most kinds of instructions of one pc; above that it is a routine with branches of its own."""


@dataclass(frozen=True, slots=True)
class MachineBlock:
    """Instructions [start, end), of which `operations` are issued.

    Blocks that call, and blocks that only calls reach, are assumed never to issue.
    """

    start: int
    end: int
    runs: bool
    operations: Mapping[int, int]


@dataclass(slots=True)
class Loop:
    """Blocks `first` to `last`, run in order; some belong to inner loops."""

    first: int
    last: int
    inner: list["Loop"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MachineCode:
    """A function: `outer` is its whole code, which runs once; `depths` is the loop depth of each
    block.

    `places` maps each pc and operation to its blocks, with the copies of the pc in each, for pcs
    that became a few instructions.
    """

    schedule: Sequence[Scheduled]
    blocks: Sequence[MachineBlock]
    outer: Loop
    depths: Sequence[int]
    places: Mapping[tuple[int, int], Mapping[int, int]]


@lru_cache(maxsize=64)
def read_machine_code(text: str) -> MachineCode | None:
    """Parse a schedule; None if there is none, or if a jump has unknown targets."""
    schedule = unpack_schedule(text)
    if not schedule or any(each.operation in INDIRECT for each in schedule):
        return None
    starts = sorted(_leaders(schedule))
    edges = list(zip(starts, [*starts[1:], len(schedule)], strict=True))
    number = {start: place for place, start in enumerate(starts)}
    runs = _reachable(schedule, edges, number)
    blocks = [_block(schedule, *edge, place in runs) for place, edge in enumerate(edges)]
    loops = _loops(schedule, blocks, number)
    depths = [0] * len(blocks)
    for loop in _inside(loops):
        for place in range(loop.first, loop.last + 1):
            depths[place] += 1
    return MachineCode(schedule, blocks, loops, depths, _places(schedule, blocks))


def code_for(launch: Launch, arch: str) -> MachineCode | None:
    """Return a launch's machine code for an architecture; None if the trace lacks it."""
    text = next((resource.schedule for resource in launch.resources if resource.arch == arch), "")
    try:
        return read_machine_code(text)
    except ValueError as problem:
        raise CutraceError(f"{launch.kernel}, resources of {arch}: {problem}") from problem


def _inside(loop: Loop) -> Iterator[Loop]:
    for inner in loop.inner:
        yield inner
        yield from _inside(inner)


def _leaders(schedule: Sequence[Scheduled]) -> set[int]:
    leaders = {0}
    for place, each in enumerate(schedule[:-1]):
        if each.operation == BRANCH or each.operation in (*CALLS, *LEAVES):
            leaders.add(place + 1)
        if 0 <= each.target < len(schedule):
            leaders.add(each.target)
    return leaders


def _reachable(
    schedule: Sequence[Scheduled], edges: Sequence[tuple[int, int]], number: Mapping[int, int]
) -> set[int]:
    """Return the blocks that are reached without a call."""
    reachable, waiting = set[int](), [0]
    while waiting:
        place = waiting.pop()
        if place in reachable or place >= len(edges):
            continue
        reachable.add(place)
        last = schedule[edges[place][1] - 1]
        if last.operation == BRANCH and last.target in number:
            waiting.append(number[last.target])
        if last.guarded or last.operation not in (BRANCH, *LEAVES):
            waiting.append(place + 1)
    return reachable


def _block(schedule: Sequence[Scheduled], start: int, end: int, runs: bool) -> MachineBlock:
    operations = Counter(each.operation for each in schedule[start:end])
    issued = runs and operations.keys().isdisjoint(CALLS)
    return MachineBlock(start, end, runs, operations if issued else {})


def _places(
    schedule: Sequence[Scheduled], blocks: Sequence[MachineBlock]
) -> Mapping[tuple[int, int], Mapping[int, int]]:
    """Return the blocks of each pc and operation.

    Counters of unrolled loops are left out: they run once per several iterations.
    """
    sites = defaultdict[tuple[int, int], dict[int, int]](dict)
    left_out = set[tuple[int, int]]()
    for place, block in enumerate(blocks):
        block_counts = defaultdict[int, Counter[int]](Counter)
        for each in schedule[block.start : block.end] if block.operations else ():
            if each.operation in MEETINGS:
                continue
            if not each.guarded or each.operation == BRANCH:
                block_counts[each.pc][each.operation] += 1
        copies = {pc: min(operations.values()) for pc, operations in block_counts.items()}
        usual = median_low(copies.values()) if copies else 0
        for pc, operations in block_counts.items():
            for operation in operations:
                sites[pc, operation][place] = copies[pc]
                if copies[pc] < usual or len(operations) > FEW:
                    left_out.add((pc, operation))
    return {key: places for key, places in sites.items() if key not in left_out}


def _loops(
    schedule: Sequence[Scheduled], blocks: Sequence[MachineBlock], number: Mapping[int, int]
) -> Loop:
    """Build the loop tree: a loop spans from the target of back edges to the last branch to it."""
    lasts = dict[int, int]()
    for place, block in enumerate(blocks):
        target = number.get(schedule[block.end - 1].target, place + 1)
        if block.runs and target <= place and schedule[block.end - 1].operation == BRANCH:
            lasts[target] = max(lasts.get(target, 0), place)
    outer = Loop(0, len(blocks) - 1)
    open_loops = [outer]
    for first, last in sorted(lasts.items(), key=lambda item: (item[0], -item[1])):
        while open_loops[-1].last < first:
            open_loops.pop()
        for each in open_loops[1:]:
            each.last = max(each.last, last)
        inner = Loop(first, last)
        open_loops[-1].inner.append(inner)
        open_loops.append(inner)
    return outer


def count_runs(
    code: MachineCode, history: History, block_of: Mapping[int, int]
) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """Return how often a warp ran each machine block, and how often it entered it from elsewhere.

    `block_of` maps each pc to its basic block. Blocks that the history does not determine run as
    often as their loop, and have no entries.
    """
    runs = _runs(history)
    shares = dict[tuple[int, tuple[tuple[int, int], ...]], Mapping[int, tuple[float, float]]]()
    votes = defaultdict[int, list[tuple[float, float]]](list)
    fixed = defaultdict[int, list[tuple[float, float]]](list)
    for (pc, operation), places in code.places.items():
        if pc not in block_of:
            continue
        # Each pc and operation of a block votes on its count. The low median resists instructions
        # that the assembler moved. Operations that cannot move (FIXED) overrule the others.
        key = block_of[pc], tuple(places.items())
        if key not in shares:
            shares[key] = _share(runs[key[0]], places, code.depths)
        for place, vote in shares[key].items():
            votes[place].append(vote)
            if operation in FIXED:
                fixed[place].append(vote)
    medians = {place: median_low(fixed[place] or each) for place, each in votes.items()}
    times = {place: ran for place, (ran, _) in medians.items()}
    _settle(code.outer, 1.0, times)
    return times, {place: entered for place, (_, entered) in medians.items()}


def _settle(loop: Loop, rounds: float, times: dict[int, float]) -> None:
    """Clamp each block's count to its loop's iterations; blocks without a count get that number."""
    inner = {place for each in loop.inner for place in range(each.first, each.last + 1)}
    for place in range(loop.first, loop.last + 1):
        if place not in inner:
            times[place] = min(rounds, times.get(place, rounds))
    for each in loop.inner:
        loop_times = [times[p] for p in range(each.first, each.last + 1) if p in times]
        _settle(each, times.get(each.first, max(loop_times, default=rounds)), times)


def _runs(history: History) -> Mapping[int, Counter[int]]:
    """Count the lengths of each block's runs in a row; a path may end in the middle of a loop."""
    runs = defaultdict[int, Counter[int]](Counter)
    for block, parts in groupby(history, key=itemgetter(0)):
        runs[block][sum(many for _, many in parts)] += 1
    return runs


def _share(
    runs: Mapping[int, int], places: Mapping[int, int], depths: Sequence[int]
) -> Mapping[int, tuple[float, float]]:
    """Return the iterations and the entries of each place, most copies first.

    A place in fewer loops than another runs at most once each time.

    >>> _share({514: 1}, {3: 1, 5: 4, 7: 2, 9: 1}, [0, 0, 0, 0, 0, 1, 0, 0, 0, 1])
    {3: (0.0, 0.0), 5: (128.0, 1.0), 7: (1.0, 1.0), 9: (0.0, 0.0)}
    """
    totals = dict.fromkeys(places, (0.0, 0.0))
    deepest = max(depths[place] for place in places)
    sizes = sorted(set(places.values()), reverse=True)
    for many, often in runs.items():
        # Greedy, as an unrolled loop runs: the places with most copies take whole multiples, and
        # the smallest size rounds up to take the remainder.
        remainder = many
        for size in sizes:
            equal = [place for place, copies in places.items() if copies == size]
            looped = [place for place in equal if depths[place] == deepest]
            rounds = -(-remainder // size) if size == sizes[-1] else remainder // size
            for place in equal if rounds else ():
                peer_count = len(looped) if place in looped else 1
                ran, entered = totals[place]
                more = rounds / peer_count if place in looped else 1
                totals[place] = ran + often * more, entered + often / peer_count
            remainder = max(0, remainder - size * (rounds if looped else min(rounds, len(equal))))
    return totals
