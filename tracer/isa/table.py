"""Build a kernel's static instruction table in the form of the trace (INSTRUCTIONS).

`facts_of` classifies one instruction: class, operation, state spaces, bytes per lane.
`instruction_table` does so for a whole kernel and adds barriers, source lines and collisions.
`find_collisions` says how lanes of an atomic that hit one address are served; for this it tracks
which registers vary between lanes.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import BARRIERS, BULK_PIECE, INSTRUCTIONS, Space
from ..ptx.digraph import spread
from ..ptx.kernel import (
    TYPE_BYTES,
    Address,
    BasicBlock,
    Function,
    Immediate,
    Instruction,
    Kernel,
    Location,
    Operand,
    Register,
    Special,
    TextureAddress,
    Vector,
)
from ..ptx.opcodes import MEMORY, destinations, is_barrier, sources
from ..simt.ops.family import opcodes
from .fragments import requests_of

_CONTROL = frozenset({"bra", "brx", "call", "ret", "exit", "trap"})
_EXCHANGE = frozenset({"shfl", "vote", "match", "redux", "activemask", "elect"})
_FREE = frozenset({"cvta", "mov"})
_INTEGER = opcodes("integer") | {"set", "setp"}
_ARITHMETIC: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("add", "sub"), ("add", 1)),
    "mul": ("mul", 1),
    **dict.fromkeys(("fma", "mad"), ("fma", 2)),
    **dict.fromkeys(("div", "rcp", "sqrt", "rsqrt"), ("special", 1)),
    **dict.fromkeys(("sin", "cos", "lg2", "ex2", "tanh"), ("special", 1)),
    **dict.fromkeys(("min", "max", "abs", "neg", "set", "setp", "testp", "copysign"), ("", 0)),
}
"""Operation and floating-point operations per value of each floating-point opcode."""

_PRECISIONS: Mapping[str, tuple[str, int]] = {
    "f16": ("half", 1),
    "bf16": ("half", 1),
    "f16x2": ("half", 2),
    "bf16x2": ("half", 2),
    "f32": ("single", 1),
    "f32x2": ("single", 2),
    "f64": ("double", 1),
}
"""Precision of a PTX type, and its values per register."""

_ACCESS: Mapping[str, str] = {
    **dict.fromkeys(("ld", "ldu", "ldmatrix", "suld", "tex", "tld4"), "load"),
    **dict.fromkeys(("st", "stmatrix", "sust"), "store"),
    "atom": "atomic",
    **dict.fromkeys(("red", "sured"), "reduction"),
}
_OF_ALL_DEVICES = {"ld_reduce": "load", "st": "store", "red": "reduction"}
"""Accesses of `multimem` by the first modifier."""

_MEMORY = frozenset({*_ACCESS, "cp", "wmma", "prefetch", "prefetchu", "multimem"})
_ATOMIC = frozenset({"atom", "red", "sured"})
_UPDATES = frozenset({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"})
_RETURNING = frozenset({"exch", "cas", "acquire", "acq_rel"})
"""Atomics without a corresponding reduction: they stay atomics even if their result is unused, an
acquire because the thread waits for it.
"""
_ORDERS = ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc")
_SCOPES = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "gl": "gpu", "sys": "sys"}

_GENERIC = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST)
"""State spaces that a generic address can refer to (PTX ISA 5.1; const by way of `cvta.param`)."""
_TEXTURES, _SURFACES = frozenset({"tex", "tld4"}), frozenset({"suld", "sust", "sured"})


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns of `traces.schema.INSTRUCTIONS` with the same names (`kind` is `class` there).

    Bit 1 << s of `reads` and `writes` is set for each Space s that the instruction can access.
    """

    kind: str
    operation: str
    values: int
    flops: int
    access: str
    reads: int
    writes: int
    order: str
    scope: str


