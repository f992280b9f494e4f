"""The cycles of a warp that runs alone: in its machine code, or as its dependence chain in PTX.

In machine code (`MachineWarp`) the schedule has the stalls. Only instructions that set a scoreboard
have measured latencies: a load that of the cache that served it, as in PTX, other instructions that
of a similar one.

PTX (`Chain`) is for launches without machine code in the trace. Within a basic block an instruction
issues when its registers are ready and the instruction WINDOW places before it has issued, since
the assembler moves loads to the front. Instructions that depend on loads form a second stream. The
block ends when all instructions have issued and, if it branches on a predicate, the predicate is
ready. Each stall is booked by reason and by the stalled instruction. For a block that runs many
times in a row a few iterations are simulated, and the last one is extrapolated. In single-block
loops with four loads or more (as the compiler unrolls them) and a loop counter of their own, four
iterations overlap, as the assembler schedules them in machine code.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...models.replay.device.device import Device
from ...models.replay.device.measured import Measured
from ...tracer.ptx.instruction import address_of, read_text
from ...tracer.ptx.opcodes import destinations, sources
from ...traces.machine_schedule import NO_SCOREBOARD
from ...traces.schema import Launch
from ..machine.machine_code import SYNCS, Loop, MachineCode, code_for, count_runs, machine_mix
from .asynchronous import (
    ASKS,
    DEPBAR,
    GMMA,
    STORES_COMMITTED,
    WARPGROUP,
    Asynchronous,
    InFlight,
)


@dataclass(frozen=True, slots=True)
class Operands:
    """Register operands; special registers (`%tid.x`) are always ready and omitted.

    `address` is the base, a register or a variable, and the offset of an access, if it has one.
    """

    writes: tuple[str, ...]
    reads: tuple[str, ...]
    address: tuple[str, int] | None = None


@lru_cache(maxsize=1 << 14)
def read_operands(text: str) -> Operands:
    """Parse what an instruction writes and reads; nothing of machine code.

    >>> read_operands("@%p1 mad.lo.s32 %r1, %r3, %ntid.x, %r5;")
    Operands(writes=('%r1',), reads=('%p1', '%r3', '%r5'), address=None)
    >>> read_operands("ld.global.v2.f32 {%f1, %f2}, [%rd5+-8];")
    Operands(writes=('%f1', '%f2'), reads=('%rd5',), address=('%rd5', -8))
    >>> read_operands("st.global.f32 [%rd7], %f1;")
    Operands(writes=(), reads=('%rd7', '%f1'), address=('%rd7', 0))
    """
    instruction = read_text(text)
    if instruction is None:
        return Operands((), ())
    writes = (register.name for register in destinations(instruction))
    reads = dict.fromkeys(register.name for register in sources(instruction))
    return Operands(tuple(writes), tuple(reads), address_of(instruction))


WINDOW = 8
"""Number of instructions past which the assembler does not move an instruction other than a load.
Chosen on the launches of tests/validate/counters, of which none is in docs/time.md.
"""
ROUNDS = 3
"""Iterations of a block that are simulated."""
SIDE_BY_SIDE, UNROLLED = 4, 4
"""Iterations that the assembler overlaps, and the fewest loads of a loop for which it does so."""
MOST = 6000
"""Instructions that are simulated; the rest of a warp is extrapolated."""


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction on a device: the latency of its result, and its issue slots.

    `stall` is the stall reason of instructions that need the result. A `barrier` drains both
    streams. After an instruction that `branches`, the next block starts one latency later. A load
    may not pass a store to its `space` (empty: any; `read-only`: none) unless their address is
    another offset of the same register. A fence that `is_local` orders a block's accesses alone.
    An access to shared memory delays the warp's next one by `queue` cycles. `latency` is a mean:
    `misses` are the shares of its executions that wait longer than a hit, each with the cycles
    that it waits longer and their stall reason, the longest last. A matrix product takes `product`
    cycles of an SM's tensor pipe.
    """

    pc: int
    operands: Operands
    latency: float
    slots: float
    stall: str
    is_load: bool = False
    is_barrier: bool = False
    stores: bool = False
    branches: bool = False
    space: str = ""
    is_local: bool = False
    queue: float = 0.0
    misses: tuple[tuple[float, float, str], ...] = ()
    product: float = 0.0

    @property
    def hit_latency(self) -> float:
        """Return the cycles of a load that the nearest cache serves."""
        return self.latency - sum(share * longer for share, longer, _ in self.misses)

    def may_meet(self, store: "Step") -> bool:
        """Return whether a store may alias this load, as far as the assembler can tell."""
        if self.space != store.space and self.space and store.space:
            return False
        mine, other = self.operands.address, store.operands.address
        return not mine or not other or mine[0] != other[0] or mine[1] == other[1]


