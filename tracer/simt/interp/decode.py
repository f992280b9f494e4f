"""Decoding for the interpreter: instructions to steps, basic blocks to plans, kernels to programs.

A launch is prepared once (layout, block ranks, spin loops); a block is decoded when warps first run
it, for most launches run few of the blocks of a large kernel. That all of them can be decoded is
checked before, for each form of an instruction once. Instructions that cutrace deliberately does
not support are listed in `LEFT_OUT`, with the message for each.
"""

from collections.abc import Hashable, Iterable

from ...ptx.kernel import (
    KERNELS,
    Address,
    Bucket,
    Immediate,
    Instruction,
    KernelKey,
    Not,
    Operand,
    Pair,
    Part,
    Register,
    Special,
    Sum,
    Vector,
    key_of,
)
from ..call import call
from ..call.argument_passing import returned_steps
from ..decode import (
    address,
    async_copy,
    atomic,
    cluster_address,
    load_store,
    shuffle_vote,
    stack,
)
from ..decode.control_flow import ending
from ..decode.decoder import Decoder, StepTable
from ..decode.ptx_program import PtxProgram
from ..kernel.spin_loop import endless_of
from ..matrix import ldmatrix, mma, tensor_product, wgmma, wmma
from ..ops.family import find_rule
from ..texture import query, sample, surface_access
from ..tma import bulk_copy, launch_control, tensor_map_edit
from ..warp.instruction_limit import never_ends
from ..warp.program import BlockPlan, Step, Terminator
from ..warp.schedule import JUMP
from . import move
from .branch import decode_terminator
from .move import decode_alu

LEFT_OUT: tuple[tuple[str, frozenset[str], str], ...] = (
    ("tex", frozenset({"2dms"}), "textures with several samples a texel"),
    ("tex", frozenset({"a2dms"}), "textures with several samples a texel"),
    ("cp", frozenset({"im2col::w"}), "wide im2col boxes (compute capability 10.0)"),
    ("cp", frozenset({"im2col::w::128"}), "wide im2col boxes (compute capability 10.0)"),
)
"""Opcode, required modifiers, and description: the message begins `cutrace leaves out`."""

_OPCODES = frozenset(opcode for opcode, _, _ in LEFT_OUT)


def left_out(instruction: Instruction) -> str | None:
    """Return the description of an unsupported instruction, None for a supported one."""
    if instruction.opcode not in _OPCODES:
        return None
    named = {m.partition("::")[0] for m in instruction.modifiers} | {*instruction.modifiers}
    for opcode, modifiers, what in LEFT_OUT:
        if instruction.opcode == opcode and modifiers <= named:
            return what
    return None


_DECODABLE: set[KernelKey] = set()
"""Kernels without an unknown instruction."""

_FORMS: set[Hashable | None] = set()
"""Forms of instructions that are known."""

_MOST_FORMS = 1 << 16


def require_decodable(own: PtxProgram) -> None:
    """Raise CutraceError if a basic block of a program has an unknown instruction."""
    if own.key in _DECODABLE:
        return
    decoder = Decoder(own.kernel, own.launch, own.memory, own.loaded)
    if len(_FORMS) > _MOST_FORMS:
        _FORMS.clear()
    for block in own.kernel.blocks:
        decoder.function, decoder.block = block.function, block
        if block.number in decoder.returned:
            returned_steps(decoder, block.number)
        last = block.last if ending(own.kernel, block) is None else block.last - 1
        for pc in range(block.first, block.last):
            form = _form(own.kernel.instructions[pc]) if pc < last else None
            if form is None or form not in _FORMS:
                decode_instruction(decoder, pc)
                _FORMS.add(form)
    if len(_DECODABLE) >= KERNELS:
        _DECODABLE.clear()
    _DECODABLE.add(own.key)


def _form(instruction: Instruction) -> Hashable | None:
    """Return all of an instruction that decides whether it can be decoded; None if the rest of the
    kernel decides, too: its symbols and parameters."""
    if instruction.space == "param":
        return None
    shapes = [_shape(operand) for operand in instruction.operands]
    if None in shapes:
        return None
    guard = instruction.guard and instruction.guard.register.type
    return instruction.opcode, instruction.modifiers, guard, *shapes