def facts_of(instruction: Instruction, result_read: bool = True) -> Facts:
    """Return the facts of one instruction; an atomic with an unused result is a reduction."""
    jump = instruction.opcode == "bra" and instruction.guard is None
    return _facts(instruction.opcode, instruction.modifiers, instruction.type, result_read, jump)


@lru_cache(maxsize=1024)
def _facts(
    opcode: str, modifiers: tuple[str, ...], type_: str, result_read: bool, jump: bool
) -> Facts:
    precision, values = _PRECISIONS.get(type_, ("", 1))
    kind = "free" if jump else _class(opcode, modifiers, precision)
    operation, operations = _ARITHMETIC.get(opcode, ("", 0)) if precision else ("", 0)
    access = _access(opcode, modifiers, result_read)
    reads, writes = _reach(opcode, modifiers, access)
    order = next((name for name in _ORDERS if name in modifiers), "")
    return Facts(
        kind=kind,
        operation=operation if kind == precision else _other_operation(opcode, modifiers),
        values=values,
        flops=operations * values,
        access=access,
        reads=reads,
        writes=writes,
        order=order or ("weak" if access in ("load", "store") else ""),
        scope=next((_SCOPES[name] for name in modifiers if name in _SCOPES), ""),
    )


def _class(opcode: str, modifiers: tuple[str, ...], precision: str) -> str:
    """Return one of `traces.schema.CLASSES`."""
    if opcode in _FREE or (opcode == "ld" and "param" in modifiers):
        return "free"
    if opcode in _MEMORY:
        return "memory"
    if opcode in _CONTROL:
        return "control"
    if opcode in _EXCHANGE:
        return "exchange"
    if opcode == "cvt":
        return "conversion"
    if precision and opcode in _ARITHMETIC:
        return precision
    return "integer" if opcode in _INTEGER else "other"


def _other_operation(opcode: str, modifiers: tuple[str, ...]) -> str:
    """Return the operation of an instruction other than floating-point arithmetic."""
    if opcode in ("bra", "brx"):
        return "branch"
    if opcode in _ATOMIC or (opcode == "cp" and "reduce" in modifiers):
        return next((name for name in modifiers if name in _UPDATES), "")
    if opcode in ("bar", "barrier", "mbarrier") and "arrive" in modifiers:
        return "arrive"
    if opcode == "sust" and modifiers[:1] == ("p",):
        return "formatted"
    if opcode == "tld4":
        return "gather"
    if opcode == "tex":
        return "fetch" if modifiers[-1:] == ("s32",) and "level" not in modifiers else "filter"
    return ""


def _access(opcode: str, modifiers: tuple[str, ...], result_read: bool) -> str:
    """Return one of `traces.schema.ACCESS_KINDS`; empty if the instruction writes no trace rows."""
    if "param" in modifiers or opcode in ("prefetch", "prefetchu"):
        return ""
    if opcode == "cp" and "bulk" in modifiers:
        return "bulk" if Space.GLOBAL in _spaces(modifiers) else ""
    if opcode == "cp":
        return "copy" if modifiers[:1] == ("async",) and len(_spaces(modifiers)) > 1 else ""
    if opcode == "multimem":
        return _OF_ALL_DEVICES.get(modifiers[0], "")
    if opcode == "wmma":
        return modifiers[0] if modifiers[0] in ("load", "store") else ""
    if opcode == "atom" and not result_read and _RETURNING.isdisjoint(modifiers):
        return "reduction"
    return _ACCESS.get(opcode, "")