Mark: TypeAlias = tuple[float, Mapping[str, float], Mapping[tuple[int, str], float]]
"""Snapshot of a chain: cycles, stall cycles by reason, and stall cycles by pc and reason."""


@dataclass(slots=True)
class Chain:
    """Cycles of a warp, and its stall cycles by reason and by stalled pc.

    `issued` counts its machine instructions by operation, if it ran in machine code; `products` are
    the cycles of these for which it kept the tensor pipe of a quarter of an SM.
    """

    cycles: float = 0.0
    stalls: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    at: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))
    issued: Mapping[int, float] = field(default_factory=dict)
    products: float = 0.0

    def mark(self) -> Mark:
        """Take a snapshot for `stretch`."""
        return self.cycles, dict(self.stalls), dict(self.at)

    def stretch(self, since: Mark, factor: float) -> float:
        """Multiply the cycles since a mark by a factor; return the added cycles."""
        cycles, stalls, at = since
        more = (self.cycles - cycles) * (factor - 1)
        self.cycles += more
        for name, value in self.stalls.items():
            self.stalls[name] = value + (value - stalls.get(name, 0.0)) * (factor - 1)
        for key, value in self.at.items():
            self.at[key] = value + (value - at.get(key, 0.0)) * (factor - 1)
        return more

    def book(self, pc: int, why: str, cycles: float) -> None:
        """Book the stall cycles of an instruction."""
        self.stalls[why] += cycles
        self.at[pc, why] += cycles


def run_chain(history: Sequence[tuple[int, int]], code: Mapping[int, Sequence[Step]]) -> Chain:
    """Simulate a history of (basic block, times in a row)."""
    run = _Run(code)
    total = sum(len(code[block]) * times for block, times in history)
    step_count = 0
    for block, times in history:
        if run.steps > MOST:
            break
        run.repeat(block, times)
        step_count += len(code[block]) * times
    if 0 < step_count < total:
        run.scale(total / step_count)
    return run.chain


def _counts(code: Sequence[Step]) -> bool:
    """Return whether a loop of this block ends on a counter that the block itself updates."""
    if not code:
        return False
    wrote = {register: step.operands for step in code for register in step.operands.writes}
    for predicate in code[-1].operands.reads:
        for counter in wrote[predicate].reads if predicate in wrote else ():
            if counter in wrote and counter in wrote[counter].reads:
                return True
    return False


