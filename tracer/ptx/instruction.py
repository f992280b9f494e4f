"""Parse one instruction: `@%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+8];`.

Names are resolved in scopes: builtin, module, function, and `{ }` inside a function. A name
declared in an inner scope becomes `name@N`, where N numbers the scope in its function, to be unique
there: `param0` of two call sequences becomes `param0@1` and `param0@2`.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Optional

from ...base.errors import CutraceError
from .kernel import (
    Address,
    Bucket,
    CallTarget,
    Guard,
    Immediate,
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
from .lexer import Cursor, lex, read_constant, read_integer
from .opcodes import LABEL_OPERAND, words

_COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
_NUMBER = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
VECTOR_SPECIALS = words(
    "%tid %ntid %ctaid %nctaid %clusterid %nclusterid %cluster_ctaid %cluster_nctaid"
)
_SPECIALS = words(
    """
    %laneid %warpid %nwarpid %smid %nsmid %gridid %is_explicit_cluster %cluster_ctarank
    %cluster_nctarank %lanemask_eq %lanemask_le %lanemask_lt %lanemask_ge %lanemask_gt %clock
    %clock_hi %clock64 %globaltimer %globaltimer_lo %globaltimer_hi %total_smem_size
    %aggr_smem_size %dynamic_smem_size %current_graph_exec %reserved_smem_offset_begin
    %reserved_smem_offset_end %reserved_smem_offset_cap
    """
)
_NUMBERED_SPECIAL = re.compile(
    r"%envreg(?:\d|[12]\d|3[01])|%pm[0-7](?:_64)?|%reserved_smem_offset_[01]", re.ASCII
)


class Scope:
    """One pair of braces: the registers, variables and labels declared between them."""

    __slots__ = ("_declared", "_names", "_ranges", "labels", "number", "parent", "registers")

    def __init__(self, parent: Optional["Scope"] = None, number: int = 0) -> None:
        """Open a scope; `number` 0 is a function's outermost one, or one outside of functions."""
        self.parent = parent
        self.number = number
        self.registers: dict[str, str] = parent.registers if parent and number else {}
        self.labels: dict[str, str] = {}
        self._names: dict[str, Operand] = {}
        self._ranges: dict[str, tuple[int, str]] = {}
        self._declared: set[str] = set()

    def unique(self, name: str) -> str:
        """Return the unique name within the function for a `name` declared here."""
        return f"{name}@{self.number}" if self.number else name

    def declare(self, name: str, operand: Operand) -> bool:
        """Bind `name` to `operand`; return False if this scope already declares it."""
        fresh = name not in self._declared and self._in_range(name) is None
        self._declared.add(name)
        self._names[name] = operand
        return fresh

    def declare_register(self, name: str, type_: str, vector: int = 1) -> bool:
        """Declare a register, or `name.x`, `name.y` ... if `vector` > 1; return like `declare`."""
        parts = [self._register(part, type_) for part in part_names(name, vector)]
        return self.declare(name, parts[0] if vector == 1 else Vector(tuple(parts)))

    def declare_range(self, prefix: str, count: int, type_: str) -> bool:
        """Declare registers `prefix0` to `prefix(count-1)`; return False if one exists already."""
        numbers = (name[len(prefix) :] for name in self._declared if name.startswith(prefix))
        clash = prefix in self._ranges or any(
            _NUMBER.fullmatch(number) and int(number) < count for number in numbers
        )
        self._ranges[prefix] = (count, type_)
        return not clash

    def find(self, name: str) -> Operand | None:
        """Return the operand that `name` is bound to here, or None."""
        scope: Scope | None = self
        while scope is not None:
            operand = scope._names.get(name) or scope._in_range(name)
            if operand is not None:
                return operand
            scope = scope.parent
        return _component(self, name) or _special(name)

    def find_label(self, name: str) -> str | None:
        """Return the function-wide name of label `name`, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None

    def names(self) -> list[str]:
        """Return all visible names, for error messages (only the last one of a range)."""
        scope: Scope | None = self
        names: list[str] = []
        while scope is not None:
            names += [*scope._names, *(f"{p}{n - 1}" for p, (n, _) in scope._ranges.items())]
            scope = scope.parent
        return names

    def _in_range(self, name: str) -> Register | None:
        """Return the register `%r7` of a range `%r<12>`, and cache it."""
        if not self._ranges or not name[-1:].isdigit():
            return None
        for cut in range(len(name) - 1, 0, -1):
            if name[cut] not in "0123456789":
                break
            count, type_ = self._ranges.get(name[:cut], (0, ""))
            if count and _NUMBER.fullmatch(name, cut) and int(name[cut:]) < count:
                register = self._names[name] = self._register(name, type_)
                return register
        return None

    def _register(self, name: str, type_: str) -> Register:
        register = Register(self.unique(name), type_)
        self.registers[register.name] = type_
        return register


def part_names(name: str, vector: int) -> list[str]:
    """Return the register names of the elements of a vector register."""
    return [name] if vector == 1 else [f"{name}.{part}" for part in "xyzw"[:vector]]


def builtin_scope() -> Scope:
    """Return the outermost scope: `_` and WARP_SZ."""
    scope = Scope()
    scope.declare("_", Bucket())
    scope.declare("WARP_SZ", Immediate(32))
    return scope


def _component(scope: Scope, name: str) -> Operand | None:
    base, dot, component = name.partition(".")
    if not dot or component not in _COMPONENTS:
        return None
    vector = scope.find(base)
    if isinstance(vector, Vector) and _COMPONENTS[component] < len(vector.elements):
        return vector.elements[_COMPONENTS[component]]
    return None


def _special(name: str) -> Special | None:
    base, dot, component = name.partition(".")
    vector = base in VECTOR_SPECIALS and (not dot or component in ("x", "y", "z", "w"))
    if vector or name in _SPECIALS or _NUMBERED_SPECIAL.fullmatch(name):
        return Special(name)
    return None


def read_instruction(cursor: Cursor, scope: Scope, location: Location | None) -> Instruction:
    """Read an instruction from its guard (or opcode) through the `;`."""
    first = cursor.index
    guard = _read_guard(cursor, scope) if cursor.next == "@" else None
    opcode, modifiers = _split(_read_mnemonic(cursor))
    operands: list[Operand] = []
    if opcode == "call":
        operands.append(read_call(cursor, scope))
    elif cursor.next != ";":
        label = LABEL_OPERAND.get(opcode, -1)
        while not operands or cursor.accept(","):
            if len(operands) == label:
                operands.append(Label(cursor.name("a label")))
            else:
                operands.append(read_operand(cursor, scope))
    if not cursor.accept(";"):
        raise cursor.error("`,` or `;`")
    tokens = cursor.tokens
    text = tokens.between(first, cursor.index - 1)
    line = tokens.line(first)
    return Instruction(opcode, modifiers, tuple(operands), guard, text, line, location)


def read_text(text: str) -> Instruction | None:
    """Read one instruction by itself, as the instruction table of a trace has it.

    Names with a `%` are registers of an unknown type, others variables. Where the linker wrote the
    text (`@%p1 bra (after call 3);`) there is only the guard; None for machine code.
    """
    cursor, scope = Cursor(lex(text)), _Undeclared(builtin_scope())
    guard = None
    try:
        guard = _read_guard(cursor, scope) if cursor.next == "@" else None
        return replace(read_instruction(cursor, scope, None), guard=guard)
    except CutraceError:
        return Instruction("", (), (), guard, text, 1) if guard else None


class _Undeclared(Scope):
    """A scope in which every name is declared."""

    __slots__ = ()

    def find(self, name: str) -> Operand | None:
        """Return the operand of a name."""
        named = super().find(name)
        own = Register(name.partition(".")[0], "") if name[0] == "%" else Symbol(name)
        return own if named is None else named


def address_of(instruction: Instruction) -> tuple[str, int] | None:
    """Return the base and the offset of an instruction's first address, if it has one."""
    for operand in instruction.operands:
        match operand:
            case Address(Register(name) | Symbol(name), offset):
                return name, offset
            case Address(None, offset):
                return "", offset
    return None


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
