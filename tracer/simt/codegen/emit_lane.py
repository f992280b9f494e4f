"""Codegen of computing instructions and moves for one lane: registers in, registers out.

A run of such instructions becomes a loop over the 32 lanes of a warp, which LLVM vectorizes. Within
the run values stay in LLVM's registers; at its end those that others read are stored to the warp's
frame.

An instruction is emitted from the fragment of the array engine's loop. One without a fragment is
traced: jit/numpy_tracer.py records the NumPy operations of the array engine. If tracing fails, the
array engine runs the instruction.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from ....jit.loop_codegen import parameter_types, translate
from ....jit.machine_code import symbol
from ....jit.numpy_tracer import trace
from ....jit.ufunc import Fragment, fragment_of
from ....jit.ufunc_codegen import DECLARATIONS
from ...ptx.kernel import (
    Immediate,
    Instruction,
    Not,
    Operand,
    Part,
    Register,
    Special,
    Symbol,
)
from ..decode.decoder import immediate
from ..decode.special_register import CLOCKS
from ..ops.lanes import DTYPES, Array
from ..ops.rule import Rule
from .register_frame import BLOCK, CARRY, THREAD, Frame

Refuse: TypeAlias = Callable[[str], Exception]
Write: TypeAlias = tuple[Operand, str, str]
"""A result of an instruction: its operand, PTX type and value."""

WHOLE = {"pred": "i1", "f32": "float", "f64": "double"}


def llvm_type(kind: str) -> str:
    """Return LLVM's type for a value of a PTX type; untyped bits are integers."""
    return WHOLE.get(kind) or f"i{8 * DTYPES[kind].itemsize}"


def width(kind: str) -> int:
    """Return the bits of a PTX type's LLVM value."""
    return 1 if kind == "pred" else 8 * DTYPES[kind].itemsize


