"""Comparison and selection (PTX ISA 9.7.5, 9.7.6)."""

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from ...ptx.kernel import Instruction
from ..array import DTYPES, Array
from .rule import Rule, Table

_ORDERED: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_COMBINE: Mapping[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_UNSIGNED_ORDER = frozenset({"lo", "ls", "hi", "hs"})
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}


def _comparison(operator: str, is_float: bool) -> Callable[[Array, Array], Array]:
    """Return the comparison; `ltu` and its kin are true, `lt` and its kin false, for a NaN."""
    if operator == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if operator == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if operator in _UNORDERED:
        ordered = _ORDERED[_UNORDERED[operator]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    if operator == "ne" and is_float:
        return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
    return _ORDERED[operator]


def _compare(instruction: Instruction) -> tuple[str, Callable[..., Array], int]:
    """Return the type compared, the function to a boolean, and how many sources it takes."""
    kind = instruction.type
    operator = instruction.modifiers[0]
    if operator in _UNSIGNED_ORDER:
        kind = "u" + kind[1:]
    is_float = DTYPES[kind].kind == "f"
    compare = _comparison(operator, is_float)
    combine = next((_COMBINE[m] for m in instruction.modifiers if m in _COMBINE), None)
    if combine is None:
        return kind, compare, 2
    joined = combine
    return kind, lambda a, b, c: joined(compare(a, b), c), 3


def _setp(instruction: Instruction) -> Rule:
    kind, compare, arity = _compare(instruction)
    operator = next((_COMBINE[m] for m in instruction.modifiers if m in _COMBINE), None)
    plain = _comparison(instruction.modifiers[0], DTYPES[kind].kind == "f")

    def both(a: Array, b: Array, *c: Array) -> tuple[Array, ...]:
        first = compare(a, b, *c)
        second = ~plain(a, b)
        return first, (second if operator is None else operator(second, c[0]))

    sources = (kind, kind, "pred")[:arity]
    if _wants_pair(instruction):
        return Rule(sources, ("pred", "pred"), both)
    return Rule(sources, ("pred",), compare)


def _wants_pair(instruction: Instruction) -> bool:
    from ...ptx.kernel import Pair

    return isinstance(instruction.operands[0], Pair)


def _set(instruction: Instruction) -> Rule:
    result = instruction.types[0]
    kind, compare, arity = _compare(instruction)
    true = DTYPES[result].type(1.0) if result[0] == "f" else ~DTYPES[result].type(0)

    def choose(*sources: Array) -> Array:
        chosen: Array = np.where(compare(*sources), true, DTYPES[result].type(0))
        return chosen

    return Rule((kind, kind, "pred")[:arity], (result,), choose)


def _selp(instruction: Instruction) -> Rule:
    kind = instruction.type
    return Rule((kind, kind, "pred"), (kind,), lambda a, b, p: cast(Array, np.where(p, a, b)))


def _slct(instruction: Instruction) -> Rule:
    kind, condition = instruction.types[0], instruction.types[1]
    return Rule((kind, kind, condition), (kind,), lambda a, b, c: np.where(c >= 0, a, b))


TABLE: Table = {"setp": _setp, "set": _set, "selp": _selp, "slct": _slct}
