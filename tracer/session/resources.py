"""What the assembler makes of a kernel, asked in the background while the kernel runs."""

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, cached_property
from typing import TypeAlias

from ...base.claim import in_child
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.machine_schedule import pack_schedule
from ...traces.schema import AssembledAccess, Resources
from ..front.resources import SASS_ARCHITECTURE, measure
from ..front.sass import ByLine, Facts, MachineInstruction
from ..ptx.digraph import immediate_dominators
from ..ptx.kernel import (
    TYPE_BYTES,
    Address,
    BasicBlock,
    CallTarget,
    Immediate,
    Instruction,
    Kernel,
    Register,
    Symbol,
    Vector,
)
from ..ptx.opcodes import destinations, sources
from ..simt.call.call import BROUGHT

DRIVER_REGISTERS = 32
"""What the driver's functions take of a thread on 9.0: a kernel has the most of all it may call.

Source: eight kernels on an H100, tests/validate/counters/print.cu; others were not measured."""


def ask_resources(
    ptx: str, kernel: Kernel, options: Sequence[str] = ()
) -> "Future[tuple[Resources, ...]]":
    """Return what will be the kernel's resources for every architecture that can be asked.

    `options` are the assembler's. Without an assembler (macOS) there are none: the trace then says
    nothing of registers.
    """
    return assembler().submit(_resources_if_any, ptx, kernel, options)


@cache
def assembler() -> ThreadPoolExecutor:
    """The threads that ask, one pool a process; a launch that fails leaves its question to them."""
    workers = min(4, os.cpu_count() or 1)
    return ThreadPoolExecutor(workers, thread_name_prefix="cutrace-assembler")


in_child(assembler.cache_clear)


def _resources_if_any(ptx: str, kernel: Kernel, options: Sequence[str]) -> tuple[Resources, ...]:
    try:
        return tuple(_with_accesses(ptx, kernel, options))
    except CutraceError:
        return ()


def _with_accesses(ptx: str, kernel: Kernel, options: Sequence[str]) -> Iterator[Resources]:
    measured = measure(ptx, kernel.name, options=options)
    for each in measured.resources:
        if each.arch == SASS_ARCHITECTURE:
            yield replace(
                each,
                registers=max(each.registers, DRIVER_REGISTERS * _calls_driver(kernel)),
                accesses=sass_accesses(kernel, measured.facts.by_line),
                schedule=_schedule(kernel, measured.facts),
            )
        else:
            yield each


def _calls_driver(kernel: Kernel) -> bool:
    """Whether a kernel calls a function whose code is the driver's."""
    operands = (operand for one in kernel.instructions for operand in one.operands)
    calls = (operand.callee for operand in operands if isinstance(operand, CallTarget))
    return any(isinstance(callee, Symbol) and callee.name in BROUGHT for callee in calls)


def _schedule(kernel: Kernel, facts: Facts) -> str:
    """The schedule with the kernel's pcs; what comes before them all is the first one's."""
    pcs: dict[int, int] = {}
    for pc, instruction in enumerate(kernel.instructions):
        pcs.setdefault(instruction.ptx_line, pc)
    return pack_schedule([replace(each, pc=pcs.get(each.pc, 0)) for each in facts.schedule])


_LOADS, _STORES = frozenset({"LD", "LDG", "LDL", "LDS"}), frozenset({"ST", "STG", "STL", "STS"})
_MACHINE = {"ld": _LOADS, "ldu": _LOADS, "st": _STORES}
_LEAVING = frozenset({"BRA", "BRX", "EXIT"})
_COPY = "cp.async.c"
_OPERANDS = frozenset({"param", "const"})
"""Spaces whose accesses are operands of other machine instructions."""

Pieces: TypeAlias = tuple[tuple[int, int], ...]


def sass_accesses(kernel: Kernel, facts: ByLine) -> tuple[AssembledAccess, ...]:
    """Return the accesses that differ, in order of pc."""
    if not facts:
        return ()
    return tuple(sorted(_Comparison(kernel, facts).changes(), key=lambda access: access.pc))


