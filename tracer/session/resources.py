"""Assemble a kernel in the background while it runs, and compare the result with its PTX.

`ask_resources` returns a future of the kernel's resources on each architecture. For those whose
machine code is decoded, `sass_accesses` finds the loads and stores that ptxas widened, merged,
split, narrowed or removed, and those that warps issue without an active lane.
"""

import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias, cast

from ...base.cache import Cache, key_of, source_digest
from ...base.claim import in_child
from ...base.cores import cores
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.machine_schedule import pack_schedule
from ...traces.manifest import decoder, encode
from ...traces.schema import AssembledAccess, Resources
from ..front.resources import Measured, measure
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
from ..sass.cubin import Cubin
from ..simt.call.call import BROUGHT

DRIVER_ARCH, DRIVER_REGISTERS = "sm_90", 32
"""Registers per thread of the driver's functions on 9.0; a kernel has the maximum of its callees.

Source: eight kernels on an H100, tests/validate/counters/print.cu; others were not measured.
"""


def ask_resources(
    ptx: str, kernel: Kernel, options: Sequence[str] = ()
) -> "Future[tuple[Resources, ...]]":
    """Return a future of the kernel's resources on every available architecture.

    `options` are the assembler's. Without an assembler (macOS) the result is empty, and the trace
    has no register counts.
    """
    return assembler().submit(_resources_if_any, ptx, kernel, options)


def resources_of(
    ptx: str, kernel: Kernel, arch: str, options: Sequence[str] = ()
) -> "Future[tuple[Resources, ...]]":
    """Return the resources on one architecture, whose machine code runs itself."""
    measured = measure(ptx, kernel.name, archs=(arch,), options=options).resources
    least = _least_registers(arch, _calls_driver(kernel))
    answer: Future[tuple[Resources, ...]] = Future()
    answer.set_result(
        tuple(replace(each, registers=max(each.registers, least)) for each in measured)
    )
    return answer


def _least_registers(arch: str, calls_driver: bool) -> int:
    return DRIVER_REGISTERS if arch == DRIVER_ARCH and calls_driver else 0


def resources_in(cubin: Cubin, kernel: str) -> "Future[tuple[Resources, ...]]":
    """Return the resources of a kernel of a cubin."""
    facts, arch = cubin.resources(kernel), f"sm_{cubin.capability}"
    answer: Future[tuple[Resources, ...]] = Future()
    answer.set_result(
        (
            Resources(
                arch=arch,
                registers=max(facts.registers, _least_registers(arch, facts.calls_driver)),
                shared_bytes=facts.shared,
                local_bytes=facts.frame,
                constant_bytes=facts.constants,
                barriers=facts.barriers,
            ),
        )
    )
    return answer


@cache
def assembler() -> ThreadPoolExecutor:
    """Return the process's thread pool for assembly; a failed launch leaves its task running."""
    workers = min(4, cores())
    return ThreadPoolExecutor(workers, thread_name_prefix="cutrace-assembler")


in_child(assembler.cache_clear)


def _resources_if_any(ptx: str, kernel: Kernel, options: Sequence[str]) -> tuple[Resources, ...]:
    try:
        measured = measure(ptx, kernel.name, options=options)
        key = key_of(measured.key, _code_digest()) if measured.key else None
        return _COMPARED.get(key, lambda: tuple(_with_accesses(measured, kernel)))
    except CutraceError:
        return ()


@cache
def _code_digest() -> bytes:
    """Return a fingerprint of the code that compares a kernel with its machine code."""
    return source_digest([Path(__file__), *sorted(Path(__file__).parents[1].glob("ptx/*.py"))])


_KIND = tuple[Resources, ...]
_COMPARED: Cache[_KIND] = Cache(
    "compared",
    1 << 24,
    lambda compared: json.dumps(encode(compared, _KIND, "resources")).encode(),
    lambda data: cast(_KIND, decoder(_KIND)(json.loads(data))),
)
"""Keeps what ten architectures' machine code is compared to: packing it takes milliseconds each."""


def _with_accesses(measured: Measured, kernel: Kernel) -> Iterator[Resources]:
    graph = _Graph(kernel)
    for each in measured.resources:
        facts = measured.facts.get(each.arch, Facts())
        least = _least_registers(each.arch, _calls_driver(kernel))
        yield replace(
            each,
            registers=max(each.registers, least),
            accesses=_accesses_in(graph, facts.by_line),
            schedule=_schedule(kernel, facts),
        )


def _calls_driver(kernel: Kernel) -> bool:
    """Return True if the kernel calls a function that the driver implements."""
    operands = (operand for one in kernel.instructions for operand in one.operands)
    calls = (operand.callee for operand in operands if isinstance(operand, CallTarget))
    return any(isinstance(callee, Symbol) and callee.name in BROUGHT for callee in calls)


def _schedule(kernel: Kernel, facts: Facts) -> str:
    """Return the schedule with the kernel's pcs; instructions before the first line get pc 0."""
    pcs: dict[int, int] = {}
    for pc, instruction in enumerate(kernel.instructions):
        pcs.setdefault(instruction.ptx_line, pc)
    return pack_schedule([replace(each, pc=pcs.get(each.pc, 0)) for each in facts.schedule])


