"""A warp's dependence chain in PTX: how long it runs alone, waiting for operands.

Used for launches whose machine code is not in the trace; see `machine_chain.py`.

Inside a basic block an instruction starts when its registers are ready and the one WINDOW before
it has started, since the assembler moves loads to the front; instructions that depend on loads are
a stream of their own. The block ends when all instructions have started and, if it branches by a
predicate, the predicate is known. A wait is booked to its cause and to the instruction that waits.
For a block that runs many times in a row a few iterations are simulated, and the last one repeated.
Four iterations overlap in loops of one block with four loads or more (as the compiler unrolls them)
that end by a counter of their own: the assembler does so in machine code.
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
    """Names of registers; special ones (`%tid.x`) are there from the start and do not count."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]


_ADDRESS = re.compile(r"\[\s*(%?[\w$.]+)\s*([+-]\s*\w+)?\s*\]")


def read_address(text: str) -> tuple[str, str]:
    """The register of an instruction's address, and its offset; empty ones without an address.

    >>> read_address("ld.global.f32 %f1, [%rd5+8];"), read_address("bar.sync 0;")
    (('%rd5', '+8'), ('', ''))
    """
    match = _ADDRESS.search(text)
    return (match[1], match[2] or "+0") if match else ("", "")


@lru_cache(maxsize=1 << 14)
def read_operands(text: str) -> Operands:
    """Read an instruction's registers.

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
    """The first operand, a whole vector if it is one, and the rest."""
    depth = 0
    for place, letter in enumerate(operands):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            return operands[:place], operands[place + 1 :]
    return operands, ""


WINDOW = 8
"""Instructions past which the assembler moves another that is no load: chosen on the launches of
tests/validate/counters, of which none is in docs/time.md."""
ROUNDS = 3
"""Rounds of a block that are run."""
SIDE_BY_SIDE, UNROLLED = 4, 4
"""Rounds that the assembler runs side by side, and the loads of a loop for which it does so."""
MOST = 6000
"""Instructions that are run; the rest of a warp is taken to be like them."""


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction on a device: when its result is there, and cycles until the next starts.

    `stall` is what those wait for who need its result; a `barrier` lets nothing pass. After one
    that `branches` the next block starts its latency later. A load may not pass a store to its
    `space` (empty: any; `read-only`: none) unless their `address`, a register and an offset, is
    another offset of the same register.
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
        """Whether a store may change what this loads, as far as the assembler can tell."""
        if self.space != store.space and self.space and store.space:
            return False
        return self.address[0] != store.address[0] or self.address[1] == store.address[1]


Mark: TypeAlias = tuple[float, Mapping[str, float], Mapping[tuple[int, str], float]]
"""Cycles of a chain, and its waits by what for and by pc, at some time."""


@dataclass(slots=True)
class Chain:
    """Cycles of a warp, and those that it waited, by what for and by the pc that waited.

    `issued` are its machine instructions by operation, if it ran in machine code.
    """

    cycles: float = 0.0
    stalls: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    at: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))
    issued: Mapping[int, float] = field(default_factory=dict)

    def mark(self) -> Mark:
        """The present state, for `stretch`."""
        return self.cycles, dict(self.stalls), dict(self.at)

    def stretch(self, since: Mark, factor: float) -> float:
        """Multiply the cycles since a mark by a factor; return the cycles added."""
        cycles, stalls, at = since
        more = (self.cycles - cycles) * (factor - 1)
        self.cycles += more
        for name, value in self.stalls.items():
            self.stalls[name] = value + (value - stalls.get(name, 0.0)) * (factor - 1)
        for key, value in self.at.items():
            self.at[key] = value + (value - at.get(key, 0.0)) * (factor - 1)
        return more

    def book(self, pc: int, why: str, cycles: float) -> None:
        """Note that an instruction waited."""
        self.stalls[why] += cycles
        self.at[pc, why] += cycles


def run_chain(history: Sequence[tuple[int, int]], code: Mapping[int, Sequence[Step]]) -> Chain:
    """Run a history of (basic block, times in a row)."""
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
    """Whether a loop of this block ends by a register that the block itself counts."""
    if not code:
        return False
    wrote = {register: step.operands for step in code for register in step.operands.writes}
    for predicate in code[-1].operands.reads:
        for counter in wrote[predicate].reads if predicate in wrote else ():
            if counter in wrote and counter in wrote[counter].reads:
                return True
    return False


class _Run:
    """A warp under way: registers' times, and what each comes from."""

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
        if times > ROUNDS:  # the others are like the last one
            more = self.chain.stretch(last, 1 + times - ROUNDS)
            self.ready = {r: (t + more, w) for r, (t, w) in self.ready.items()}

    def round(self, code: Sequence[Step], unroll_factor: int) -> None:
        """Run a block once, or some rounds side by side."""
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
        """When a step's operands are ready, and the origin of the last of them."""
        begin, why = earliest, ""
        for register in step.operands.reads:
            completion = self.ready.get(register)
            if completion and completion[0] > begin:
                begin, why = completion
        return begin, why

    def scale(self, factor: float) -> None:
        """Take what was not run to be like what was."""
        chain = self.chain
        chain.cycles *= factor
        for name in chain.stalls:
            chain.stalls[name] *= factor
        for key in chain.at:
            chain.at[key] *= factor