class _Run:
    """A running warp: when each register is ready, and the stall reason of its producer."""

    def __init__(self, code: Mapping[int, Sequence[Step]]) -> None:
        self.code = code
        self.chain = Chain()
        self.ready: dict[str, tuple[float, str]] = {}
        self.steps = 0

    def repeat(self, block: int, times: int) -> None:
        """Run a block several times in a row."""
        code = self.code[block]
        loads = sum(step.is_load for step in code)
        counts = _counts(code)
        free = counts and not any(step.is_barrier or step.stores for step in code)
        unroll_factor = SIDE_BY_SIDE if loads >= UNROLLED and free else 1
        groups, remainder = divmod(times, unroll_factor)
        self._rounds(code, groups, unroll_factor)
        self._rounds(code, remainder, 1)

    def _rounds(self, code: Sequence[Step], times: int, unroll_factor: int) -> None:
        last = self.chain.mark()
        for _ in range(min(times, ROUNDS)):
            last = self.chain.mark()
            self.round(code, unroll_factor)
        if times > ROUNDS:  # extrapolate the last iteration
            more = self.chain.stretch(last, 1 + times - ROUNDS)
            self.ready = {r: (t + more, w) for r, (t, w) in self.ready.items()}

    def round(self, code: Sequence[Step], unroll_factor: int) -> None:
        """Run a block once, or `unroll_factor` overlapping iterations of it."""
        # Two streams: instructions that depend on no load, and those that do. A step starts once
        # the step WINDOW places before it in its stream has started, so a slow load does not block
        # independent work. `front` is the latest start; `issued` counts issue slots.
        start = front = issued = self.chain.cycles
        streams, loaded = ([start] * WINDOW, [start] * WINDOW), set[str]()
        stores: list[tuple[Step, float]] = []
        for step in [*code] * unroll_factor:
            self.steps += 1
            stream = streams[not loaded.isdisjoint(step.operands.reads)]
            earliest = stream[-WINDOW]
            if step.is_load and stores:
                earliest = max([earliest, *(t for s, t in stores if step.may_meet(s))])
            begin, why = self._begin(step, earliest)
            reached = max(front, issued)
            if step.is_barrier:
                begin = max(begin, reached)
            if begin > reached and why:
                self.chain.book(step.pc, why, begin - reached)
            front, issued = max(front, begin), issued + step.slots
            if step.is_barrier:
                front = issued = max(front, issued) + step.latency
                streams = ([front] * WINDOW, [front] * WINDOW)
                self.chain.book(step.pc, "barrier", step.latency)
                continue
            if step.stores:
                stores.append((step, begin))
            if step.slots and not step.is_load:
                stream.append(begin)
            if step.is_load or stream is streams[1]:
                loaded.update(step.operands.writes)
            completion = begin + step.latency, step.stall or why
            self.ready.update(dict.fromkeys(step.operands.writes, completion))
        self.chain.cycles = max(front, issued)
        if code and code[-1].branches:
            self.chain.book(code[-1].pc, "branch", code[-1].latency)
            self.chain.cycles += code[-1].latency

    def _begin(self, step: Step, earliest: float) -> tuple[float, str]:
        """Return the cycle at which a step's operands are ready, and the stall reason of the last
        one.
        """
        begin, why = earliest, ""
        for register in step.operands.reads:
            completion = self.ready.get(register)
            if completion and completion[0] > begin:
                begin, why = completion
        return begin, why

    def scale(self, factor: float) -> None:
        """Scale to the whole warp, assuming that the rest behaves like the simulated part."""
        chain = self.chain
        chain.cycles *= factor
        for name in chain.stalls:
            chain.stalls[name] *= factor
        for key in chain.at:
            chain.at[key] *= factor


MEMORY = frozenset(range(0x160, 0x170)) | frozenset(range(0x180, 0x1B0)) | {0x03B}
"""Machine operations that access memory, textures and surfaces included."""
MEMORY_WAITS = frozenset({"dram", "l2", "l1", "shared", "atomic"})
EXCHANGE = ("chase", "chase_shared"), "pipe"
"""Fallback for other variable-latency instructions: a round trip to shared memory."""
VARIABLE: Mapping[int, tuple[tuple[str, str], str]] = {
    **dict.fromkeys((0x182, 0x1B9), (("chase", "chase_const"), "const")),
    **dict.fromkeys((0x184, 0x18C, 0x18D), (("chase", "chase_shared"), "shared")),
    **dict.fromkeys(  # MUFU, F2I, I2F, F2F, FRND, FLO, POPC, FCHK: one pipe
        (0x108, 0x105, 0x111, 0x106, 0x112, 0x104, 0x110, 0x107, 0x113, 0x100, 0x109, 0x102),
        (("latency", "tanh.approx.f32"), "pipe"),
    ),
    0x1A1: (("latency", "match.any"), "pipe"),
    0x1C4: (("latency", "redux.add"), "pipe"),
}
"""The measurement of machine instructions that set a scoreboard, and their readers' stall reason.
"""


