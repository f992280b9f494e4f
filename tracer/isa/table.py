"""The static table of a kernel's instructions, as the trace keeps it (INSTRUCTIONS)."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache

import pyarrow as pa

from ...errors import CutraceError
from ...traces.schema import BARRIERS, INSTRUCTIONS
from ..ptx.kernel import (
    TYPE_BYTES,
    BasicBlock,
    Function,
    Immediate,
    Instruction,
    Kernel,
    Location,
    Operand,
)
from ..ptx.opcodes import MEMORY, destinations, is_barrier, sources
from .collision import find_collisions
from .facts import Facts, facts_of

_CACHE_OPERATORS = ("nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt")
_ROW_OF_A_MATRIX = 16
_FROM_A_REGISTER = -1

MOST_THREADS = 1024
"""Threads that one barrier can be for: those of a block."""


def instruction_table(kernel: Kernel) -> pa.Table:
    """Return all instructions of `kernel` in order of pc, executed or not."""
    read = [_registers_read(span.function) for span in kernel.functions]
    located = [(block, pc) for block in kernel.blocks for pc in range(block.first, block.last)]
    wanted = [_is_read(kernel.instructions[pc], read[block.function]) for block, pc in located]
    facts = [facts_of(i, w) for i, w in zip(kernel.instructions, wanted, strict=True)]
    collisions = find_collisions(kernel, facts)
    rows = [
        {
            **_row(kernel, block, pc),
            **_columns(facts[pc]),
            "collision": collisions[pc],
            "result_read": wanted[pc],
        }
        for block, pc in located
    ]
    columns = {name: [row[name] for row in rows] for name in INSTRUCTIONS.names}
    return pa.Table.from_pydict(columns, schema=INSTRUCTIONS)


def _is_read(instruction: Instruction, read: frozenset[str]) -> bool:
    return any(register.name in read for register in destinations(instruction))


@lru_cache(maxsize=1024)
def _columns(facts: Facts) -> Mapping[str, object]:
    columns = asdict(facts)
    return {"class": columns.pop("kind"), **columns}


def _row(kernel: Kernel, block: BasicBlock, pc: int) -> dict[str, object]:
    instruction = kernel.instructions[pc]
    barrier, threads = _barrier(instruction)
    return {
        "pc": pc,
        "block": block.number,
        "function": kernel.functions[block.function].function.name,
        "opcode": instruction.opcode,
        "mnemonic": instruction.mnemonic,
        "predicate": _predicate(instruction),
        "space": instruction.space,
        "type": instruction.type,
        "bytes": bytes_moved(instruction),
        "cache": _cache_operator(instruction),
        "barrier": barrier,
        "barrier_threads": threads,
        **_source(instruction.location),
        "text": instruction.text,
    }


def bytes_moved(instruction: Instruction) -> int:
    """Return the bytes that one lane moves: all elements of its vector; 0 if no memory is touched.

    A texture's type is its result's. A lane that gives `ldmatrix` or `stmatrix` an address moves
    one row of a matrix. Bulk copies, which one lane starts for all, count 0.
    """
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "cp":
        return _copied(instruction)
    if opcode in ("ldmatrix", "stmatrix"):
        return _ROW_OF_A_MATRIX
    if opcode not in MEMORY or not instruction.types:
        return 0
    texture = opcode in ("tex", "tld4")
    element = instruction.types[0] if texture else instruction.type
    return TYPE_BYTES[element] * (4 if texture and "v4" in modifiers else instruction.vector)


def _copied(instruction: Instruction) -> int:
    """Return the size operand of `cp.async.ca.shared.global [to], [from], 16`."""
    modifiers = instruction.modifiers
    if modifiers[:1] != ("async",) or "bulk" in modifiers or len(instruction.operands) < 3:
        return 0
    size = instruction.operands[2]
    return size.bits if isinstance(size, Immediate) and 0 <= size.bits < 1 << 16 else 0


def _cache_operator(instruction: Instruction) -> str:
    if instruction.opcode not in MEMORY:
        return ""
    return next((name for name in _CACHE_OPERATORS if name in instruction.modifiers), "")


def _predicate(instruction: Instruction) -> str:
    guard = instruction.guard
    return f"{'!' * guard.negated}{guard.register.name}" if guard else ""


def _barrier(instruction: Instruction) -> tuple[int | None, int | None]:
    """Return the identifier of a block's barrier and its thread count, -1 from a register.

    `barrier.cluster` has no identifier: it is no barrier of the block. A reduction has its result
    first and its predicate last: `bar.red.popc.u32 %r1, 0, 64, %p1`.
    """
    if not is_barrier(instruction) or "cluster" in instruction.modifiers:
        return None, None
    operands = instruction.operands
    if "red" in instruction.modifiers:
        operands = operands[1:-1]
    return (
        _number(instruction, operands[0], BARRIERS - 1) if operands else 0,
        _number(instruction, operands[1], MOST_THREADS) if len(operands) > 1 else None,
    )


def _number(instruction: Instruction, operand: Operand, most: int) -> int:
    if not isinstance(operand, Immediate):
        return _FROM_A_REGISTER
    if not 0 <= operand.bits <= most:
        raise CutraceError(
            f"PTX line {instruction.ptx_line}: found {operand.bits} in `{instruction.text}`, "
            f"expected 0 to {most}"
        )
    return operand.bits


def _source(location: Location | None) -> Mapping[str, object]:
    place = location or Location("", 0)
    return {**_place(place), "inlined_at": [_place(outer) for outer in place.inlined_at]}


def _place(location: Location) -> dict[str, object]:
    return {"file": location.file, "line": location.line, "column": location.column}


def _registers_read(function: Function) -> frozenset[str]:
    """Return the names of the registers that any instruction of `function` reads."""
    names = {r.name for instruction in function.instructions for r in sources(instruction)}
    return frozenset(names | {v.name for v in function.returns})
