"""The machine code of a kernel: its blocks and loops, how often a warp ran each, what it issues.

The trace records the basic blocks of the PTX that a warp ran; the assembler moves, copies and
merges their instructions. A machine block runs as often as most of its instructions ran in PTX. An
unrolled loop has blocks with several copies of its instructions: the block with most copies takes
as many iterations as it can, the others the remainder.

Assumptions: each of two equal copies ran half of the time, and subroutines inside a function, for
rare operands, never run. Only divisions of 64-bit integers call one each time, which then runs
from start to end.

A launch issued at least the executions of each PTX basic block, which are known, times the fewest
machine instructions per execution. The machine has one instruction for two of the PTX in many
cases: LOP3 and IADD3 take three operands, a product and a sum become one FFMA, and ptxas keeps one
counter of several in an unrolled loop. Of the copies of a block, one per loop of the machine code,
the one with the fewest instructions counts. Assumptions: a copy in a loop of the machine code has
most of the remaining instructions of its block; a smaller copy was moved out of the loop, and
counts in its place only if no other is left. No block runs more often than the loop around it: the
outermost code once per warp, a loop as often as the branch that closes it. No instruction runs more
often than the PTX block to which most of its machine block belongs.

Pipes: the FMA pipe has two halves. Both execute floating-point products and sums; the heavy half
also executes those of integers. The ALU executes other integer operations, logic, comparisons and
predicates. XU executes conversions and approximate functions. Source: Nsight Compute, Kernel
Profiling Guide, pipelines; rates were measured (models/devices/measured/sm_90.csv: add.f32,
mad.lo.s32, prmt.b32, fma.rn.f64, tanh.approx.f32).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import pairwise
from statistics import median_high, median_low

import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.replay.device.device import Device
from ...models.replay.device.measured import Measured
from ...traces.identity_cache import cached_by_identity, rows_of
from ...traces.machine_schedule import Scheduled, unpack_schedule
from ...traces.schema import Launch, Resources

History = Sequence[tuple[int, int]]
BRANCH, CALLS, INDIRECT, LEAVES = 0x147, (0x143, 0x144), (0x149, 0x14A), (0x14D, 0x150)
"""Operations: BRA; CALL; BRX, JMX; EXIT, RET."""
FIXED = frozenset({
    *(0x11D, 0x185, 0x186, 0x187, 0x188, 0x18A, 0x18B, 0x18C, 0x18D, 0x18E, BRANCH, *CALLS),
})  # fmt: skip
"""Operations that stay in their block: barriers, stores, atomics, branches and calls."""
KEPT = FIXED - {BRANCH}
LOADS = frozenset({0x180, 0x181, 0x183, 0x184})
"""LD, LDG, LDL, LDS."""
MEETINGS = frozenset({0x145, 0x141, 0x142})
"""Operations of reconvergence points: BSSY, BSYNC, BREAK; their pc carries no information."""
SYNCS = 0x1A7
"""Operation of mbarriers."""
POLLING = frozenset({SYNCS, BRANCH, 0x148, 0x15D, 0x118})
"""Operations of a loop that polls an mbarrier: SYNCS, BRA, WARPSYNC, NANOSLEEP, NOP."""
FEW = 3
"""Most kinds of instructions of one pc; above that it is a routine with branches of its own."""


@dataclass(frozen=True, slots=True)
class MachineBlock:
    """Instructions [start, end), of which `operations` are issued.

    Blocks that call, blocks that only calls reach, and loops that poll an mbarrier are assumed
    never to issue.
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
    block, `called` are the blocks of functions of the PTX that it calls, `callers` the blocks that
    call each block of the assembler's own routines.

    `places` maps each pc and operation to its blocks, with the copies of the pc in each, for pcs
    that became a few instructions.
    """

    schedule: Sequence[Scheduled]
    blocks: Sequence[MachineBlock]
    outer: Loop
    depths: Sequence[int]
    places: Mapping[tuple[int, int], Mapping[int, int]]
    called: frozenset[int] = frozenset()
    callers: Mapping[int, Sequence[int]] = field(default_factory=dict)


@lru_cache(maxsize=64)
def read_machine_code(
    text: str, calls: frozenset[int] = frozenset(), routines: frozenset[int] = frozenset()
) -> MachineCode | None:
    """Parse a schedule; None if there is none, or if a jump has unknown targets.

    `calls` are the pcs of calls in the PTX, whose functions run, `routines` those of instructions
    that always call a routine of the assembler; what others call is for rare operands.
    """
    schedule = unpack_schedule(text)
    if not schedule or any(each.operation in INDIRECT for each in schedule):
        return None
    starts = sorted(_leaders(schedule))
    edges = list(zip(starts, [*starts[1:], len(schedule)], strict=True))
    number = {start: place for place, start in enumerate(starts)}
    own = _reachable(schedule, edges, number, frozenset())
    runs = _reachable(schedule, edges, number, calls)
    callers = _callers(schedule, edges, number, runs, routines)
    runs -= _polls(schedule, edges)
    issued = {*runs, *callers}
    every = calls | routines
    blocks = [_block(schedule, *edge, place in issued, every) for place, edge in enumerate(edges)]
    loops = _loops(schedule, blocks, number)
    depths = [0] * len(blocks)
    for loop in _inside(loops):
        for place in range(loop.first, loop.last + 1):
            depths[place] += 1
    places = _places(schedule, blocks, callers)
    called = frozenset(runs - own)
    return MachineCode(schedule, blocks, loops, depths, places, called, callers)


def code_for(
    launch: Launch,
    capability: tuple[int, int],
    calls: frozenset[int] = frozenset(),
    routines: frozenset[int] = frozenset(),
) -> MachineCode | None:
    """Return a launch's machine code for a device of a capability; None if the trace has none."""
    return _code_of(launch, launch.assembled_for(capability), calls, routines)