def runs_in_machine_code(
    launch: Launch,
    device: Device,
    code: Mapping[int, Sequence[Step]],
    measured: Measured,
    units: Asynchronous | None = None,
    calls: frozenset[int] = frozenset(),
    routines: frozenset[int] = frozenset(),
) -> Callable[[Sequence[tuple[int, int]]], Chain] | None:
    """Return a function that runs a history in machine code; None if the trace has no such code.

    `code` are the steps of each basic block of the PTX, `units` what the launch asks of
    asynchronous units, `calls` the pcs of its calls, `routines` those of instructions that call the
    assembler's routines. Raises `CutraceError` for a damaged schedule.
    """
    machine = code_for(launch, device.capability, calls, routines)
    if machine is None:
        return None
    steps = {step.pc: step for block in code.values() for step in block}
    block_of = {step.pc: block for block, each in code.items() for step in each}
    latency = partial(_machine_latency, steps, measured)

    def run(history: Sequence[tuple[int, int]]) -> Chain:
        times, entries = count_runs(machine, history, block_of)
        mix = machine_mix(machine, times)
        products = sum(mix.get(operation, 0.0) for operation in PRODUCTS)
        cycles = sum(many * sum(each.product for each in code[block]) for block, many in history)
        quarter = QUARTERS * cycles / products if products else 0.0
        warp = MachineWarp(machine, times, entries, steps, latency, measured.taken_cycles, quarter)
        warp.in_flight = InFlight(units or Asynchronous())
        chain = warp.run()
        chain.issued, chain.products = mix, QUARTERS * cycles
        return chain

    return run


def _machine_latency(
    steps: Mapping[int, Step], measured: Measured, operation: int, pc: int
) -> tuple[float, str]:
    """Return an instruction's latency to its scoreboard, and its reader's stall reason."""
    step = steps.get(pc)
    if operation == FENCE:
        is_of_block = step is not None and step.is_local
        return measured.at("latency", "membar.cta" if is_of_block else "membar.gl"), "fence"
    if operation in MEMORY and step and step.stall in MEMORY_WAITS:
        return step.hit_latency, step.stall
    name, why = VARIABLE.get(operation, EXCHANGE)
    return measured.at(*name), why


BARRIER, COPY, COPIED, EXIT = 0x11D, 0x1AE, 0x1AF, 0x14D
"""Operations: BAR; LDGSTS; LDGDEPBAR, which completes after the copies before it; EXIT, whose time
belongs to an empty kernel.
"""
FENCE = 0x192
"""MEMBAR; of a block it takes a few cycles, of the device or the system the way to L2."""
ASYNCHRONOUS = ASKS | {GMMA, WARPGROUP, STORES_COMMITTED, DEPBAR, FENCE}
MOST_RUN = 60_000
"""Instructions after which one iteration of a loop stands for all."""
BOARDS = 6
"""Scoreboards per warp."""
SHARED = frozenset({0x184, 0x188})
"""LDS, STS."""
PRODUCTS = frozenset({0x037, 0x03C, 0x03D, 0x03F, 0x07A})
"""IMMA, HMMA, BMMA, DMMA, QMMA."""
QUARTERS = 4
"""Parts of an SM with a tensor pipe each: a warp has one, which begins one product at a time."""


@dataclass(frozen=True, slots=True)
class Load:
    """A load in flight: its pc, the cycle of its issue, and the warp's stalls for misses before it,
    in all and for loads of this pc, with the sum of their chances.
    """

    pc: int
    issued: float
    missed: float
    own: float
    chances: float


Latency = Callable[[int, int], tuple[float, str]]
"""Maps an operation and a pc that set a scoreboard to cycles and the reader's stall reason."""