class Lane:
    """The lines of one run in the function `function` of a kernel.

    `position` is that of the current instruction in its basic block.
    """

    def __init__(self, frame: Frame, function: int, refuse: Refuse) -> None:
        self.lines: list[str] = []
        self.frame = frame
        self.function = function
        self.refuse = refuse
        self.position = 0
        self.written: dict[str, Register] = {}
        self._values: dict[str, tuple[str, str]] = {}
        self._count = 0

    def emit(self, statement: str) -> str:
        """Add a statement; return the name of its value."""
        self._count += 1
        self.lines.append(f"  %x{self._count} = {statement}")
        return f"%x{self._count}"

    def bitcast(self, value: str, source: str, to: str) -> str:
        """Return a value as another type of the same size."""
        return value if source == to else self.emit(f"bitcast {source} {value} to {to}")

    def operand(self, operand: Operand, kind: str) -> str:
        """Return an operand as the PTX type `kind`."""
        match operand:
            case Register() | Part(Register()):
                register = operand.register if isinstance(operand, Part) else operand
                return self._register(register, kind)
            case Not(register):
                return self.emit(f"xor i1 {self._register(register, 'pred')}, true")
            case Special(name):
                return self._special(name, kind)
            case Immediate():
                return self._literal(operand, kind)
        return self._fixed(operand, kind)

    def _fixed(self, operand: Operand, kind: str) -> str:
        number = self.frame.address_of(self.function, operand)
        if number is None:
            raise self.refuse("an operand that it does not know")
        bits = width(kind)
        return self.bitcast(str(number & ((1 << bits) - 1)), f"i{bits}", llvm_type(kind))

    def _literal(self, operand: Immediate, kind: str) -> str:
        value = immediate(operand, kind)
        if kind == "pred":
            return "true" if value[0, 0] else "false"
        bits = value.dtype.itemsize
        number = int(value.view(f"u{bits}")[0, 0])
        return self.bitcast(str(number), f"i{8 * bits}", llvm_type(kind))

    def _special(self, name: str, kind: str) -> str:
        if name in CLOCKS:
            at = self.emit("getelementptr i32, ptr %steps, i64 %warp")
            step = self.emit(f"load i32, ptr {at}, !llvm.access.group !0")
            count = self.emit(f"add i64 {self.emit(f'zext i32 {step} to i64')}, %clock_leap")
            return self._cut(self.emit(f"add i64 {count}, {self.position}"), 64, kind)
        place = self.frame.specials.places.get(name)
        if place is None:
            raise self.refuse(f"the special register `{name}`")
        stored = f"i{8 * place.size}"
        if place.table == THREAD:
            value = self._load("%of_warp", place.offset, stored)
        else:
            table = "%of_block" if place.table == BLOCK else "%of_launch"
            value = self._load_fixed(table, place.offset, stored)
        return self._cut(value, 8 * place.size, kind)

    def _cut(self, value: str, bits: int, kind: str) -> str:
        target_bits = width(kind)
        if target_bits < bits:
            value = self.emit(f"trunc i{bits} {value} to i{target_bits}")
        elif target_bits > bits:
            raise self.refuse("a register narrower than its type")
        return self.bitcast(value, f"i{target_bits}", llvm_type(kind))

    def _register(self, register: Register, kind: str) -> str:
        entry = self._values.get(register.name)
        if entry is None:
            entry = self._fetched(register)
            self._values[register.name] = entry
        value, source = entry
        if llvm_type(kind) == source:
            return value
        bits = width(register.type)
        return self._cut(self.bitcast(value, source, f"i{bits}"), bits, kind)

    def _fetched(self, register: Register, frame: str = "%frame") -> tuple[str, str]:
        offset = self.frame.parameters.get((self.function, register.name))
        if offset is not None:
            return self.parameter(offset, register.type), llvm_type(register.type)
        place = self.frame.place(self.function, register.name)
        kind = llvm_type(register.type)
        value = self._load(frame, place.offset, "i8" if kind == "i1" else kind)
        return (self.emit(f"trunc i8 {value} to i1") if kind == "i1" else value), kind

    def _load(self, start: str, offset: int, kind: str) -> str:
        """Load the lane's element of 32 contiguous values."""
        at = self.emit(f"getelementptr i8, ptr {start}, i64 {offset}")
        at = self.emit(f"getelementptr {kind}, ptr {at}, i64 %lane")
        return self.emit(f"load {kind}, ptr {at}, !llvm.access.group !0")

    def level(self, kind: str) -> str:
        """Return the bytes of local memory below the lane's level of recursion."""
        bits = width(kind)
        depth = self._load("%frame", self.frame.depth.offset, "i32")
        if bits > 32:
            depth = self.emit(f"zext i32 {depth} to i{bits}")
        return self.emit(f"mul i{bits} {depth}, {self.frame.local_stride}")

    def parameter(self, offset: int, kind: str) -> str:
        """Return bytes of the kernel's parameters."""
        stored = "i8" if kind == "pred" else llvm_type(kind)
        return self._load_fixed("%parameters", offset, stored)

    def _load_fixed(self, start: str, offset: int, kind: str) -> str:
        """Load a value that is constant and equal for all lanes."""
        at = self.emit(f"getelementptr i8, ptr {start}, i64 {offset}")
        return self.emit(
            f"load {kind}, ptr {at}, align 1, !invariant.load !0, !llvm.access.group !0"
        )

    def write(self, register: Register, kind: str, value: str, guard: str | None) -> None:
        """Set a register, extended to its width, where the guard holds."""
        source, bits, have = llvm_type(kind), width(register.type), width(kind)
        if bits < have or (bits != have and have == 1):
            raise self.refuse("a register narrower than its type")
        if bits > have:
            grow = "sext" if kind[0] == "s" else "zext"
            value = self.bitcast(value, source, f"i{have}")
            value, source = self.emit(f"{grow} i{have} {value} to i{bits}"), f"i{bits}"
        name = register.name
        is_read = name in self._values or self.frame.has_place(self.function, name)
        is_read |= (self.function, name) in self.frame.parameters
        if guard is not None and is_read:
            old = self._register(register, register.type)
            own = llvm_type(register.type)
            value = self.bitcast(value, source, own)
            value, source = self.emit(f"select i1 {guard}, {own} {value}, {own} {old}"), own
        self._values[register.name] = (value, source)
        self.written[register.name] = register

    def keep(self, register: Register, blended: bool) -> None:
        """Store a register to the frame; if `blended`, only where the lane is active."""
        value, source = self._values[register.name]
        place = self.frame.place(self.function, register.name)
        kind = llvm_type(register.type)
        value = self.bitcast(value, source, kind)
        if blended:
            old, _ = self._fetched(register, "%old_frame")
            value = self.emit(f"select i1 %on, {kind} {value}, {kind} {old}")
        if kind == "i1":
            value, kind = self.emit(f"zext i1 {value} to i8"), "i8"
        at = self.emit(f"getelementptr i8, ptr %frame, i64 {place.offset}")
        at = self.emit(f"getelementptr {kind}, ptr {at}, i64 %lane")
        self.lines.append(f"  store {kind} {value}, ptr {at}, !llvm.access.group !0")


_NAME = re.compile(r"@(?!llvm\.)([\w.]+)")
_NEAREST = 1


