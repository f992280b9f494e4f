"""`multimem`: addresses that stand for the memory of several devices (PTX ISA 9.7.9.14).

cutrace runs one device. A reduction of what all of them have is what that one has, and a store to
all of them a store.
"""

from dataclasses import replace

from ...ptx.kernel import Instruction
from ..warp.program import Step
from . import load_store
from .atomic import decode_atomic
from .decoder import Decoder, StepTable

_WORDS = dict.fromkeys(("e4m3x4", "e5m2x4", "f16x2", "bf16x2"), "b32")
"""Types of loads and stores that have no other register than 32 bits."""


def _of_one_device(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of the load, the store or the reduction of one device."""
    kind, *modifiers = instruction.modifiers
    if kind == "red":
        return decode_atomic(
            decoder, replace(instruction, opcode="red", modifiers=tuple(modifiers))
        )
    opcode = "ld" if kind == "ld_reduce" else "st"
    words = tuple(_WORDS.get(m, m) for m in modifiers if not m.startswith("acc"))
    plain = replace(instruction, opcode=opcode, modifiers=words)
    return load_store.STEPS[opcode](decoder, plain)


STEPS: StepTable = {"multimem": _of_one_device}