def _code_of(
    launch: Launch,
    resources: Resources | None,
    calls: frozenset[int] = frozenset(),
    routines: frozenset[int] = frozenset(),
) -> MachineCode | None:
    if resources is None:
        return None
    try:
        return read_machine_code(resources.schedule, calls, routines)
    except ValueError as problem:
        message = f"{launch.kernel}, resources of {resources.arch}: {problem}"
        raise CutraceError(message) from problem


def _inside(loop: Loop) -> Iterator[Loop]:
    """Yield the loops in a loop, each before those in it."""
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
    schedule: Sequence[Scheduled],
    edges: Sequence[tuple[int, int]],
    number: Mapping[int, int],
    calls: frozenset[int],
    first: int = 0,
) -> set[int]:
    """Return the blocks that are reached from one without a call other than `calls`."""
    reachable, waiting = set[int](), [first]
    while waiting:
        place = waiting.pop()
        if place in reachable or place >= len(edges):
            continue
        reachable.add(place)
        last = schedule[edges[place][1] - 1]
        follows = last.operation == BRANCH or (last.operation in CALLS and last.pc in calls)
        if follows and last.target in number:
            waiting.append(number[last.target])
        if last.guarded or last.operation not in (BRANCH, *LEAVES):
            waiting.append(place + 1)
    return reachable


def _callers(
    schedule: Sequence[Scheduled],
    edges: Sequence[tuple[int, int]],
    number: Mapping[int, int],
    runs: Collection[int],
    routines: frozenset[int],
) -> Mapping[int, Sequence[int]]:
    """Return the blocks that call each block of the routines of these pcs."""
    callers = defaultdict[int, list[int]](list)
    for place in runs if routines else ():
        last = schedule[edges[place][1] - 1]
        if last.operation in CALLS and last.pc in routines and last.target in number:
            routine = _reachable(schedule, edges, number, frozenset(), number[last.target])
            for each in routine.difference(runs):
                callers[each].append(place)
    return callers


