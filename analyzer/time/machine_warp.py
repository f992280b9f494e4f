"""Run a launch's warps in machine code, with latencies for instructions that set a scoreboard.

Those latencies are measured, not part of the schedule: a load has the latency of the cache that
served it, as in PTX; other instructions have that of a similar one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial

from ...base.dataclass import dataclass
from ...models.replay.device.device import Device
from ...models.replay.device.measured import Measured
from ...traces.machine_schedule import NO_SCOREBOARD
from ...traces.schema import Launch
from ..machine.machine_code import Loop, MachineCode, code_for, count_runs
from ..machine.machine_pipes import machine_mix
from .chain import ROUNDS, Chain, Mark, Step

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
    launch: Launch, device: Device, code: Mapping[int, Sequence[Step]], measured: Measured
) -> Callable[[Sequence[tuple[int, int]]], Chain] | None:
    """Return a function that runs a history in machine code; None if the trace has no such code.

    `code` are the steps of each basic block of the PTX. Raises `CutraceError` for a damaged
    schedule.
    """
    machine = code_for(launch, "sm_{}{}".format(*device.capability))
    if machine is None:
        return None
    steps = {step.pc: step for block in code.values() for step in block}
    block_of = {step.pc: block for block, each in code.items() for step in each}
    latency = partial(_machine_latency, steps, measured)

    def run(history: Sequence[tuple[int, int]]) -> Chain:
        times, entries = count_runs(machine, history, block_of)
        warp = MachineWarp(machine, times, entries, steps, latency, measured.taken_cycles)
        chain = warp.run()
        chain.issued = machine_mix(machine, times)
        return chain

    return run


def _machine_latency(
    steps: Mapping[int, Step], measured: Measured, operation: int, pc: int
) -> tuple[float, str]:
    """Return an instruction's latency to its scoreboard, and its reader's stall reason."""
    step = steps.get(pc)
    if operation in MEMORY and step and step.stall in MEMORY_WAITS:
        return step.latency, step.stall
    name, why = VARIABLE.get(operation, EXCHANGE)
    return measured.at(*name), why


BARRIER, COPY, COPIED, EXIT = 0x11D, 0x1AE, 0x1AF, 0x14D
"""Operations: BAR; LDGSTS; LDGDEPBAR, which completes after the copies before it; EXIT, whose time
belongs to an empty kernel.
"""
MOST = 60_000
"""Instructions after which one iteration of a loop stands for all."""
BOARDS = 6
"""Scoreboards per warp."""
Latency = Callable[[int, int], tuple[float, str]]
"""Maps an operation and a pc that set a scoreboard to cycles and the reader's stall reason."""


@dataclass(slots=True)
class MachineWarp:
    """A running warp: executions of each machine block, and its entries from other blocks.

    `steps` are the PTX steps by pc; a taken branch costs `issue_cycles`. The state is the finish
    time and the stall reason of each scoreboard.
    """

    code: MachineCode
    times: Mapping[int, float]
    entries: Mapping[int, float]
    steps: Mapping[int, Step]
    latency: Latency
    issue_cycles: float
    chain: Chain = field(default_factory=Chain, init=False)
    scoreboard: list[tuple[float, str]] = field(
        default_factory=lambda: [(0.0, "")] * BOARDS, init=False
    )
    copied: tuple[float, str] = field(default=(0.0, ""), init=False)
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

    def _repeat(self, loop: Loop, iterations: float, total: float) -> None:
        run = min(iterations, ROUNDS) if self.ran < MOST else 1.0
        before = self.chain.mark()
        for _ in range(int(run)):
            before = self.chain.mark()
            self.once(loop, total)
        more = iterations - int(run)
        if more > 0 and int(run):
            self._scale(before, 1 + more)
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

    def block(self, place: int) -> None:
        """Run a machine block once."""
        block = self.code.blocks[place]
        if place != self.next and self.ran:
            self._stall(self.issue_cycles, "branch", block.start)
        self.next = place + 1
        for at in range(block.start, block.end):
            each = self.code.schedule[at]
            self.ran += 1
            for board in range(BOARDS):
                if each.waits >> board & 1:
                    when, why = self.scoreboard[board]
                    self._stall(when - self.chain.cycles, why, at)
            if each.sets != NO_SCOREBOARD or each.operation == COPY:
                cycles, why = self.latency(each.operation, each.pc)
                finish = self.chain.cycles + cycles, why
                # Copies (LDGSTS) finish on the scoreboard of the LDGDEPBAR that follows.
                if each.operation == COPIED:
                    finish = max(finish, self.copied)
                if each.operation == COPY:
                    self.copied = max(self.copied, finish)
                else:
                    self.scoreboard[each.sets] = max(self.scoreboard[each.sets], finish)
            if each.operation == BARRIER and (step := self.steps.get(each.pc)) and step.is_barrier:
                self._stall(step.latency, "barrier", at)
            if each.operation != EXIT:
                self.chain.cycles += 1
                self._stall(each.stall - 1, "pipe", at)

    def _stall(self, cycles: float, why: str, at: int) -> None:
        """Advance the clock, and book the cycles to the stalled instruction."""
        if cycles > 0:
            self.chain.cycles += cycles
            self.chain.book(self.code.schedule[at].pc, why, cycles)