@dataclass(slots=True)
class MachineWarp:
    """A running warp: executions of each machine block, and its entries from other blocks.

    `steps` are the PTX steps by pc; a taken branch costs `issue_cycles`, and a matrix product keeps
    the warp's tensor pipe for `product_cycles`. The state is the finish
    time and the stall reason of each scoreboard, as if all loads hit, and the `loads` that may miss
    on each. `missed` are the cycles that the warp waited for misses, `missed_by` those by pc,
    `chances_by` the sums of their chances.
    """

    code: MachineCode
    times: Mapping[int, float]
    entries: Mapping[int, float]
    steps: Mapping[int, Step]
    latency: Latency
    issue_cycles: float
    product_cycles: float = 0.0
    chain: Chain = field(default_factory=Chain, init=False)
    scoreboard: list[tuple[float, str]] = field(
        default_factory=lambda: [(0.0, "")] * BOARDS, init=False
    )
    loads: list[list[Load]] = field(default_factory=lambda: [[] for _ in range(BOARDS)], init=False)
    missed: float = field(default=0.0, init=False)
    missed_by: dict[int, float] = field(default_factory=lambda: defaultdict(float), init=False)
    chances_by: dict[int, float] = field(default_factory=lambda: defaultdict(float), init=False)
    copied: tuple[float, str] = field(default=(0.0, ""), init=False)
    shared_free: float = field(default=0.0, init=False)
    tensor_free: float = field(default=0.0, init=False)
    in_flight: InFlight = field(default_factory=lambda: InFlight(Asynchronous()), init=False)
    ran: int = field(default=0, init=False)
    next: int = field(default=0, init=False)

    def run(self) -> Chain:
        """Run the warp from start to end."""
        self.once(self.code.outer, 1.0)
        return self.chain

    def once(self, loop: Loop, rounds: float) -> None:
        """Run one iteration of a loop that has `rounds` in all."""
        inner = {each.first: each for each in loop.inner}
        place = loop.first
        while place <= loop.last:
            if place in inner:
                self._loop(inner[place], rounds)
                place = inner[place].last + 1
                continue
            block = self.code.blocks[place]
            share = self.times[place] / rounds if block.operations else 0.0
            if share:
                self._part(share, partial(self.block, place))
            place += 1

    def _loop(self, loop: Loop, rounds: float) -> None:
        """Run an inner loop, in all as often as its first block ran."""
        total = self.times[loop.first]
        if total <= 0:
            return
        is_self_loop = loop.first == loop.last and loop.first in self.entries
        entered = (
            self.entries[loop.first] if is_self_loop else min(total, self._before(loop, rounds))
        )
        if entered <= 0:
            return
        iterations = total / entered
        self._part(entered / rounds, lambda: self._repeat(loop, iterations, total))

    def _before(self, loop: Loop, rounds: float) -> float:
        """Return how often the block before a loop ran."""
        return min(rounds, self.times.get(loop.first - 1, rounds)) or rounds

    def _operations(self, loop: Loop) -> set[int]:
        blocks = self.code.blocks[loop.first : loop.last + 1]
        return {operation for block in blocks for operation in block.operations}

    def _repeat(self, loop: Loop, iterations: float, total: float) -> None:
        # with several copies on the way an iteration is as long as another only after so many
        period = self.in_flight.facts.stages if SYNCS in self._operations(loop) else 1
        run = min(iterations, ROUNDS * period) if self.ran < MOST_RUN else 1.0
        before = self.chain.mark()
        for number in range(int(run)):
            if number <= int(run) - period:
                before = self.chain.mark()
            self.once(loop, total)
        more = iterations - int(run)
        if more > 0 and int(run):
            self._scale(before, 1 + more / min(period, int(run)))
        elif more > 0:
            self._part(more, lambda: self.once(loop, total))

    def _part(self, share: float, work: Callable[[], None]) -> None:
        """Run blocks that execute in a share of the iterations; scale their cycles by it."""
        before = self.chain.mark()
        work()
        self._scale(before, share)

    def _scale(self, before: Mark, factor: float) -> None:
        """Multiply the cycles since a mark by a factor."""
        if factor != 1:
            # Results that are in flight move with the clock, so the remaining stalls stay the same.
            more = self.chain.stretch(before, factor)
            self.scoreboard = [(when + more, why) for when, why in self.scoreboard]
            self.loads = [
                [replace(load, issued=load.issued + more) for load in each] for each in self.loads
            ]
            self.shared_free += more
            self.tensor_free += more
            self.in_flight.shift(more)

    def block(self, place: int) -> None:
        """Run a machine block once."""
        block = self.code.blocks[place]
        if place != self.next and self.ran:
            self._stall(self.issue_cycles, "branch", block.start)
        self.next = place + 1
        for at in range(block.start, block.end):
            each = self.code.schedule[at]
            self.ran += 1
            boards = [board for board in range(BOARDS) if each.waits >> board & 1]
            for board in boards:
                when, why = self.scoreboard[board]
                self._stall(when - self.chain.cycles, why, at)
            if any(self.loads[board] for board in boards):
                self._await_misses([load for board in boards for load in self.loads[board]], at)
                for board in boards:
                    self.loads[board].clear()
            if each.operation in PRODUCTS:
                self._stall(self.tensor_free - self.chain.cycles, "pipe", at)
                self.tensor_free = self.chain.cycles + self.product_cycles
            queued = self._queue(at) if each.operation in SHARED else 0.0
            if each.sets != NO_SCOREBOARD or each.operation == COPY:
                cycles, why = self.latency(each.operation, each.pc)
                cycles += queued
                finish = self.chain.cycles + cycles, why
                if each.operation == SYNCS and self.in_flight.facts.load_cycles:
                    arrival = self.in_flight.await_copy(self.chain.cycles)
                    finish = max(finish, (arrival, self.in_flight.facts.stall))
                # Copies (LDGSTS) finish on the scoreboard of the LDGDEPBAR that follows.
                if each.operation == COPIED:
                    finish = max(finish, self.copied)
                    self.in_flight.copies.append(self.copied[0])
                if each.operation == COPY:
                    self.copied = max(self.copied, finish)
                else:
                    self.scoreboard[each.sets] = max(self.scoreboard[each.sets], finish)
                    if (step := self.steps.get(each.pc)) and step.misses:
                        own = self.missed_by[each.pc], self.chances_by[each.pc]
                        load = Load(each.pc, self.chain.cycles, self.missed, *own)
                        self.loads[each.sets].append(load)
            if each.operation == BARRIER and (step := self.steps.get(each.pc)) and step.is_barrier:
                self._stall(step.latency, "barrier", at)
            if each.operation in ASYNCHRONOUS:
                self._asynchronous(at)
            if each.operation != EXIT:
                self.chain.cycles += 1
                self._stall(each.stall - 1, "pipe", at)

    def _await_misses(self, loads: Sequence[Load], at: int) -> None:
        """Wait for the misses among loads whose hits have arrived: one is enough to wait for.

        Copies of a load (unrolling) miss in turn, so that the chances of those in flight add up.
        Loads of different pcs miss together, as rows of two arrays end together: they overlap.
        """
        by_pc = defaultdict[int, list[Load]](list)
        for load in loads:
            by_pc[load.pc].append(load)
        for pc, copies in by_pc.items():
            step, first = self.steps[pc], copies[0]
            left = max(0.0, 1 - self.chances_by[pc] + first.chances)
            elapsed = self.chain.cycles - self.missed - first.issued + first.missed
            cycles, reason = 0.0, ""
            for share, longer, why in reversed(step.misses):
                chance = min(left, len(copies) * share)
                left -= chance
                self.chances_by[pc] += chance
                cycles += chance * max(0.0, step.hit_latency + longer - elapsed)
                reason = reason or why
            overlap = self.missed - first.missed - (self.missed_by[pc] - first.own)
            if cycles > overlap:
                self._stall(cycles - overlap, reason, at)
                self.missed += cycles - overlap
                self.missed_by[pc] += cycles - overlap

    def _queue(self, at: int) -> float:
        """Return how long an access to shared memory waits for the warp's last one."""
        step = self.steps.get(self.code.schedule[at].pc)
        begin = max(self.shared_free, self.chain.cycles)
        self.shared_free = begin + (step.queue if step else 0.0)
        return begin - self.chain.cycles

    def _asynchronous(self, at: int) -> None:
        """Start or await work of the tensor pipe, or of a copy."""
        each, units, now = self.code.schedule[at], self.in_flight, self.chain.cycles
        if each.operation == FENCE:
            self._stall(self.latency(FENCE, each.pc)[0], "fence", at)
        elif each.operation == GMMA:
            units.multiply(now)
        elif each.operation == WARPGROUP and units.is_grouped:
            self._stall(units.await_products(each.pc) - now, "tensor", at)
        elif each.operation == STORES_COMMITTED:
            units.store(now)
        elif each.operation == DEPBAR:
            self._stall(units.await_group(each.pc) - now, units.facts.stall, at)
        elif each.operation in ASKS and each.pc not in units.facts.stores:
            units.ask(now)

    def _stall(self, cycles: float, why: str, at: int) -> None:
        """Advance the clock, and book the cycles to the stalled instruction."""
        if cycles > 0:
            self.chain.cycles += cycles
            self.chain.book(self.code.schedule[at].pc, why, cycles)