def _polls(schedule: Sequence[Scheduled], edges: Sequence[tuple[int, int]]) -> set[int]:
    """Return the blocks that only ask again whether a phase is over, and their ways back."""
    polls = set[int]()
    for place, (start, end) in enumerate(edges):
        operations = {each.operation for each in schedule[start:end]}
        asks = SYNCS in operations and operations <= POLLING
        returns = operations == {BRANCH} and place - 1 in polls
        if returns or (asks and schedule[end - 1].target == start):
            polls.add(place)
    return polls


def _block(
    schedule: Sequence[Scheduled], start: int, end: int, runs: bool, calls: frozenset[int]
) -> MachineBlock:
    operations = Counter(each.operation for each in schedule[start:end])
    issued = runs and not any(
        each.operation in CALLS and each.pc not in calls for each in schedule[start:end]
    )
    return MachineBlock(start, end, runs, operations if issued else {})


def _places(
    schedule: Sequence[Scheduled], blocks: Sequence[MachineBlock], routines: Container[int]
) -> Mapping[tuple[int, int], Mapping[int, int]]:
    """Return the blocks of each pc and operation.

    Counters of unrolled loops are left out: they run once per several iterations. So are the
    blocks of routines, which belong to no pc.
    """
    sites = defaultdict[tuple[int, int], dict[int, int]](dict)
    left_out = set[tuple[int, int]]()
    for place, block in enumerate(blocks):
        block_counts = defaultdict[int, Counter[int]](Counter)
        is_own = block.operations and place not in routines
        for each in schedule[block.start : block.end] if is_own else ():
            if each.operation in MEETINGS:
                continue
            if not each.guarded or each.operation == BRANCH:
                block_counts[each.pc][each.operation] += 1
        copies = {pc: median_low(each.values()) for pc, each in block_counts.items()}
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
    medians = {place: _median(fixed[place], each) for place, each in votes.items()}
    times = {place: ran for place, (ran, _) in medians.items()}
    called = {place: times.get(place, 0.0) for place in code.called}
    _settle(code.outer, 1.0, times)
    times |= called
    for place, callers in code.callers.items():
        times[place] = sum(times.get(each, 0.0) for each in callers)
    return times, {place: entered for place, (_, entered) in medians.items()}


