"""`tcgen05`: its instructions, by their first modifier (PTX ISA 9.7.16)."""

from ...ptx.kernel import Instruction
from ..decode.decoder import Decoder, StepTable
from ..warp.program import Step
from . import tensor_memory, tensor_product

_FORMS = {
    "alloc": tensor_memory.allocate,
    "dealloc": tensor_memory.deallocate,
    "relinquish_alloc_permit": tensor_memory.relinquish,
    "ld": tensor_memory.move,
    "st": tensor_memory.move,
    "cp": tensor_memory.copy,
    "shift": tensor_memory.shift,
    "commit": tensor_memory.commit,
    "mma": tensor_product.multiply,
    "wait::ld": tensor_memory.wait,
    "wait::st": tensor_memory.wait,
    "fence::before_thread_sync": tensor_memory.wait,
    "fence::after_thread_sync": tensor_memory.wait,
}


def _decode_tcgen05(decoder: Decoder, instruction: Instruction) -> Step:
    return _FORMS[instruction.modifiers[0]](decoder, instruction)


STEPS: StepTable = {"tcgen05": _decode_tcgen05}
