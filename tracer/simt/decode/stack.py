"""`alloca`, `stacksave` and `stackrestore`: local memory of dynamic size (PTX ISA 9.7.17).

Each thread has a stack behind its local variables, allocated upwards. An allocation lasts until
the function restores the stack, or the kernel ends.
"""

from functools import lru_cache

import numpy as np

from ....jit.ufunc import select
from ...ptx.kernel import KERNELS, Immediate, Instruction, Kernel, KernelKey, key_of
from ..access.bounds import name_lane
from ..kernel.layout import local_bytes
from ..ops.lanes import Array
from ..warp.program import Group, Step
from .decoder import Decoder, StepTable

BYTES = 4096
"""Bytes of a thread's stack: CUDA's own default limit is 1 KB."""

_ALIGN = 8
"""Default alignment of `alloca` in PTX, in bytes."""


def stack_bytes(kernel: Kernel) -> int:
    """Return the bytes of a thread's stack, 0 if the kernel never allocates."""
    return BYTES if _takes_stack(key_of(kernel)) else 0


@lru_cache(maxsize=KERNELS)
def _takes_stack(like: KernelKey) -> bool:
    return any(instruction.opcode in STEPS for instruction in like.kernel.instructions)


def _save(decoder: Decoder, instruction: Instruction) -> Step:
    slot, kind = decoder.slots.of_stack(), f"u{instruction.type[1:]}"
    store = decoder.store(instruction.operands[0], kind)
    decoder.slots.read(slot)

    def save(group: Group) -> None:
        store(group.frame, group.frame[slot].astype(np.dtype(f"u{int(kind[1:]) // 8}")))

    return save


def _restore(decoder: Decoder, instruction: Instruction) -> Step:
    slot, kind, guard = decoder.slots.of_stack(), f"u{instruction.type[1:]}", decoder.guard()
    fetch = decoder.fetch(instruction.operands[0], kind)
    decoder.slots.write(slot, maybe=guard is not None)

    def restore(group: Group) -> None:
        frame = group.frame
        value = fetch(frame).astype(np.uint64)
        frame[slot] = value if guard is None else select(guard(frame), value, frame[slot])

    return restore


def _allocate(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `alloca ptr, size{, align}`: allocate bytes, and return their address."""
    slot = decoder.slots.of_stack()
    to, size, *aligned = instruction.operands
    kind = f"u{instruction.type[1:]}"
    fetch, store = decoder.fetch(size, kind), decoder.store(to, kind)
    align = aligned[0].bits if aligned and isinstance(aligned[0], Immediate) else _ALIGN
    base = -(-local_bytes(decoder.kernel) // 16) * 16
    guard, pc = decoder.guard(), decoder.pc
    decoder.slots.write(slot, maybe=True)

    def allocate(group: Group) -> None:
        frame = group.frame
        lanes = group.guarded(guard)
        top = frame[slot]
        start = (top + np.uint64(align - 1)) // np.uint64(align) * np.uint64(align)
        end = start + fetch(frame).astype(np.uint64)
        _require_room(group, pc, end if lanes is None else np.where(lanes, end, 0))
        frame[slot] = end if guard is None else select(guard(frame), end, top)
        address = start + np.uint64(base)
        store(frame, address.astype(np.dtype(f"u{int(kind[1:]) // 8}")))

    return allocate


def _require_room(group: Group, pc: int, end: Array) -> None:
    if int(end.max()) <= BYTES:
        return
    over = np.broadcast_to(end, group.shape).reshape(-1) > BYTES
    lane = int(np.flatnonzero(over)[0])
    problem = f"takes {int(end.max())} bytes of stack, and a thread has {BYTES}, in "
    raise group.wave.program.fault(pc, problem + name_lane(group, lane), "outside")


STEPS: StepTable = {"alloca": _allocate, "stacksave": _save, "stackrestore": _restore}