@dataclass(frozen=True)
class _Comparison:
    """A kernel beside the machine code that was made of it."""

    kernel: Kernel
    facts: ByLine

    def changes(self) -> Iterator[AssembledAccess]:
        """Yield what differs."""
        wide = self._joined()
        member_pcs = {pc for _, members in wide.values() for pc in members}
        for pc in self._machine_accesses:
            whole = ((0, self._bytes(pc)),)
            pieces = (
                (wide[pc][0],) if pc in wide else () if pc in member_pcs else self._unjoined(pc)
            )
            issued = self._issued(pc) if pieces else -1
            if pieces != whole or issued >= 0:
                yield AssembledAccess(pc, pieces, issued)
        yield from self._copies()

    def _copies(self) -> Iterator[AssembledAccess]:
        """Yield copies to shared memory before which ptxas puts loads that never run."""
        for pc, one in enumerate(self.kernel.instructions):
            machine_instructions = (
                self.facts.get(one.ptx_line, ()) if one.mnemonic.startswith(_COPY) else ()
            )
            spare = sum(m.operation == "!LDS" for m in machine_instructions)
            size = one.operands[2] if spare else None
            if isinstance(size, Immediate):
                yield AssembledAccess(pc, ((0, size.bits),), pc, spare)

    @cached_property
    def _machine_accesses(self) -> Mapping[int, Sequence[MachineInstruction]]:
        """The loads and stores that have a line of their own, and what was made of each."""
        instructions_by_pc: dict[int, Sequence[MachineInstruction]] = {}
        many = Counter(i.ptx_line for i in self.kernel.instructions if _accesses(i))
        for pc, one in enumerate(self.kernel.instructions):
            if _accesses(one) and one.opcode in _MACHINE and many[one.ptx_line] == 1:
                here = self.facts.get(one.ptx_line, ())
                instructions_by_pc[pc] = [m for m in here if m.operation in _MACHINE[one.opcode]]
        return instructions_by_pc

    def _bytes(self, pc: int) -> int:
        one = self.kernel.instructions[pc]
        return TYPE_BYTES[one.type] * one.vector

    def _width(self, pc: int) -> int:
        """Bytes a lane of the machine instructions, where they all have the same; 0: none."""
        widths = {m.bytes for m in self._machine_accesses[pc]}
        return widths.pop() if len(widths) == 1 else 0

    def _joined(self) -> Mapping[int, tuple[tuple[int, int], set[int]]]:
        """Of each access that became a wide one: its piece, and those that it has swallowed."""
        joins: dict[int, tuple[tuple[int, int], set[int]]] = {}
        for pc in self._machine_accesses:
            width, own = self._width(pc), self._bytes(pc)
            if width > own:
                gone = {
                    n: at
                    for n, at in self._neighbours(pc, width).items()
                    if not self._machine_accesses[n]
                }
                starts = [-own * k for k in range(width // own)]
                inside = {s: {n for n, at in gone.items() if s <= at < s + width} for s in starts}
                base = self._offset(pc)
                best = max(starts, key=lambda s: (len(inside[s]), (base + s) % width == 0, s))
                if inside[best]:
                    joins[pc] = (best, width), inside[best]
        return joins

    def _offset(self, pc: int) -> int:
        address = _address(self.kernel.instructions[pc])
        return address.offset if address else 0

    def _neighbours(self, pc: int, reach: int) -> dict[int, int]:
        """The accesses of its kind from the same base, in its basic block or in those that only
        lead through it: bytes from its address, fewer than `reach`."""
        block, mine = self._block[pc], self.kernel.instructions[pc]
        address = _address(mine)
        if address is None:
            return {}
        key = block.function, address.base
        sets, addresses = self._defined.get(key, ()), self._from_base[(*key, mine.opcode)]
        offsets: dict[int, int] = {}
        first = bisect_right(addresses, (address.offset - reach, len(self.kernel.instructions)))
        for offset, place in addresses[first : bisect_left(addresses, (address.offset + reach, 0))]:
            other = self._block[place]
            if len(sets) > 1:
                between = (min(pc, place) <= at < max(pc, place) for at in sets)
                is_adjacent = other is block and not any(between)
            else:
                is_adjacent = self._leads_to(block, other)
            if is_adjacent and place != pc:
                offsets[place] = offset - address.offset
        return offsets

    @cached_property
    def _from_base(self) -> Mapping[tuple[int, object, str], Sequence[tuple[int, int]]]:
        """The accesses of a function by the base of their addresses, and by kind: offset and pc,
        rising."""
        accesses_by_base: dict[tuple[int, object, str], list[tuple[int, int]]] = {}
        for pc in self._machine_accesses:
            one = self.kernel.instructions[pc]
            if address := _address(one):
                key = self._block[pc].function, address.base, one.opcode
                accesses_by_base.setdefault(key, []).append((address.offset, pc))
        return {key: sorted(places) for key, places in accesses_by_base.items()}

    def _leads_to(self, above: BasicBlock, block: BasicBlock) -> bool:
        """Whether all ways to a block lead through another."""
        number: int | None = block.number
        while number is not None and number != above.number:
            number = self._dominators.get(number)
        return number is not None

    @cached_property
    def _defined(self) -> Mapping[tuple[int, object], Sequence[int]]:
        """Where each register of a function is set."""
        definition_pcs: dict[tuple[int, object], list[int]] = {}
        for block in self.kernel.blocks:
            for pc in range(block.first, block.last):
                for register in destinations(self.kernel.instructions[pc]):
                    definition_pcs.setdefault((block.function, register), []).append(pc)
        return definition_pcs

    def _unjoined(self, pc: int) -> Pieces:
        """What became of an access that was not joined with others."""
        one, own, machine_instructions = (
            self.kernel.instructions[pc],
            self._bytes(pc),
            self._machine_accesses[pc],
        )
        if not machine_instructions:
            return () if one.opcode != "st" or one.space == "local" else ((0, own),)
        width = self._width(pc)
        if not width or width >= own:
            return ((0, own),)
        if one.vector == 1 and len(machine_instructions) == 1:
            return ((0, width),)  # the lower half of a number
        size = TYPE_BYTES[one.type]
        starts = {k * size // width * width for k in self._elements_read(one)}
        return tuple(
            (at, width) for at in (sorted(starts) if size <= width else range(0, own, width))
        )

    def _elements_read(self, one: Instruction) -> list[int]:
        """Which elements of a vector that is loaded anything reads."""
        if one.opcode == "st" or not isinstance(one.operands[0], Vector):
            return list(range(one.vector))
        elements = one.operands[0].elements
        return [k for k, e in enumerate(elements) if isinstance(e, Register) and e in self._read]

    @cached_property
    def _read(self) -> frozenset[Register]:
        return frozenset(r for one in self.kernel.instructions for r in sources(one))

    def _issued(self, pc: int) -> int:
        """The instruction whose warps issue it, if more may than have a lane in it; else -1."""
        if not all(m.guarded for m in self._machine_accesses[pc]):
            return -1
        issued = pc if self.kernel.instructions[pc].guard else -1
        block = self._block[pc]
        while (above := self._dominators.get(block.number)) is not None:
            arm, block = block, self.kernel.blocks[above]
            last = self.kernel.instructions[block.last - 1]
            if last.opcode in ("bra", "brx", "ret", "exit") and last.guard:
                if self._leaves(block, arm):
                    break
                issued = block.last - 1
        return issued

    def _leaves(self, block: BasicBlock, arm: BasicBlock) -> bool:
        """Whether the machine code has the branch at a block's end that goes around an arm: as it
        is, or where the other arm goes on."""
        others = (self.kernel.blocks[n].last - 1 for n in block.successors if n != arm.number)
        after = (self.kernel.instructions[pc] for pc in others)
        ends = [n for n in after if n.opcode == "bra" and n.guard is None]
        lines = (n.ptx_line for n in (self.kernel.instructions[block.last - 1], *ends))
        return any(m.operation in _LEAVING for n in lines for m in self.facts.get(n, ()))

    @cached_property
    def _block(self) -> Mapping[int, BasicBlock]:
        return {pc: b for b in self.kernel.blocks for pc in range(b.first, b.last)}

    @cached_property
    def _dominators(self) -> Mapping[int, int]:
        """The block through which each is reached, of each function from its first one."""
        graph = {b.number: list(b.successors) for b in self.kernel.blocks}
        dominators: dict[int, int] = {}
        for span in self.kernel.functions:
            dominators |= {
                b: d for b, d in immediate_dominators(graph, span.entry).items() if b != d
            }
        return dominators


def _accesses(one: Instruction) -> bool:
    """Whether an instruction accesses memory that a trace has."""
    return one.opcode in (*_MACHINE, "atom", "red") and one.space not in _OPERANDS


def _address(one: Instruction) -> Address | None:
    return next((operand for operand in one.operands if isinstance(operand, Address)), None)
