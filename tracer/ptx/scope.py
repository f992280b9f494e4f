"""Scopes of names: builtin, module, function, and `{ }` inside a function.

A name declared in an inner scope becomes `name@N`, where N numbers the scope in its function, to be
unique there: `param0` of two call sequences becomes `param0@1` and `param0@2`.
"""

import re
from typing import Optional

from .kernel import Bucket, Immediate, Operand, Register, Special, Vector
from .opcodes import words

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
