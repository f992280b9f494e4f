"""Codegen of computing instructions, from the fragments of the array engine's loops.

An instruction without a fragment is traced: jit/numpy_tracer.py records the NumPy operations of the
array engine. If tracing fails, the array engine runs the instruction.
"""

import re

from ....jit.machine_code import symbol
from ....jit.numpy_tracer import trace
from ....jit.ufunc import Fragment, fragment_of
from ....jit.ufunc_codegen import DECLARATIONS
from ...ptx.kernel import Immediate, Operand
from ..ops.lanes import DTYPES, Array
from ..ops.rule import Rule
from ..warp.slot import immediate
from .emit_lane import Lane, llvm_type
from .register_frame import CARRY

_NAME = re.compile(r"@(?!llvm\.)([\w.]+)")
_NEAREST = 1


class Fragments:
    """The functions that a kernel's text calls, each defined once, and their declarations."""

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
        return "\n".join((*self._declared.values(), *self._definitions))


def compute(
    lane: Lane, fragments: Fragments, rule: Rule, operands: list[Operand]
) -> list[str] | None:
    """Emit the statements of an instruction; return its results, None if it is not compiled."""
    arguments = [lane.operand(o, k) for o, k in zip(operands, rule.sources, strict=True)]
    fragment = fragment_of(rule.compute)
    values = None if fragment is None else _call(lane, fragments, fragment, rule, arguments)
    return _traced(lane, fragments, rule, operands, arguments) if values is None else values


def _traced(
    lane: Lane, fragments: Fragments, rule: Rule, operands: list[Operand], arguments: list[str]
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
