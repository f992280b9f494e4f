"""Which text computes an instruction: that of a table here, or the one the array engine's loop has.

What neither has is written down as the array engine computes it, see traced_rule.py; where that
cannot be done a kernel runs in the array engine.
"""

import re

from .....native.machine_code import symbol
from ....ptx.kernel import Immediate, Instruction, Operand
from ...array.slot import immediate
from ...lanes import Array
from ...native.ufunc import Fragment, fragment_of
from ...op.bits import INTEGERS
from ...op.reformat import Reformat, reformat
from ...op.rule import Rule
from ..frame.register_frame import CARRY
from .convert_text import HALVES, NUMBER
from .integer_text import INTEGER
from .lane_text import Lane, llvm_type
from .traced_rule import trace

_NAME = re.compile(r"@(?!llvm\.)([\w.]+)")
_NEAREST = 1


def _intrinsics() -> list[str]:
    lines = [f"declare i32 @llvm.{name}.sat.i32(i32, i32)" for name in ("sadd", "ssub")]
    lines += ["declare i32 @llvm.umin.i32(i32, i32)"]
    lines += [f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("umin", "smin", "smax")]
    for bits in (8, 16, 32, 64):
        kind = f"i{bits}"
        lines.append(f"declare {kind} @llvm.ctlz.{kind}({kind}, i1)")
        lines += [f"declare {kind} @llvm.{n}.{kind}({kind})" for n in ("ctpop", "bitreverse")]
    for kind, real in (("f32", "float"), ("f64", "double")):
        names = ("fabs", "sqrt", "rint", "trunc", "floor", "ceil")
        lines += [f"declare {real} @llvm.{name}.{kind}({real})" for name in names]
        lines.append(f"declare {real} @llvm.copysign.{kind}({real}, {real})")
    return lines


DECLARATIONS = _intrinsics()
"""What the tables call."""


class Fragments:
    """The functions that a kernel's text calls, each defined once, and what they declare."""

    def __init__(self) -> None:
        self._names: dict[Fragment, str] = {}
        self._definitions: list[str] = []
        self.support: dict[str, tuple[str, bool]] = {}
        self._declared: dict[str, str] = {}
        for line in DECLARATIONS:
            self._declare(line)

    def name(self, fragment: Fragment) -> str:
        """Return the name of the function of a fragment."""
        if fragment not in self._names:
            self._names[fragment] = f"op{len(self._names)}"
            self._definitions.append(self._define(self._names[fragment], fragment))
        return self._names[fragment]

    def _declare(self, line: str) -> None:
        self._declared[line[: line.index("(")].split()[-1]] = line

    def take(self, definitions: str, prefix: str) -> str:
        """Keep the declarations of a text; return the rest, its functions under a prefix."""
        lines = definitions.splitlines()
        for line in lines:
            if line.startswith("declare"):
                self._declare(line)
        rest = "\n".join(line for line in lines if not line.startswith("declare"))
        return _NAME.sub(lambda m: f"@{prefix}.{m[1]}", rest)

    def once(
        self, name: str, parameters: str, definition: str, result: str = "void",
        vectors: bool = False,
    ) -> str:  # fmt: skip
        """Call for a function that is compiled by itself, once for all kernels, its loops as
        `vectors` or as they stand; return what it is called."""
        called = symbol(name, definition)
        self.support[called] = definition, vectors
        self._declare(f"declare {result} @{called}({parameters})")
        return called

    def _define(self, name: str, fragment: Fragment) -> str:
        """Define the function of a fragment: inlined, or with a rounding mode of its own."""
        sources, (result,) = fragment.types(fragment.sources), fragment.types(fragment.results)
        given = ", ".join(f"{t} %x{k}" for k, t in enumerate(sources))
        how, before, after = "alwaysinline", "", ""
        if fragment.rounding != _NEAREST:
            self._declare("declare void @llvm.set.rounding(i32)")
            how = "noinline strictfp"
            before = f"call void @llvm.set.rounding(i32 {fragment.rounding}) strictfp\n  "
            after = f"\n  call void @llvm.set.rounding(i32 {_NEAREST}) strictfp"
        return (
            self.take(fragment.declarations, name)
            + f"\ndefine internal {result} @{name}({given}) {how} {{\n  {before}"
            + self.take(fragment.body, name)
            + f"{after}\n  ret {result} %y0\n}}\n"
        )

    def call(self, lane: Lane, fragment: Fragment, given: list[str]) -> str:
        """Add the call of a fragment with one result; return its name."""
        types = fragment.types((*fragment.sources, *fragment.results))
        listed = ", ".join(f"{t} {v}" for t, v in zip(types, given, strict=False))
        return lane.emit(f"call {types[-1]} @{self.name(fragment)}({listed})")

    def text(self) -> str:
        """Return all declarations and definitions."""
        return "\n".join((*self._declared.values(), *self._definitions))


