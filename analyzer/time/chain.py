"""The dependence chain of a warp in PTX: its cycles when it runs alone.

Used for launches without machine code in the trace; see `machine_warp.py`.

Within a basic block an instruction issues when its registers are ready and the instruction WINDOW
places before it has issued, since the assembler moves loads to the front. Instructions that depend
on loads form a second stream. The block ends when all instructions have issued and, if it branches
on a predicate, the predicate is ready. Each stall is booked by reason and by the stalled
instruction. For a block that runs many times in a row a few iterations are simulated, and the last
one is extrapolated. In single-block loops with four loads or more (as the compiler unrolls them)
and a loop counter of their own, four iterations overlap, as the assembler schedules them in machine
code.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TypeAlias

from ...base.dataclass import dataclass

_REGISTER = re.compile(r"%[a-zA-Z_$][\w$]*")
_NO_RESULT = ("st.", "red.", "bra", "bar", "ret", "exit", "membar", "fence", "prefetch", "cp.")


@dataclass(frozen=True, slots=True)
class Operands:
    """Register operands; special registers (`%tid.x`) are always ready and omitted."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]


_ADDRESS = re.compile(r"\[\s*(%?[\w$.]+)\s*([+-]\s*\w+)?\s*\]")


def read_address(text: str) -> tuple[str, str]:
    """Return the register and the offset of an instruction's address; empty without an address.

    >>> read_address("ld.global.f32 %f1, [%rd5+8];"), read_address("bar.sync 0;")
    (('%rd5', '+8'), ('', ''))
    """
    match = _ADDRESS.search(text)
    return (match[1], match[2] or "+0") if match else ("", "")


@lru_cache(maxsize=1 << 14)
def read_operands(text: str) -> Operands:
    """Parse the registers that an instruction writes and reads.

    >>> read_operands("@%p1 mad.lo.s32 %r1, %r3, %ntid.x, %r5;")
    Operands(writes=('%r1',), reads=('%p1', '%r3', '%r5'))
    >>> read_operands("ld.global.v2.f32 {%f1, %f2}, [%rd5+8];")
    Operands(writes=('%f1', '%f2'), reads=('%rd5',))
    >>> read_operands("st.global.f32 [%rd7], %f1;")
    Operands(writes=(), reads=('%rd7', '%f1'))
    """
    predicate, body = "", text.strip()
    if body.startswith("@"):
        predicate, _, body = body.partition(" ")
    mnemonic, _, operands = body.strip().partition(" ")
    operands = re.sub(r"%(?:tid|ntid|ctaid|nctaid|laneid|clock\w*|warpid)(?:\.\w)?", "", operands)
    first, others = _split_first(operands)
    writes = () if mnemonic.startswith(_NO_RESULT) else tuple(_REGISTER.findall(first))
    reads = _REGISTER.findall(predicate + " " + (others if writes else operands))
    return Operands(writes, tuple(dict.fromkeys(reads)))


def _split_first(operands: str) -> tuple[str, str]:
    """Split off the first operand, which may be a vector."""
    depth = 0
    for place, letter in enumerate(operands):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            return operands[:place], operands[place + 1 :]
    return operands, ""


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
    may not pass a store to its `space` (empty: any; `read-only`: none) unless their `address`, a
    register and an offset, is another offset of the same register.
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
    address: tuple[str, str] = ("", "")

    def may_meet(self, store: "Step") -> bool:
        """Return whether a store may alias this load, as far as the assembler can tell."""
        if self.space != store.space and self.space and store.space:
            return False
        return self.address[0] != store.address[0] or self.address[1] == store.address[1]


Mark: TypeAlias = tuple[float, Mapping[str, float], Mapping[tuple[int, str], float]]
"""Snapshot of a chain: cycles, stall cycles by reason, and stall cycles by pc and reason."""


@dataclass(slots=True)
class Chain:
    """Cycles of a warp, and its stall cycles by reason and by stalled pc.

    `issued` counts its machine instructions by operation, if it ran in machine code.
    """

    cycles: float = 0.0
    stalls: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    at: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))
    issued: Mapping[int, float] = field(default_factory=dict)

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