def _reach(opcode: str, modifiers: tuple[str, ...], access: str) -> tuple[int, int]:
    """Return two bit masks: the spaces that an instruction reads and writes."""
    spaces = _spaces(modifiers) or _GENERIC
    if access == "copy":  # cp.async.ca.shared.global: the destination is written first
        return 1 << spaces[1], 1 << spaces[0]
    if access == "bulk":  # the destination is written first; a prefetch names the source alone
        writes = spaces[0] == Space.GLOBAL and "prefetch" not in modifiers
        reads = not writes or "reduce" in modifiers
        return reads << Space.GLOBAL, writes << Space.GLOBAL
    if opcode in _TEXTURES:
        spaces = (Space.TEXTURE,)
    elif opcode in _SURFACES:
        spaces = (Space.SURFACE,)
    bits = sum(1 << space for space in spaces)
    reads = access in ("load", "atomic", "reduction")
    writes = access in ("store", "atomic", "reduction")
    return bits * reads, bits * writes


def _spaces(modifiers: tuple[str, ...]) -> tuple[Space, ...]:
    """Return the state spaces among the modifiers, in their order; `shared::cta` is shared."""
    names = (modifier.partition("::")[0].upper() for modifier in modifiers)
    return tuple(Space[name] for name in names if name in Space.__members__)


_CACHE_OPERATORS = ("nc", "ca", "cg", "cs", "cv", "lu", "wb", "wt")
_ROW_OF_A_MATRIX = 16
_FROM_A_REGISTER = -1

MOST_THREADS = 1024
"""Maximum number of threads at one barrier: the threads of a block."""


def instruction_table(kernel: Kernel) -> pa.Table:
    """Return all instructions of `kernel` in order of pc, executed or not."""
    return to_table(instruction_rows(kernel))


def to_table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Return rows as a table of instructions."""
    columns = {name: [row[name] for row in rows] for name in INSTRUCTIONS.names}
    return pa.Table.from_pydict(columns, schema=INSTRUCTIONS)


def instruction_rows(kernel: Kernel) -> list[dict[str, Any]]:
    """Return the rows of the table of instructions."""
    read = [_registers_read(span.function) for span in kernel.functions]
    located = [(block, pc) for block in kernel.blocks for pc in range(block.first, block.last)]
    result_reads = [
        _is_read(kernel.instructions[pc], read[block.function]) for block, pc in located
    ]
    facts = [facts_of(i, w) for i, w in zip(kernel.instructions, result_reads, strict=True)]
    collisions = find_collisions(kernel, facts)
    return [
        {
            **_row(kernel, block, pc),
            **_columns(facts[pc]),
            "collision": collisions[pc],
            "result_read": result_reads[pc],
        }
        for block, pc in located
    ]


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
    """Return the bytes that one lane moves: all elements of its vector; 0 without a memory access.

    The type of a texture instruction is that of its result. Each lane that supplies an address to
    `ldmatrix` or `stmatrix` moves one row of a matrix. Of a bulk copy, which one lane starts for
    all, it is a piece.
    """
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "cp":
        return _copied(instruction)
    if opcode in ("ldmatrix", "stmatrix"):
        return _ROW_OF_A_MATRIX
    if opcode == "wmma":
        return requests_of(modifiers).width if modifiers[0] in ("load", "store") else 0
    if opcode not in MEMORY or not instruction.types:
        return 0
    texture = opcode in ("tex", "tld4")
    element = instruction.types[0] if texture else instruction.type
    return TYPE_BYTES[element] * (4 if texture and "v4" in modifiers else instruction.vector)


def _copied(instruction: Instruction) -> int:
    """Return the size operand of `cp.async.ca.shared.global [to], [from], 16`."""
    modifiers = instruction.modifiers
    if "bulk" in modifiers:
        return BULK_PIECE if Space.GLOBAL in _spaces(modifiers) else 0
    if modifiers[:1] != ("async",) or len(instruction.operands) < 3:
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
    """Return the identifier of a block barrier and its thread count; -1 for a register operand.

    `barrier.cluster` has no identifier, since it is not a barrier of the block. A barrier reduction
    has its result first and its predicate last: `bar.red.popc.u32 %r1, 0, 64, %p1`.
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


