"""One instruction: `@%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+8];`."""

from functools import lru_cache

from .cursor import Cursor
from .kernel import CallTarget, Guard, Instruction, Label, Location, Operand
from .opcodes import LABEL_OPERAND
from .operands import read_call, read_operand, read_predicate
from .scope import Scope


def read_instruction(cursor: Cursor, scope: Scope, location: Location | None) -> Instruction:
    """Read from the guard (or the opcode) to the `;` and over it."""
    first = cursor.index
    guard = _read_guard(cursor, scope) if cursor.next == "@" else None
    opcode, modifiers = _split(_read_mnemonic(cursor))
    if opcode == "call":
        operands: tuple[Operand, ...] = (read_call(cursor, scope),)
    elif cursor.next == ";":
        operands = ()
    else:
        operands = _read_operands(cursor, scope, LABEL_OPERAND.get(opcode, -1))
    if not cursor.accept(";"):
        raise cursor.error("`,` or `;`")
    tokens = cursor.tokens
    text = tokens.between(first, cursor.index - 1)
    line = tokens.line(first)
    return Instruction(opcode, modifiers, operands, guard, text, line, location)


def has_prototype(instruction: Instruction) -> bool:
    """Whether a call names a prototype or a list of targets."""
    target = instruction.operands[0]
    return isinstance(target, CallTarget) and target.prototype is not None


def _read_guard(cursor: Cursor, scope: Scope) -> Guard:
    cursor.take()
    negated = cursor.accept("!")
    return Guard(read_predicate(cursor, scope), negated)


def _read_mnemonic(cursor: Cursor) -> str:
    """Read the opcode and its modifiers, also those written apart: `add .f32`."""
    at = cursor.index
    mnemonic = cursor.name("an instruction")
    if not mnemonic[0].isalpha():
        raise cursor.error("an instruction, a label, a directive or `}`", index=at)
    while cursor.next[:1] == ".":
        mnemonic += cursor.take()
    return mnemonic


@lru_cache(maxsize=4096)
def _split(mnemonic: str) -> tuple[str, tuple[str, ...]]:
    opcode, *modifiers = mnemonic.split(".")
    return opcode, tuple(modifiers)


def _read_operands(cursor: Cursor, scope: Scope, label: int) -> tuple[Operand, ...]:
    operands: list[Operand] = []
    while True:
        if len(operands) == label:
            operands.append(Label(cursor.name("a label")))
        else:
            operands.append(read_operand(cursor, scope))
        if not cursor.accept(","):
            return tuple(operands)