def _shape(operand: Operand) -> Hashable | None:
    """Return an operand without the names of its registers; None for a symbol."""
    match operand:
        case Register():
            return operand.type
        case Immediate() | Special() | Bucket():
            return operand
        case Address(Register(_, kind), _):
            return Address, kind
        case Not() | Sum():
            return type(operand), operand.register.type
        case Part():
            return Part, operand.register.type, operand.selector
        case Pair():
            return _shapes((operand.first, operand.second))
        case Vector():
            return _shapes(operand.elements)
    return None


def _shapes(operands: Iterable[Operand]) -> Hashable | None:
    shapes = tuple(map(_shape, operands))
    return None if None in shapes else shapes


def plan_block(own: PtxProgram, number: int) -> BlockPlan:
    """Return a basic block, decoded once per launch."""
    if number in own.plans:
        return own.plans[number]
    decoder, block = own.decoder, own.kernel.blocks[number]
    decoder.function, decoder.block = block.function, block
    slots = decoder.slots
    slots.begin_block()
    steps: list[Step] = []
    if block.number in endless_of(key_of(decoder.kernel)):
        steps.append(never_ends(block.number))
    if block.number in decoder.returned:
        steps += returned_steps(decoder, block.number)
    terminator: Terminator | None = None
    for pc in range(block.first, block.last):
        step, terminator = decode_instruction(decoder, pc)
        if step is not None:
            steps.append(step)
    how = ending(decoder.kernel, block)
    live = {slots.of_key(key) for key in decoder.kernel.live_out[block.number]}
    commits = tuple(sorted(s for s in slots.written if s in live or s in slots.lasting))
    temporaries = tuple(sorted(slots.written - set(commits)))
    reads = tuple(sorted(slots.read_first))
    own.plans[number] = BlockPlan(
        tuple(steps),
        terminator,
        JUMP if how is None else how,
        reads,
        commits,
        temporaries,
        tuple(sorted({*reads, *commits})),
        len(slots.zeros),
    )
    return own.plans[number]


def decode_instruction(decoder: Decoder, pc: int) -> tuple[Step | None, Terminator | None]:
    """Return the step or terminator of an instruction of the decoder's block; neither for an end
    that only the scheduler executes."""
    decoder.pc, decoder.position = pc, decoder.kernel.position(decoder.block, pc)
    instruction = decoder.kernel.instructions[pc]
    missing = left_out(instruction)
    if missing:
        raise decoder.refuse(f"cutrace leaves out {missing}")
    try:
        if pc == decoder.block.last - 1 and ending(decoder.kernel, decoder.block) is not None:
            return None, decode_terminator(decoder, instruction)
        for decode_form in _STEPS.get(instruction.opcode, ()):
            step = decode_form(decoder, instruction)
            if step is not None:
                return step, None
        rule = find_rule(instruction)
        if rule is None:
            raise decoder.refuse("cutrace does not know this instruction")
        return decode_alu(decoder, instruction, rule), None
    except _UNREADABLE as error:
        raise decoder.refuse("cutrace cannot make sense of this instruction") from error


_FAMILIES: tuple[StepTable, ...] = (
    address.STEPS,
    bulk_copy.STEPS,
    tensor_map_edit.STEPS,
    launch_control.STEPS,
    stack.STEPS,
    load_store.STEPS,
    move.STEPS,
    call.STEPS,
    atomic.STEPS,
    cluster_address.STEPS,
    shuffle_vote.STEPS,
    mma.STEPS,
    wgmma.STEPS,
    tensor_product.STEPS,
    wmma.STEPS,
    ldmatrix.STEPS,
    async_copy.STEPS,
    sample.STEPS,
    surface_access.STEPS,
    query.STEPS,
)
"""Instructions that are more than arithmetic; of an opcode in several tables (`ld`, `st`, `red`,
`cp`) the first family that has the form decodes it.
"""

_STEPS = {
    opcode: tuple(family[opcode] for family in _FAMILIES if opcode in family)
    for opcode in frozenset().union(*_FAMILIES)
}


_UNREADABLE = (LookupError, OverflowError, StopIteration, ValueError)
"""Errors of the decoders for an instruction that lacks a modifier or operand that its form requires
(no entry of a table, no next one, another number of operands), or has a number that its type cannot
hold. Others are faults of the decoders.
"""