_OF_A_LANE = ("%tid", "%laneid", "%warpid", "%lanemask", "%clock", "%smid")
"""Special registers whose value differs between lanes or warps."""
_VARYING = frozenset({"atom", "shfl", "tex", "tld4", "call", "ldmatrix", "suld", "mma", "wmma"})
_ELECTABLE = frozenset({"add", "min", "max", "and", "or", "xor"})
_ONE = {"add": {1}, "inc": {-1, 0xFFFFFFFF}}
"""Operations that add one if their last operand is one of these: `inc` wraps to 0 above it."""
_HALVES = frozenset({"f16", "bf16"})
_SPUN = frozenset({"f32", "f64", "f16x2", "bf16x2", "u64", "s64", "b64"})

Value: TypeAlias = tuple[int, str]
"""Function index and register name."""


def find_collisions(kernel: Kernel, facts: Sequence[Facts]) -> Sequence[str]:
    """Return one of `traces.schema.COLLISIONS` per instruction; empty for non-atomics.

    `facts` are those of the kernel's instructions, by pc.
    """
    if not any(_is_atomic(i) for i in kernel.instructions):
        return [""] * len(kernel.instructions)
    located = list(_located(kernel))
    varying = spread(_flow(*place) for place in located)
    return [_collision(f, i, facts[pc], varying) for pc, (f, i) in enumerate(located)]


def _located(kernel: Kernel) -> Iterator[tuple[int, Instruction]]:
    """Yield the function and the instruction of each pc."""
    for block in kernel.blocks:
        for pc in range(block.first, block.last):
            yield block.function, kernel.instructions[pc]


def _is_atomic(instruction: Instruction) -> bool:
    return instruction.opcode in ("atom", "red")


def _collision(function: int, instruction: Instruction, facts: Facts, varying: Set[Value]) -> str:
    """Return how the hardware serves several lanes that access one address."""
    if not _is_atomic(instruction):
        return ""
    operation, unread = facts.operation, facts.access == "reduction"
    if operation == "cas":
        return "compared"
    if loop := _loop(instruction, operation):
        return loop
    word = instruction.type in ("u32", "s32", "b32")
    last = instruction.operands[-1]
    counts = isinstance(last, Immediate) and last.bits in _ONE.get(operation, ())
    if word and unread and counts and instruction.space == "shared":
        return "counted"
    # Lanes elect one of them to add for all only if their address is the same for the whole warp.
    address = next((o for o in instruction.operands if isinstance(o, Address)), None)
    own = address is not None and isinstance(address.base, Register)
    differs = own and (function, address.base.name) in varying  # type: ignore[union-attr]
    electable = operation in (_ELECTABLE if unread else {"add"})
    return "elected" if word and address and not differs and electable else "serial"


def _loop(instruction: Instruction, operation: str) -> str:
    """Return the loop that the assembler emits for an atomic; empty if it is one instruction."""
    if instruction.vector > 1 or operation == "exch":
        return ""
    if instruction.type in _HALVES:
        return "swapped"
    return "spun" if instruction.type in _SPUN and instruction.space in ("", "shared") else ""


def _flow(function: int, instruction: Instruction) -> tuple[Set[Value], Set[Value], bool]:
    """Return registers written, registers read, and whether lanes get different results anyway."""
    results = {(function, register.name) for register in destinations(instruction)}
    read = {(function, register.name) for register in sources(instruction)}
    specials = [o.name for o in _flat(instruction.operands) if isinstance(o, Special)]
    own = any(name.startswith(_OF_A_LANE) for name in specials)
    return results, read, own or instruction.opcode in _VARYING


def _flat(operands: Sequence[Operand]) -> Iterator[Operand]:
    """Yield operands, including those inside vectors and texture addresses."""
    for operand in operands:
        inner: Sequence[Operand] = ()
        if isinstance(operand, Vector):
            inner = operand.elements
        elif isinstance(operand, TextureAddress):
            inner = operand.coordinates
        yield from _flat(inner) if inner else (operand,)