def _median(
    fixed: Sequence[tuple[float, float]], votes: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Return the median vote of a block: that of its operations that cannot move, if any.

    They are overruled where they never ran and most of the others did: the assembler gives some
    branches the place of a block beside them.
    """
    median = median_low(fixed or votes)
    return median if median[0] else median_low(votes)


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
    """Count how often each block ran in a visit of its loop; a path may end in the midst of one.

    Blocks are numbered in the order of the code, so that a step backwards closes a loop, from the
    block that it reaches. A loop of several blocks (barriers and branches part them) runs
    iteration by iteration; one visit lasts until the warp leaves the loop.

    >>> body = [(2, 1), (3, 4), (4, 1)]  # an inner loop, 3, of four iterations
    >>> {block: dict(runs) for block, runs in _runs([(1, 1), *body * 8, (5, 1)]).items()}
    {3: {4: 8}, 2: {8: 1}, 4: {8: 1}, 1: {1: 1}, 5: {1: 1}}
    """
    lasts = _loop_lasts(history)
    loop_of = {block: _loop_around(lasts, block) for block, _ in history}
    runs = defaultdict[int, Counter[int]](Counter)
    visits = defaultdict[int, Counter[int]](Counter)  # of each open loop: runs by block
    for block, many in history:
        for first in [first for first in visits if not first <= block <= lasts[first]]:
            for each, count in visits.pop(first).items():
                runs[each][count] += 1
        visits[loop_of[block]][block] += many
    for counts in visits.values():
        for each, count in counts.items():
            runs[each][count] += 1
    return runs


OUTSIDE = -1
"""The first block of the loop that holds the blocks of no loop."""


def _loop_lasts(history: History) -> Mapping[int, int]:
    """Return the last block of each loop by its first; a block of several runs is a loop."""
    lasts = {OUTSIDE: max((block for block, _ in history), default=0)}
    lasts |= {block: block for block, many in history if many > 1}
    for (block, _), (after, _) in pairwise(history):
        if after <= block:
            lasts[after] = max(lasts.get(after, 0), block)
    return lasts


def _loop_around(lasts: Mapping[int, int], block: int) -> int:
    """Return the first block of the innermost loop that holds a block."""
    return max(first for first, last in lasts.items() if first <= block <= last)


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


ISSUED = 4
"""Warp instructions that an SM issues per cycle."""
HEAVY = frozenset({0x024, 0x025, 0x026, 0x027})
"""IMAD and IDP."""
FMA = frozenset({0x020, 0x021, 0x023, 0x030, 0x031, 0x032, 0x035})
"""FMUL, FADD, FFMA, and their forms for pairs of halves."""
FP64 = frozenset({0x028, 0x029, 0x02A, 0x02B})
"""DMUL, DADD, DSETP, DFMA."""
XU = frozenset({0x100, 0x102, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x110, 0x111, 0x112, 0x113})
"""FLO, FCHK, F2F, F2I, I2F, FRND, MUFU, POPC, and their 64-bit forms."""
ALU = frozenset({
    *(0x002, 0x006, 0x007, 0x009, 0x00B, 0x00C, 0x00F, 0x010, 0x011, 0x012, 0x013, 0x016),
    *(0x017, 0x076),
    *(0x019, 0x01A, 0x01C, 0x036, 0x03E, 0x045, 0x048),
})  # fmt: skip
"""MOV, VOTE, SEL, FMNMX, FSETP, ISETP, VIMNMX3, IADD3, LEA, LOP3, IABS, PRMT; IMNMX, FMNMX3; SHF,
SGXT, PLOP3, VIADD, F2FP, I2FP, VIMNMX."""
NOP = 0x118


def machine_mix(code: MachineCode, times: Mapping[int, float]) -> Mapping[int, float]:
    """Return how often a warp issued each operation, from its executions of each machine block."""
    mix = defaultdict[int, float](float)
    for place, often in times.items():
        for operation, many in code.blocks[place].operations.items() if often else ():
            mix[operation] += many * often
    mix.pop(NOP, None)
    return mix


def pipe_cycles(mix: Mapping[int, float], measured: Measured) -> Iterator[tuple[str, float]]:
    """Yield the cycles of each pipe of an SM for these operations."""
    floats, products = _sum(mix, FMA), _sum(mix, HEAVY)
    light, heavy = (measured.at("rate", name) for name in ("add.f32", "mad.lo.s32"))
    yield "issue slots", sum(mix.values()) / ISSUED
    yield "FMA pipe", max(heavy * products, light * (products + floats))
    yield "ALU pipe", measured.at("rate", "prmt.b32") * _sum(mix, ALU)
    yield "FP64 pipe", measured.at("rate", "fma.rn.f64") * _sum(mix, FP64)
    yield "XU pipe", measured.at("rate", "tanh.approx.f32") * _sum(mix, XU)


def _sum(mix: Mapping[int, float], operations: frozenset[int]) -> float:
    return sum(mix.get(operation, 0.0) for operation in operations)


SINCE = (5, 0)
"""First capability with LOP3 and IADD3: its machine code, which no trace has, merges like that of
the oldest architecture that the trace has.
"""
RESERVE = 0.95
"""Safety factor: the assembler moves instructions between blocks, and drops a few that remain in
other blocks. Of 201 kernels an H200 issued less than `LeastCode.issued` for five, by 4.6 % at most
(tests/validate/counters/h200_*.json, smsp__inst_executed.sum).
"""
HEADER_RESERVE = 0.65
"""The same for kernels with fragments of cutrace's `mma.h`: NVIDIA's has its loads and stores
addressed by the assembler. Of 126 loops (types, shapes, orders, global and shared memory) those in
shared memory are as long as with NVIDIA's header, within a tenth; the longest has 1.47 times its
instructions (tests/validate/mma_header.csv)."""
HALVES_RESERVE = 0.5
"""The same if a product takes two `mma` of half its depth, as in PTX for 7.5: for NVIDIA's `wmma`
later chips take one."""
UNITS = ("lanes_half", "lanes_single", "lanes_double", "lanes_single_special")
MUST = {"lanes_double": FP64, "lanes_single_special": XU}
"""Operations that count as work for a unit; default: any operation."""
Operations = Counter[int]


def machine_shares(
    counts: pl.DataFrame, launch: Launch, instructions: pa.Table, device: Device
) -> Mapping[str, float]:
    """Return the shares of raw PTX counts that the machine code is sure to have.

    `counts` are those of a launch by pc. Shares are at most 1; empty where no machine code is
    known, or is itself what was recorded.
    """
    if launch.code:
        return {}
    nearest = launch.assembled_for(device.capability) or next(iter(launch.assembled), None)
    code = _code_of(launch, nearest) if device.capability >= SINCE else None
    if code is None:
        return {}
    rows = rows_of(instructions, "pc", "block")
    least = _least_code(code, tuple((row["pc"], row["block"]) for row in rows))
    names = [name for name in ("instructions", *UNITS) if name in counts.columns]
    sums = {row["pc"]: row for row in counts.group_by("pc").agg(pl.col(names).sum()).to_dicts()}
    issued = least.issued({pc: row["instructions"] for pc, row in sums.items()})
    whole = sum(row["instructions"] for row in sums.values())
    shares = {"instructions": _ratio(RESERVE * _header_reserve(instructions) * issued, whole)}
    for name in names[1:]:
        work = sum(row[name] for pc, row in sums.items() if row[name] and least.does(pc, name))
        shares[name] = _ratio(work, sum(row[name] for row in sums.values()))
    return shares


@cached_by_identity
def _header_reserve(instructions: pa.Table) -> float:
    """Return the least part of a kernel's instructions that it has with NVIDIA's `mma.h`.

    Fragments of ours read `%laneid` and have no opcode of their own; a kernel that does so without
    the header is bounded lower than it could be.
    """
    rows = rows_of(instructions, "mnemonic", "text")
    products = [row["mnemonic"] for row in rows if row["mnemonic"].startswith("mma.sync")]
    if not products or not any("%laneid" in row["text"] for row in rows):
        return 1.0
    is_halved = any(".m16n8k8." in name and ".f16." in name for name in products)
    return HALVES_RESERVE if is_halved else HEADER_RESERVE


def _ratio(part: float, whole: int) -> float:
    return min(1.0, part / whole) if whole else 1.0


@cached_by_identity
def _least_code(code: MachineCode, blocks: tuple[tuple[int, int], ...]) -> "LeastCode":
    return LeastCode(code, dict(blocks))


@dataclass(frozen=True, slots=True)
class Copies:
    """The instructions of one PTX basic block in one loop of the machine code.

    `by_pc` are the machine instructions of each pc, in `many` copies of the block, or in `most` at
    most. `beside` counts them by the PTX block to which most of their machine block belongs.
    """

    loop: int
    by_pc: Mapping[int, Operations]
    many: int
    most: int
    beside: Counter[int]

    def size(self, block: int, often: Mapping[int, int]) -> float:
        """Return the instructions of all copies; those in a rarer block count in proportion."""
        own = often.get(block, 0)
        return sum(
            many * min(1.0, often.get(other, own) / own) if own else 0.0
            for other, many in self.beside.items()
        )


class LeastCode:
    """The instructions that a basic block is sure to issue; `block_of` maps a pc to its block."""

    def __init__(self, code: MachineCode, block_of: Mapping[int, int]) -> None:
        loops = _innermost(code)
        self._closing = _closing(code)
        groups = defaultdict[tuple[int, int], dict[int, Operations]](dict)
        neighbours = defaultdict[tuple[int, int], Counter[int]](Counter)
        for place, block in enumerate(code.blocks):
            schedule = code.schedule[block.start : block.end] if block.operations else ()
            instructions = [
                each for each in schedule if each.pc in block_of and each.operation != NOP
            ]
            owners = Counter(block_of[each.pc] for each in instructions)
            for each in instructions:
                key = block_of[each.pc], loops[place]
                groups[key].setdefault(each.pc, Counter())[each.operation] += 1
                neighbours[key][owners.most_common(1)[0][0]] += 1
        self._block_of = block_of
        self._copies = defaultdict[int, list[Copies]](list)
        for (owner, loop), by_pc in groups.items():
            many = median_high([min(each.values()) for each in by_pc.values()])
            most = max(many, _count_most(by_pc.values()))
            self._copies[owner].append(Copies(loop, by_pc, many, most, neighbours[owner, loop]))

    def issued(self, ran: Mapping[int, int]) -> int:
        """Return the fewest instructions of all warps, from the issue count of each PTX pc."""
        often = defaultdict[int, int](int)
        for pc, many in ran.items():
            block = self._block_of.get(pc, -1)
            often[block] = max(often[block], many)
        total = 0.0
        for block, copies in self._copies.items():
            # The cheapest copy bounds one execution from below. The loops' iterations bound
            # how often the instructions can have run.
            once = min(each.size(block, often) / each.most for each in _whole(copies))
            most = sum(each.beside.total() * self._rounds(each.loop, often) for each in copies)
            total += min(once * often[block], most)
        return int(total)

    def does(self, pc: int, unit: str) -> bool:
        """Return whether each copy of a pc's block has an instruction of this pc for the unit."""
        operations = MUST.get(unit)
        whole = _whole(self._copies.get(self._block_of.get(pc, -1), ()))
        return bool(whole) and all(
            sum(n for op, n in group.by_pc.get(pc, Counter[int]()).items() if _fits(op, operations))
            >= group.many
            for group in whole
        )

    def _rounds(self, loop: int, often: Mapping[int, int]) -> int:
        """Return the most iterations of a loop over all warps; outside all loops, those of the
        entry.
        """
        pc = self._closing.get(loop, -1) if loop >= 0 else min(self._block_of)
        return often.get(self._block_of.get(pc, -1), max(often.values(), default=0))


def _count_most(pcs: Collection[Operations]) -> int:
    """Return the most copies that a block has, by what the assembler never merges.

    Of an unrolled loop's counter it keeps one, of its barriers and loads one a copy. A branch may
    stand before a loop and behind it. A sum of 64 bits is two instructions, so that others count
    in blocks without an access alone.

    >>> _count_most([Counter({0x11D: 4}), Counter({0x012: 1}), Counter({0x147: 5})])
    4
    >>> _count_most([Counter({0x181: 1}), Counter({0x010: 2})])
    1
    """
    stay = [many for each in pcs for what, many in each.items() if what in KEPT or what in LOADS]
    return max(stay or [min(each.values()) for each in pcs if BRANCH not in each], default=0)


def _fits(operation: int, operations: frozenset[int] | None) -> bool:
    return operations is None or operation in operations


def _whole(copies: Sequence[Copies]) -> Sequence[Copies]:
    """Return the copies with at least half as many pcs as the fullest."""
    most = max((len(group.by_pc) for group in copies), default=0)
    return [group for group in copies if 2 * len(group.by_pc) >= most]


def _innermost(code: MachineCode) -> Sequence[int]:
    """Return the first block of the innermost loop around each block, -1 outside all loops."""
    loop_starts = [-1] * len(code.blocks)
    for loop in _inside(code.outer):  # an inner loop comes after the one around it
        loop_starts[loop.first : loop.last + 1] = [loop.first] * (loop.last + 1 - loop.first)
    return loop_starts


def _closing(code: MachineCode) -> Mapping[int, int]:
    """Return the pc of the branch that closes each loop, by the loop's first block."""
    lasts = ((loop, code.schedule[code.blocks[loop.last].end - 1]) for loop in _inside(code.outer))
    return {loop.first: last.pc for loop, last in lasts if last.operation == BRANCH}
