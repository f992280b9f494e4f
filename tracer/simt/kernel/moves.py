"""What a kernel's instructions move to or from global memory, if nothing else connects its blocks.

Thread blocks of such a kernel may run at the same time: whether one of them reads or overwrites
what another stores is then seen in the addresses of their loads and stores (rows/exchange.py).
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
    KernelKey,
    Symbol,
)
from ...ptx.opcodes import MEMORY

_ON_CHIP = frozenset({"shared", "shared::cta", "local", "param", "const"})
_WITHIN_BLOCK = frozenset({"ldmatrix", "stmatrix"})
_BEYOND_BLOCK = frozenset({"clusterlaunchcontrol", "tensormap", "tcgen05", "wgmma", "wmma"})
"""Opcodes besides MEMORY that may reach global memory, or other blocks."""
_FAULTS = "__assertfail"
_WIDEST = 16


@lru_cache(maxsize=KERNELS)
def moves_of(key: KernelKey) -> NDArray[np.int32] | None:
    """Return the bytes per lane of each instruction, negative for a store, 0 for none in global
    memory; None if blocks may affect one another in other ways."""
    own = {_FAULTS, *(span.function.name for span in key.kernel.functions)}
    moved = [_moved(instruction, own) for instruction in key.kernel.instructions]
    return None if None in moved else np.array([*moved, 0], np.int32)


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