def compute(
    lane: Lane, fragments: Fragments, instruction: Instruction, rule: Rule, operands: list[Operand]
) -> list[str] | None:
    """Add the statements of an instruction; return its results, None if it is not compiled."""
    given = [lane.operand(o, k) for o, k in zip(operands, rule.sources, strict=True)]
    fragment = fragment_of(rule.compute)
    found = None
    if fragment is not None:
        found = _call(lane, fragments, fragment, rule, given)
    elif not rule.carry_in and not rule.carry_out:
        found = _by_tables(lane, fragments, instruction, given)
    return _traced(lane, fragments, rule, operands, given) if found is None else found


def _by_tables(
    lane: Lane, fragments: Fragments, instruction: Instruction, given: list[str]
) -> list[str] | None:
    opcode = instruction.opcode
    if opcode == "sqrt" and instruction.type == "f32":
        return _root(lane, instruction, given)
    if opcode in ("setp", "set") and instruction.type in HALVES:
        given = [*_widened(lane, fragments, instruction.type, given[:2]), *given[2:]]
    if opcode in NUMBER:
        return NUMBER[opcode](lane, instruction, given)
    if opcode in INTEGER and instruction.type in INTEGERS | {"pred"}:
        return INTEGER[opcode](lane, instruction, given)
    return None


def _traced(
    lane: Lane, fragments: Fragments, rule: Rule, operands: list[Operand], given: list[str]
) -> list[str] | None:
    values: list[str | Array] = [
        immediate(operand, kind) if isinstance(operand, Immediate) else value
        for operand, kind, value in zip(operands, rule.sources, given, strict=True)
    ]

    def call(fragment: Fragment, given: list[str]) -> str:
        return fragments.call(lane, fragment, given)

    sources, results = rule.sources, rule.results
    if rule.carry_in:
        values.append(lane.operand(CARRY, "pred"))
        sources = (*sources, "pred")
    if rule.carry_out:
        results = (*results, "pred")
    return trace(lane, call, rule.compute, values, (sources, results))


def _call(
    lane: Lane, fragments: Fragments, fragment: Fragment, rule: Rule, given: list[str]
) -> list[str] | None:
    types = fragment.types((*fragment.sources, *fragment.results))
    if types != [llvm_type(kind) for kind in (*rule.sources, *rule.results)]:
        return None
    return [fragments.call(lane, fragment, given)]


def _widened(lane: Lane, fragments: Fragments, kind: str, given: list[str]) -> list[str]:
    """Return halves as single precision."""
    fragment = fragment_of(reformat(Reformat(kind, "f32")))
    assert fragment is not None
    name = fragments.name(fragment)
    wide = [lane.emit(f"call i32 @{name}(i16 {half})") for half in given]
    return [lane.bitcast(bits, "i32", "float") for bits in wide]


def _root(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    """Return the root to nearest, with the one NaN of single precision by its bits: LLVM takes a
    root's NaN for any other."""
    if {"approx", "ftz", "sat", "rz", "rm", "rp"} & set(instruction.modifiers):
        return None
    root = lane.emit(f"call float @llvm.sqrt.f32(float {given[0]})")
    bits = lane.bitcast(root, "float", "i32")
    size = lane.emit(f"and i32 {bits}, {0x7FFF_FFFF}")
    nan = lane.emit(f"icmp ugt i32 {size}, {0x7F80_0000}")
    chosen = lane.emit(f"select i1 {nan}, i32 {0x7FFF_FFFF}, i32 {bits}")
    return [lane.bitcast(chosen, "i32", "float")]