class Fragments:
    """The functions that a kernel's text calls, each defined once, and their declarations."""

    def __init__(self) -> None:
        self._names: dict[Fragment, str] = {}
        self._tables: dict[str, str] = {}
        self._definitions: list[str] = []
        self.support: dict[str, tuple[str, bool]] = {}
        self._declared: dict[str, str] = {}
        for line in DECLARATIONS:
            self._declare(line)

    def table(self, numbers: list[int]) -> str:
        """Return the name of a table of 64-bit integers."""
        listed = ", ".join(f"i64 {number}" for number in numbers)
        text = f"internal constant [{len(numbers)} x i64] [{listed}]"
        return self._tables.setdefault(text, f"table{len(self._tables)}")

    def name(self, fragment: Fragment) -> str:
        """Return the name of the function of a fragment."""
        if fragment not in self._names:
            self._names[fragment] = f"op{len(self._names)}"
            self._definitions.append(self._define(self._names[fragment], fragment))
        return self._names[fragment]

    def _declare(self, line: str) -> None:
        self._declared[line[: line.index("(")].split()[-1]] = line

    def take(self, definitions: str, prefix: str) -> str:
        """Keep the declarations of a text; return the remaining text with a prefix on its
        functions."""
        lines = definitions.splitlines()
        for line in lines:
            if line.startswith("declare"):
                self._declare(line)
        body = "\n".join(line for line in lines if not line.startswith("declare"))
        return _NAME.sub(lambda m: f"@{prefix}.{m[1]}", body)

    def once(
        self, name: str, parameters: str, definition: str, result: str = "void",
        vectors: bool = False,
    ) -> str:  # fmt: skip
        """Declare a function that is compiled separately, once for all kernels; return its symbol.
        `vectors` lets LLVM vectorize its loops."""
        called = symbol(name, definition)
        self.support[called] = definition, vectors
        self._declare(f"declare {result} @{called}({parameters})")
        return called

    def loop(self, function: Callable[..., Any], vectors: bool = False) -> str:
        """Declare a loop, which is compiled like the functions of `once`; return its symbol."""
        name, (types, text) = function.__name__, _translated(function)
        return self.once(name, types, text, "i64", vectors)

    def _define(self, name: str, fragment: Fragment) -> str:
        """Define the function of a fragment: inlined, or with its own rounding mode."""
        sources, (result,) = fragment.types(fragment.sources), fragment.types(fragment.results)
        parameters = ", ".join(f"{t} %x{k}" for k, t in enumerate(sources))
        how, before, after = "alwaysinline", "", ""
        if fragment.rounding != _NEAREST:
            self._declare("declare void @llvm.set.rounding(i32)")
            how = "noinline strictfp"
            before = f"call void @llvm.set.rounding(i32 {fragment.rounding}) strictfp\n  "
            after = f"\n  call void @llvm.set.rounding(i32 {_NEAREST}) strictfp"
        return (
            self.take(fragment.declarations, name)
            + f"\ndefine internal {result} @{name}({parameters}) {how} {{\n  {before}"
            + self.take(fragment.body, name)
            + f"{after}\n  ret {result} %y0\n}}\n"
        )

    def call(self, lane: Lane, fragment: Fragment, arguments: list[str]) -> str:
        """Emit the call of a fragment with one result; return its name."""
        types = fragment.types((*fragment.sources, *fragment.results))
        listed = ", ".join(f"{t} {v}" for t, v in zip(types, arguments, strict=False))
        return lane.emit(f"call {types[-1]} @{self.name(fragment)}({listed})")

    def text(self) -> str:
        """Return all declarations and definitions."""
        tables = (f"@{name} = {text}" for text, name in self._tables.items())
        return "\n".join((*self._declared.values(), *tables, *self._definitions))


@cache
def _translated(function: Callable[..., Any]) -> tuple[str, str]:
    return ", ".join(parameter_types(function)), translate([function])


def compute(
    lane: Lane, fragments: Fragments, rule: Rule, operands: Sequence[Operand]
) -> list[str] | None:
    """Emit the statements of an instruction; return its results, None if it is not compiled."""
    arguments = [lane.operand(o, k) for o, k in zip(operands, rule.sources, strict=True)]
    fragment = fragment_of(rule.compute)
    values = None if fragment is None else _call(lane, fragments, fragment, rule, arguments)
    return _traced(lane, fragments, rule, operands, arguments) if values is None else values


def _traced(
    lane: Lane, fragments: Fragments, rule: Rule, operands: Sequence[Operand], arguments: list[str]
) -> list[str] | None:
    values: list[str | Array] = [
        immediate(operand, kind) if isinstance(operand, Immediate) else value
        for operand, kind, value in zip(operands, rule.sources, arguments, strict=True)
    ]

    def call(fragment: Fragment, inputs: list[str]) -> str:
        return fragments.call(lane, fragment, inputs)

    sources, results = rule.sources, rule.results
    if rule.carry_in:
        values.append(lane.operand(CARRY, "pred"))
        sources = (*sources, "pred")
    if rule.carry_out:
        results = (*results, "pred")
    types = [DTYPES[kind] for kind in sources], [DTYPES[kind] for kind in results]
    return trace(lane, rule.compute, values, types, call)


def _call(
    lane: Lane, fragments: Fragments, fragment: Fragment, rule: Rule, arguments: list[str]
) -> list[str] | None:
    types = fragment.types((*fragment.sources, *fragment.results))
    if types != [llvm_type(kind) for kind in (*rule.sources, *rule.results)]:
        return None
    return [fragments.call(lane, fragment, arguments)]


def move(lane: Lane, instruction: Instruction) -> list[Write]:
    """Return the write of a `mov` of one register: operand, PTX type and value."""
    to, source = instruction.operands
    kind = instruction.type
    value = lane.operand(source, kind)
    if isinstance(source, Symbol) and lane.frame.passing.has_levels(lane.function, source.name):
        value = lane.emit(f"add i{width(kind)} {value}, {lane.level(kind)}")
    return [(to, kind, value)]
