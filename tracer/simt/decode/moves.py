"""What a kernel's instructions move to or from global memory, if nothing else connects its blocks.

Atomic updates whose results nobody reads, such as sums of integers, are reductions: their order
does not matter.

Thread blocks of such a kernel may run at the same time: whether one of them reads or overwrites
what another stores is then seen in the addresses of their loads and stores (parallel.py).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...ptx.kernel import (
    KERNELS,
    TYPE_BYTES,
    CallTarget,
    Immediate,
    Instruction,
    Kernel,
    KernelKey,
    Symbol,
    key_of,
)
from ...ptx.opcodes import MEMORY, destinations, sources
from ..kernel.launch import REDUCTION
from ..ops.update import OPERATIONS, fetch_operation

_ON_CHIP = frozenset({"shared", "shared::cta", "local", "param", "const"})
_WITHIN_BLOCK = frozenset({"ldmatrix", "stmatrix"})
_BEYOND_BLOCK = frozenset({"clusterlaunchcontrol", "tensormap", "tcgen05", "wgmma", "wmma"})
"""Opcodes besides MEMORY that may reach global memory, or other blocks."""
_FAULTS = "__assertfail"
_WIDEST = 16


@lru_cache(maxsize=KERNELS)
def moves_of(key: KernelKey) -> NDArray[np.int32] | None:
    """Return the bytes per lane of each instruction, negative for a store, 0 for none in global
    memory; None if blocks may affect one another in other ways. Bytes of a reduction are those of a
    store plus REDUCTION."""
    kernel = key.kernel
    own = {_FAULTS, *(span.function.name for span in kernel.functions)}
    moved = [
        -REDUCTION - TYPE_BYTES[i.type] if reduction_of(kernel, i) else _moved(i, own)
        for i in kernel.instructions
    ]
    return None if None in moved else np.array([*moved, 0], np.int32)


def reduction_of(kernel: Kernel, instruction: Instruction) -> str:
    """Return LLVM's operation of a reduction in global memory; empty for other instructions."""
    if instruction.opcode not in ("atom", "red") or instruction.space not in ("", "global"):
        return ""
    name = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    fetch = fetch_operation(name, instruction.type)
    if instruction.vector != 1 or not fetch or "async" in instruction.modifiers:
        return ""
    results = {register.name for register in destinations(instruction)}
    return fetch if results.isdisjoint(_names_read(key_of(kernel))) else ""


@lru_cache(maxsize=KERNELS)
def _names_read(key: KernelKey) -> frozenset[str]:
    return frozenset(r.name for i in key.kernel.instructions for r in sources(i))


def _moved(instruction: Instruction, functions: set[str]) -> int | None:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "call":  # printf and malloc are the runtime's, and count calls
        callees = [o.callee for o in instruction.operands if isinstance(o, CallTarget)]
        return (
            None if any(isinstance(c, Symbol) and c.name not in functions for c in callees) else 0
        )
    if opcode in _BEYOND_BLOCK:
        return None
    if opcode not in MEMORY or opcode in _WITHIN_BLOCK or instruction.space in _ON_CHIP:
        return 0
    if opcode == "cp":
        if not {"bulk", "reduce"}.isdisjoint(modifiers):
            return None
        sizes = [o.bits for o in instruction.operands[2:3] if isinstance(o, Immediate)]
        return sizes[0] if sizes else _WIDEST
    size = TYPE_BYTES.get(instruction.type, 0) * instruction.vector
    if opcode in ("ld", "ldu", "st") and size:
        return -size if opcode == "st" else size
    return None
