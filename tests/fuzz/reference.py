"""What random kernels should leave, one thread at a time in plain Python.

Threads go alone from one meeting to the next; at a meeting all of a block are there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fuzz.instruction import WIDTHS
from fuzz.number import Bits, mask, signed
from fuzz.syntax import (
    COUNTS,
    WORDS,
    Alone,
    Branch,
    Call,
    Compute,
    Exchange,
    Function,
    Graph,
    Leave,
    Local,
    Loop,
    Operand,
    Program,
    Shuffle,
    Statement,
    Switch,
    Together,
    Uniformly,
    Update,
    Vote,
)


class Left(Exception):
    """A thread has ended."""


@dataclass
class Thread:
    """The registers of a thread, its local memory, and what all threads share."""

    registers: dict[str, Bits]
    functions: Sequence[Function]
    cells: list[Bits]
    update: str
    local: list[Bits] = field(default_factory=lambda: list(range(WORDS)))
    has_left: bool = False

    def value(self, operand: Operand) -> Bits:
        """What a source holds."""
        return operand if isinstance(operand, int) else self.registers[operand]

    def holds(self, guard: str) -> bool:
        """Whether a guard does; none always does."""
        if not guard:
            return True
        return bool(self.registers[guard.lstrip("!")]) != (guard[0] == "!")

    def run(self, body: Sequence[Statement]) -> None:
        """Do statements in order."""
        for statement in body:
            self.do(statement)

    def do(self, statement: Statement) -> None:
        """Do a statement."""
        match statement:
            case Compute(form, result, sources, guard):
                if self.holds(guard):
                    self.registers[result] = form.compute(*map(self.value, sources))
            case Local(register, place, stores, guard):
                where = self.registers[place] % WORDS
                if self.holds(guard) and stores:
                    self.local[where] = self.registers[register]
                elif self.holds(guard):
                    self.registers[register] = self.local[where]
            case Update(value, place, guard):
                if self.holds(guard):
                    where = self.registers[place] % WORDS
                    self.cells[where] = UPDATES[self.update](
                        self.cells[where], self.registers[value]
                    )
            case Branch(guard, body, other):
                self.run(body if self.holds(guard) else other)
            case Loop():
                self._loop(statement)
            case Switch(chosen, bodies, falls_through):
                first = self.registers[chosen] % len(bodies)
                for body in bodies[first : None if falls_through else first + 1]:
                    self.run(body)
            case Call(function, result, sources, guard):
                if self.holds(guard):
                    first, second = (self.registers[source] for source in sources)
                    self.registers[result] = self._call(function, first, second)
            case Graph():
                self._walk(statement)
            case Leave(guard):
                if self.holds(guard):
                    raise Left

    def _loop(self, loop: Loop) -> None:
        left = self.registers[loop.times] & mask(loop.bits)
        while left or loop.checks_last:
            self.run(loop.body)
            if loop.leave and self.holds(loop.leave):
                return
            left -= 1
            if loop.checks_last and left <= 0:
                return

    def _walk(self, graph: Graph) -> None:
        number = 0
        for _ in range(graph.fuel):
            body, guard, taken, other = graph.blocks[number]
            self.run(body)
            number = taken if self.holds(guard) else other

    def _call(self, number: int, first: Bits, second: Bits) -> Bits:
        function = self.functions[number]
        own = {f"{letter}{k}": 0 for letter in "rp" for k in range(COUNTS[letter])}
        own |= {"r0": first, "r1": second, "r2": second}
        if function.is_recursive:
            if first & 3 == 0:
                return second
            own["r2"] = self._call(number, (first & 3) - 1, second)
        callee = Thread(own, self.functions, self.cells, self.update)
        callee.run(function.body)
        return callee.registers["r2"]


UPDATES: dict[str, Callable[[Bits, Bits], Bits]] = {
    "add": lambda a, b: (a + b) & mask(32),
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


class Block:
    """The threads of a block, and the memory that they share."""

    def __init__(self, threads: Sequence[Thread], number: int) -> None:
        self.threads = threads
        self._number = number
        self._shared = [0] * 128

    def run(self, body: Sequence[Together]) -> None:
        """Do everything in order, all threads together."""
        for item in body:
            match item:
                case Alone(alone):
                    for thread in self.threads:
                        thread.run(alone)
                case Exchange():
                    self._exchange(item)
                case Shuffle():
                    for warp in self._warps():
                        _shuffle(item, warp)
                case Vote():
                    groups = [self.threads] if item.kind[:3] == "bar" else self._warps()
                    for group in groups:
                        _vote(item, group)
                case Uniformly(inner, times, odd_blocks):
                    for _ in range(0 if odd_blocks and self._number % 2 == 0 else times):
                        self.run(inner)

    def _warps(self) -> list[Sequence[Thread]]:
        return [self.threads[k : k + 32] for k in range(0, len(self.threads), 32)]

    def _exchange(self, item: Exchange) -> None:
        for number, thread in enumerate(self.threads):
            self._shared[number * item.factor % 128] = thread.registers[item.stored]
        for thread in self.threads:
            thread.registers[item.loaded] = self._shared[thread.registers[item.place] % 128]


def _shuffle(item: Shuffle, warp: Sequence[Thread]) -> None:
    sources = [thread.registers[item.source] for thread in warp]
    steps = [thread.value(item.step) & 31 for thread in warp]
    for lane, (thread, step) in enumerate(zip(warp, steps, strict=True)):
        first = lane - lane % item.segment
        other = {
            "up": lane - step,
            "down": lane + step,
            "bfly": lane ^ step,
            "idx": first + step % item.segment,
        }[item.mode]
        reaches = other >= first if item.mode == "up" else other < first + item.segment
        thread.registers[item.result] = sources[other if reaches else lane]
        if item.valid != "_":
            thread.registers[item.valid] = int(reaches)


def _vote(item: Vote, group: Sequence[Thread]) -> None:
    values = [thread.registers[item.source] for thread in group]
    found: Bits | list[Bits]
    match item.kind.split("."):
        case ["all"] | ["bar", "and"]:
            found = int(all(values))
        case ["any"]:
            found = int(any(values))
        case ["uni"]:
            found = int(len(set(values)) == 1)
        case ["ballot"]:
            found = sum(value << lane for lane, value in enumerate(values))
        case ["active"]:
            found = mask(len(group))
        case ["bar", "popc"]:
            found = sum(values)
        case ["match"]:
            found = [sum((v == w) << k for k, w in enumerate(values)) for v in values]
        case ["redux", name]:
            order = (lambda v: signed(v, 32)) if name in ("min", "max") else None
            total = values[0]
            for value in values[1:]:
                total = UPDATES[name](total, value)
            found = total if order is None else {"min": min, "max": max}[name](values, key=order)
    for lane, thread in enumerate(group):
        thread.registers[item.result] = found[lane] if isinstance(found, list) else found


def run(
    program: Program, rows: Sequence[dict[str, Bits]]
) -> tuple[list[dict[str, Bits]], list[Bits]]:
    """Return what all threads leave in their registers, and the cells."""
    cells = [0] * WORDS
    threads = [Thread(dict(row), program.functions, cells, program.update) for row in rows]
    for number in range(program.blocks):
        first = number * program.threads
        block = Block(threads[first : first + program.threads], number)
        block.run(program.body)
        for thread in block.threads:
            try:
                thread.run(program.tail)
            except Left:
                thread.has_left = True
    return [thread.registers for thread in threads], cells


def first_registers(row: Sequence[int]) -> dict[str, Bits]:
    """The registers that a thread starts with, from 64-bit words."""
    names = [f"{letter}{k}" for letter, count in COUNTS.items() for k in range(count)]
    return {name: word & mask(WIDTHS[name[0]]) for name, word in zip(names, row, strict=True)}
