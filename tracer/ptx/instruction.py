"""Parse one instruction: `@%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+8];`."""

import re
from functools import lru_cache

from .constant import read_constant, read_integer
from .kernel import (
    Address,
    Bucket,
    CallTarget,
    Guard,
    Instruction,
    Label,
    Location,
    Not,
    Operand,
    Pair,
    Part,
    Register,
    Special,
    Sum,
    Symbol,
    TextureAddress,
    Vector,
)
from .lexer import Cursor
from .opcodes import LABEL_OPERAND
from .scope import VECTOR_SPECIALS, Scope


def read_instruction(cursor: Cursor, scope: Scope, location: Location | None) -> Instruction:
    """Read an instruction from its guard (or opcode) through the `;`."""
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
    """Return True if the call names a prototype or a list of targets."""
    target = instruction.operands[0]
    return isinstance(target, CallTarget) and target.prototype is not None


def _read_guard(cursor: Cursor, scope: Scope) -> Guard:
    cursor.take()
    negated = cursor.accept("!")
    return Guard(read_predicate(cursor, scope), negated)


def _read_mnemonic(cursor: Cursor) -> str:
    """Read the opcode and its modifiers, also if spaces separate them: `add .f32`."""
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


_SELECTOR = re.compile(r"b[0-7]{1,4}$|h[0-3]{1,2}$")
"""Selector of bytes or halves of a register, or of a register pair (PTX ISA, 9.7.17)."""


def read_operand(cursor: Cursor, scope: Scope) -> Operand:
    """Read one operand; leave the token after it to the caller."""
    token = cursor.next
    start = token[:1]
    if start == "[":
        return _read_address(cursor, scope)
    if start == "{":
        return _read_vector(cursor, scope)
    if start == "!" and cursor.texts[cursor.index + 1][:1] not in "(0123456789":
        cursor.take()
        return Not(read_predicate(cursor, scope))
    if start and (start.isalpha() or start in "%$_") and token != "WARP_SZ":
        return _read_word(cursor, scope)
    if start.isdigit() or start in ("-", "+", "~", "!", "(", ".", "W"):
        return read_constant(cursor)
    raise cursor.error("an operand")


def read_call(cursor: Cursor, scope: Scope) -> CallTarget:
    """Read all operands of `call`; the last token may name a prototype."""
    returns: tuple[Operand, ...] = ()
    if cursor.next == "(":
        returns = _read_list(cursor, scope)
        cursor.expect(",")
    callee = _read_base(cursor, scope, "a function, or a register that holds its address")
    arguments: tuple[Operand, ...] = ()
    if not cursor.accept(","):
        return CallTarget(returns, callee, arguments)
    if cursor.next == "(":
        arguments = _read_list(cursor, scope)
        if not cursor.accept(","):
            return CallTarget(returns, callee, arguments)
    return CallTarget(returns, callee, arguments, cursor.name("a prototype or list of targets"))