_LOADS, _STORES = frozenset({"LD", "LDG", "LDL", "LDS"}), frozenset({"ST", "STG", "STL", "STS"})
_MACHINE = {"ld": _LOADS, "ldu": _LOADS, "st": _STORES}
_LEAVING = frozenset({"BRA", "BRX", "EXIT"})
_COPY = "cp.async.c"
_OPERANDS = frozenset({"param", "const"})
"""Spaces that other machine instructions access as operands."""

_WIDEST = 16
"""Bytes of a lane that one machine instruction accesses at most."""

Pieces: TypeAlias = tuple[tuple[int, int], ...]


def sass_accesses(kernel: Kernel, facts: ByLine) -> tuple[AssembledAccess, ...]:
    """Return the accesses that differ between PTX and machine code, in order of pc."""
    return _accesses_in(_Graph(kernel), facts)


def _accesses_in(graph: "_Graph", facts: ByLine) -> tuple[AssembledAccess, ...]:
    if not facts:
        return ()
    return tuple(sorted(_Comparison(graph, facts).changes(), key=lambda access: access.pc))


@dataclass(frozen=True)
class _Graph:
    """What every architecture's comparison needs to know of a kernel's PTX."""

    kernel: Kernel

    @cached_property
    def read(self) -> frozenset[Register]:
        return frozenset(r for one in self.kernel.instructions for r in sources(one))

    @cached_property
    def block(self) -> Mapping[int, BasicBlock]:
        return {pc: b for b in self.kernel.blocks for pc in range(b.first, b.last)}

    @cached_property
    def dominators(self) -> Mapping[int, int]:
        """Return the immediate dominator of each block within its function."""
        graph = {b.number: list(b.successors) for b in self.kernel.blocks}
        dominators: dict[int, int] = {}
        for span in self.kernel.functions:
            dominators |= {
                b: d for b, d in immediate_dominators(graph, span.entry).items() if b != d
            }
        return dominators

    @cached_property
    def defined(self) -> Mapping[tuple[int, object], Sequence[int]]:
        """Return the pcs that define each register of a function."""
        definition_pcs: dict[tuple[int, object], list[int]] = {}
        for block in self.kernel.blocks:
            for pc in range(block.first, block.last):
                for register in destinations(self.kernel.instructions[pc]):
                    definition_pcs.setdefault((block.function, register), []).append(pc)
        return definition_pcs


