"""Collisions: what becomes of an atomic whose lanes share an address, by what the code says.

The assembler combines the lanes of a 32-bit integer atomic on an address that it can tell to be
one for the whole warp, and lets one lane do the work. In shared memory it has an instruction of its
own for adding one. Of atomics that the chip has not it makes loops: of adds of floating-point
numbers and 64-bit atomics to shared memory, and of adds of one half to any. Found on an H200
(docs/validation.md), the loops in ptxas' code.

An address is one for the whole warp if it is computed from nothing but parameters, constants, the
block's index, and values loaded from such addresses. A register that differs between lanes only
because they came by different branches is taken for one value.
"""

from collections.abc import Iterator, Sequence, Set
from typing import TypeAlias

from ..ptx.dataflow import spread
from ..ptx.kernel import (
    Address,
    Immediate,
    Instruction,
    Kernel,
    Operand,
    Register,
    Special,
    TextureAddress,
    Vector,
)
from ..ptx.opcodes import destinations, sources
from .facts import Facts

_OF_A_LANE = ("%tid", "%laneid", "%warpid", "%lanemask", "%clock", "%smid")
"""Special registers that lanes or warps have for themselves."""
_VARYING = frozenset({"atom", "shfl", "tex", "tld4", "call", "ldmatrix", "suld", "mma", "wmma"})
_ELECTABLE = frozenset({"add", "min", "max", "and", "or", "xor"})
_ONE = {"add": {1}, "inc": {-1, 0xFFFFFFFF}}
"""Operations that add one, with such a last operand: `inc` begins anew beyond it."""
_HALVES = frozenset({"f16", "bf16"})
_SPUN = frozenset({"f32", "f64", "f16x2", "bf16x2", "u64", "s64", "b64"})

Value: TypeAlias = tuple[int, str]
"""Function and register."""


def find_collisions(kernel: Kernel, facts: Sequence[Facts]) -> Sequence[str]:
    """Return for each instruction one of `traces.schema.COLLISIONS`, empty if it is no atomic.

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
    """Return how lanes on one address are served."""
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
    address = next((o for o in instruction.operands if isinstance(o, Address)), None)
    own = address is not None and isinstance(address.base, Register)
    differs = own and (function, address.base.name) in varying  # type: ignore[union-attr]
    electable = operation in (_ELECTABLE if unread else {"add"})
    return "elected" if word and address and not differs and electable else "serial"


def _loop(instruction: Instruction, operation: str) -> str:
    """Return the loop that the assembler makes of an atomic, empty if it has an instruction."""
    if instruction.vector > 1 or operation == "exch":
        return ""
    if instruction.type in _HALVES:
        return "swapped"
    return "spun" if instruction.type in _SPUN and instruction.space in ("", "shared") else ""


def _flow(function: int, instruction: Instruction) -> tuple[Set[Value], Set[Value], bool]:
    """Return what an instruction writes, what it reads, and whether lanes differ by themselves."""
    results = {(function, register.name) for register in destinations(instruction)}
    read = {(function, register.name) for register in sources(instruction)}
    specials = [o.name for o in _flat(instruction.operands) if isinstance(o, Special)]
    own = any(name.startswith(_OF_A_LANE) for name in specials)
    return results, read, own or instruction.opcode in _VARYING


def _flat(operands: Sequence[Operand]) -> Iterator[Operand]:
    """Yield operands, and those inside of vectors and of textures' addresses."""
    for operand in operands:
        inner: Sequence[Operand] = ()
        if isinstance(operand, Vector):
            inner = operand.elements
        elif isinstance(operand, TextureAddress):
            inner = operand.coordinates
        yield from _flat(inner) if inner else (operand,)