def _read_list(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    """Read `(a, b)`, possibly empty; the elements of a vector become separate operands."""
    cursor.expect("(")
    items: list[Operand] = []
    while not cursor.accept(")"):
        if items:
            cursor.expect(",")
        item = read_operand(cursor, scope)
        items += item.elements if isinstance(item, Vector) else [item]
    return tuple(items)


def _read_word(cursor: Cursor, scope: Scope) -> Operand:
    """Read a named operand: register, pair, variable plus offset, special register."""
    operand = _find(cursor, scope, cursor.name("an operand"))
    follow = cursor.next
    if (follow == "," or follow == ";") and not isinstance(operand, Special):
        return operand
    if follow == "|" and isinstance(operand, (Register, Bucket)):
        cursor.take()
        return Pair(operand, _read_register_or_bucket(cursor, scope))
    if isinstance(operand, Symbol):
        if follow in ("+", "-"):
            return Symbol(operand.name, _read_offset(cursor))
        if follow == "[":
            return _read_element(cursor, operand)
    if isinstance(operand, Register) and follow in ("+", "-"):
        return Sum(operand, _read_offset(cursor))
    if isinstance(operand, Special) and operand.name in VECTOR_SPECIALS:
        return Vector(tuple(Special(f"{operand.name}.{axis}") for axis in "xyzw"))
    return operand


def _find(cursor: Cursor, scope: Scope, name: str) -> Operand:
    operand = scope.find(name)
    if operand is not None:
        return operand
    base, _, selector = name.partition(".")
    register = scope.find(base)
    if _SELECTOR.match(selector) and isinstance(register, Register):
        return Part(register, selector)
    raise cursor.error("a declared register, variable or function", scope.names(), cursor.index - 1)


def _read_register_or_bucket(cursor: Cursor, scope: Scope) -> Register | Bucket:
    at = cursor.index
    operand = _find(cursor, scope, cursor.name("a register"))
    if not isinstance(operand, (Register, Bucket)):
        raise cursor.error("a register", index=at)
    return operand


def read_predicate(cursor: Cursor, scope: Scope) -> Register:
    """Read the name of a predicate register."""
    at, what = cursor.index, "a predicate register"
    operand = _find(cursor, scope, cursor.name(what))
    if not isinstance(operand, Register):
        raise cursor.error(what, index=at)
    return operand


def _read_offset(cursor: Cursor) -> int:
    """Read `+8`, `-8`, `+-8` or `+4*8` after a base; return 0 if there is no offset."""
    sign = cursor.next
    if sign == "+" and cursor.texts[cursor.index + 2] == "]":
        cursor.take()
    return read_integer(cursor) if sign in ("+", "-") else 0


def _read_element(cursor: Cursor, array: Symbol) -> Symbol:
    """Read an array index, `[1]` in `ld.global.u32 %r1, table[1]`."""
    cursor.take()
    at = cursor.index
    index = read_integer(cursor)
    if not array.element:
        raise cursor.error(f"no index, since `{array.name}` is no array", index=at)
    cursor.expect("]")
    return Symbol(array.name, index * array.element)


def _read_vector(cursor: Cursor, scope: Scope) -> Operand:
    cursor.take()
    elements = [read_operand(cursor, scope)]
    while cursor.accept(","):
        elements.append(read_operand(cursor, scope))
    cursor.expect("}")
    vector = Vector(tuple(elements))
    return Pair(vector, _read_register_or_bucket(cursor, scope)) if cursor.accept("|") else vector


def _read_address(cursor: Cursor, scope: Scope) -> Operand:
    """Read `[base+offset]`, `[number]`, `[texture, {x, y}]`, `[texture, sampler, {x, y}]`."""
    cursor.take()
    if cursor.next[:1].isdigit() or cursor.next == "-":
        address = Address(None, read_integer(cursor))
        cursor.expect("]")
        return address
    base = _read_base(cursor, scope, "a register or a variable")
    if cursor.next == ",":
        return _read_texture(cursor, scope, base)
    offset = _read_offset(cursor)
    cursor.expect("]")
    return Address(base, offset)


def _read_base(cursor: Cursor, scope: Scope, what: str) -> Register | Symbol:
    at = cursor.index
    base = _find(cursor, scope, cursor.name(what))
    if not isinstance(base, (Register, Symbol)):
        raise cursor.error(what, index=at)
    return base


def _read_texture(cursor: Cursor, scope: Scope, texture: Register | Symbol) -> TextureAddress:
    parts: list[Operand] = []
    while cursor.accept(","):
        parts.append(read_operand(cursor, scope))
    cursor.expect("]")
    last = parts[-1]
    coordinates = last.elements if isinstance(last, Vector) else (last,)
    if len(parts) == 1:
        return TextureAddress(texture, coordinates)
    sampler = parts[0]
    if len(parts) > 2 or not isinstance(sampler, (Register, Symbol)):
        raise cursor.error("`[texture, sampler, {coordinates}]`", index=cursor.index - 1)
    return TextureAddress(texture, coordinates, sampler)