@dataclass(frozen=True)
class _Comparison:
    """A kernel and its machine code for one architecture."""

    graph: _Graph
    facts: ByLine

    @property
    def kernel(self) -> Kernel:
        """The kernel's PTX."""
        return self.graph.kernel

    def changes(self) -> Iterator[AssembledAccess]:
        """Yield the accesses that differ."""
        wide = self._joined()
        member_pcs = {pc for _, members in wide.values() for pc in members}
        parted = self._parted(member_pcs)
        for pc in self._machine_accesses:
            whole = ((0, self._bytes(pc)),)
            if pc in wide:
                pieces: Pieces = (wide[pc][0],)
            elif pc in member_pcs:
                pieces = ()
            else:
                pieces = whole if pc in parted else self._unjoined(pc)
            issued = self._issued(pc, parted.get(pc, pc)) if pieces else -1
            if pieces != whole or issued >= 0:
                yield AssembledAccess(pc, pieces, issued)
        yield from self._copies()

    def _copies(self) -> Iterator[AssembledAccess]:
        """Yield copies to shared memory for which ptxas adds loads that never execute."""
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
        """Return the machine instructions of each load and store that is alone on its PTX line."""
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
        """Return the bytes per lane of the machine instructions if they agree, else 0."""
        widths = {m.bytes for m in self._machine_accesses[pc]}
        return widths.pop() if len(widths) == 1 else 0

    def _joined(self) -> Mapping[int, tuple[tuple[int, int], set[int]]]:
        """Return the vectorized accesses with their (offset, bytes) and the merged accesses."""
        joins: dict[int, tuple[tuple[int, int], set[int]]] = {}
        for pc in self._machine_accesses:
            width, own = self._width(pc), self._bytes(pc)
            if width > own:
                gone = {
                    n: at
                    for n, at in self._neighbours(pc, width).items()
                    if not self._machine_accesses[n]
                }
                # The machine code does not name merged accesses, so guess the wide access's start:
                # take the one that covers most vanished neighbours, then an aligned one, then the
                # highest.
                starts = [-own * k for k in range(width // own)]
                inside = {s: {n for n, at in gone.items() if s <= at < s + width} for s in starts}
                base = self._offset(pc)
                best = max(starts, key=lambda s: (len(inside[s]), (base + s) % width == 0, s))
                if inside[best]:
                    joins[pc] = (best, width), inside[best]
        return joins

    def _parted(self, member_pcs: Collection[int]) -> Mapping[int, int]:
        """Return the loads whose machine instruction is on the line of a neighbour, with it.

        ptxas joins neighbours, and where it parts them again all have the line of one: it has an
        instruction for each neighbour that has none and that no wide access covers.
        """
        leaders: dict[int, int] = {}
        for pc, machine_instructions in self._machine_accesses.items():
            own = self._bytes(pc)
            if len(machine_instructions) < 2 or self._width(pc) != own:
                continue
            gone = [
                n
                for n in self._neighbours(pc, _WIDEST)
                if n not in member_pcs
                and not self._machine_accesses[n]
                and self._bytes(n) == own
                and not self.graph.read.isdisjoint(destinations(self.kernel.instructions[n]))
            ]
            if len(gone) == len(machine_instructions) - 1:
                leaders |= dict.fromkeys(gone, pc)
        return leaders

    def _offset(self, pc: int) -> int:
        address = _address(self.kernel.instructions[pc])
        return address.offset if address else 0

    def _neighbours(self, pc: int, reach: int) -> dict[int, int]:
        """Return nearby accesses of the same kind and base, as pc to byte distance below `reach`.

        They are in the same basic block, or in blocks that it dominates.
        """
        block, mine = self.graph.block[pc], self.kernel.instructions[pc]
        address = _address(mine)
        if address is None:
            return {}
        key = block.function, address.base
        sets, addresses = self.graph.defined.get(key, ()), self._from_base[(*key, mine.opcode)]
        offsets: dict[int, int] = {}
        first = bisect_right(addresses, (address.offset - reach, len(self.kernel.instructions)))
        for offset, place in addresses[first : bisect_left(addresses, (address.offset + reach, 0))]:
            other = self.graph.block[place]
            # If the base has several definitions, offsets compare only within a block without a
            # definition in between. With a single definition dominance suffices.
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
        """Return each function's accesses by base register and opcode: (offset, pc), ascending."""
        accesses_by_base: dict[tuple[int, object, str], list[tuple[int, int]]] = {}
        for pc in self._machine_accesses:
            one = self.kernel.instructions[pc]
            if address := _address(one):
                key = self.graph.block[pc].function, address.base, one.opcode
                accesses_by_base.setdefault(key, []).append((address.offset, pc))
        return {key: sorted(places) for key, places in accesses_by_base.items()}

    def _leads_to(self, above: BasicBlock, block: BasicBlock) -> bool:
        """Return True if `above` dominates `block`."""
        number: int | None = block.number
        while number is not None and number != above.number:
            number = self.graph.dominators.get(number)
        return number is not None

    def _unjoined(self, pc: int) -> Pieces:
        """Return the (offset, bytes) pieces of an access that was not merged with others."""
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
            return ((0, width),)  # the lower half of a value
        size = TYPE_BYTES[one.type]
        starts = {k * size // width * width for k in self._elements_read(one)}
        return tuple(
            (at, width) for at in (sorted(starts) if size <= width else range(0, own, width))
        )

    def _elements_read(self, one: Instruction) -> list[int]:
        """Return the indices of a loaded vector's elements that any instruction reads."""
        if one.opcode == "st" or not isinstance(one.operands[0], Vector):
            return list(range(one.vector))
        elements = one.operands[0].elements
        return [
            k for k, e in enumerate(elements) if isinstance(e, Register) and e in self.graph.read
        ]

    def _issued(self, pc: int, leader: int) -> int:
        """Return the pc of the branch or guard that determines the issuing warps, else -1.

        ptxas replaces a short branch by predicates: warps without an active lane still issue the
        access. Its machine instructions are on the line of `leader`.
        """
        if not all(m.guarded for m in self._machine_accesses[leader]):
            return -1
        issued = pc if self.kernel.instructions[pc].guard else -1
        block = self.graph.block[pc]
        # Climb the dominators: each branch that became a predicate extends the issuing warps to
        # those at the branch; a branch that still exists in machine code stops the climb.
        while (above := self.graph.dominators.get(block.number)) is not None:
            arm, block = block, self.kernel.blocks[above]
            last = self.kernel.instructions[block.last - 1]
            if last.opcode in ("bra", "brx", "ret", "exit") and last.guard:
                if self._leaves(block, arm):
                    break
                issued = block.last - 1
        return issued

    def _leaves(self, block: BasicBlock, arm: BasicBlock) -> bool:
        """Return True if the machine code keeps the branch around `arm` at the end of `block`.

        The branch may be in its own place or at the end of the other arm.
        """
        others = (self.kernel.blocks[n].last - 1 for n in block.successors if n != arm.number)
        after = (self.kernel.instructions[pc] for pc in others)
        ends = [n for n in after if n.opcode == "bra" and n.guard is None]
        lines = (n.ptx_line for n in (self.kernel.instructions[block.last - 1], *ends))
        return any(m.operation in _LEAVING for n in lines for m in self.facts.get(n, ()))


def _accesses(one: Instruction) -> bool:
    """Return True if an instruction accesses memory that the trace records."""
    return one.opcode in (*_MACHINE, "atom", "red") and one.space not in _OPERANDS


def _address(one: Instruction) -> Address | None:
    return next((operand for operand in one.operands if isinstance(operand, Address)), None)
