"""Comparison and selection (PTX ISA 9.7.5, 9.7.6)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....base.dataclass import dataclass
from ....jit.ufunc import select
from ...ptx.kernel import Instruction, Pair
from .format import FORMATS, Reformat, reformat
from .lanes import DTYPES, Array
from .rule import Family, Rule

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
COMBINE: Mapping[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_UNSIGNED_ORDER = frozenset({"lo", "ls", "hi", "hs"})
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}


_TINY = {kind: FORMATS[kind].tiny for kind in ("f16", "bf16", "f32", "f64")}
_ONE = {"f16": 0x3C00, "bf16": 0x3F80}


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


def _reading(kind: str, ftz: bool) -> tuple[str, Callable[[Array], Array] | None]:
    """Return the type to fetch a source as, and the conversion of its bits to numbers (None:
    none)."""
    if kind not in _TINY:
        return kind, None
    storage, widen = kind, None
    if kind in ("f16", "bf16"):
        storage, bits = "b16", reformat(Reformat(kind, "f32"))
        widen = lambda a: bits(a).view(np.float32)  # noqa: E731
    if not ftz:
        return storage, widen
    tiny = _TINY[kind]

    def flushed(a: Array) -> Array:
        value = widen(a) if widen else a
        return np.where(np.abs(value) < tiny, value.dtype.type(0), value)

    return storage, flushed


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two sources, fetched as `storage`; if `packed`, per half."""

    storage: str
    packed: bool
    test: Callable[[Array, Array], Array]
    combine: Callable[[Array, Array], Array] | None

    @property
    def sources(self) -> tuple[str, ...]:
        """The types of the sources."""
        pair = (self.storage, self.storage)
        return pair if self.combine is None else (*pair, "pred")

    def __call__(self, a: Array, b: Array, *c: Array) -> Array:
        """Return the outcome, combined with the predicate `c` if there is one."""
        outcome = self.test(a, b)
        return self.combine(outcome, *c) if self.combine else outcome

    def halves(self, a: Array, b: Array, *c: Array) -> tuple[Array, Array]:
        """Return the outcomes of the lower and the upper halves."""
        low = self(a.astype(np.uint16), b.astype(np.uint16), *c)
        upper = ((x >> np.uint32(16)).astype(np.uint16) for x in (a, b))
        return low, self(*upper, *c)


def _compare(instruction: Instruction) -> Comparison:
    kind, modifiers = instruction.type, instruction.modifiers
    operator = modifiers[0]
    if operator in _UNSIGNED_ORDER:
        kind = "u" + kind[1:]
    single = kind.removesuffix("x2")
    storage, number = _reading(single, "ftz" in modifiers)
    plain = _comparison(operator, single in _TINY)
    test = (lambda a, b: plain(number(a), number(b))) if number else plain
    combine = next((COMBINE[m] for m in modifiers if m in COMBINE), None)
    packed = single != kind
    return Comparison("b32" if packed else storage, packed, test, combine)


def _setp(instruction: Instruction) -> Rule:
    compare = _compare(instruction)
    if compare.packed:
        return Rule(compare.sources, ("pred", "pred"), compare.halves)

    def both(a: Array, b: Array, *c: Array) -> tuple[Array, ...]:
        outcome = compare.test(a, b)
        if compare.combine is None:
            return outcome, ~outcome
        return compare.combine(outcome, *c), compare.combine(~outcome, *c)

    if isinstance(instruction.operands[0], Pair):
        return Rule(compare.sources, ("pred", "pred"), both)
    return Rule(compare.sources, ("pred",), compare)


def _set(instruction: Instruction) -> Rule:
    result = instruction.types[0]
    compare = _compare(instruction)
    single = result.removesuffix("x2")
    true: Any
    if single in _ONE:
        true, result = np.uint16(_ONE[single]), "b32" if compare.packed else "b16"
    elif result == "f32":
        true = np.float32(1)
    elif compare.packed:
        true, result = np.uint16(0xFFFF), "b32"
    else:
        true = ~DTYPES[result].type(0)
    false = true.dtype.type(0)

    def choose(*sources: Array) -> Array:
        if not compare.packed:
            choice: Array = np.where(compare(*sources), true, false)
            return choice
        low, high = (np.where(outcome, true, false) for outcome in compare.halves(*sources))
        both: Array = low | high.astype(np.uint32) << np.uint32(16)
        return both

    return Rule(compare.sources, (result,), choose)


def _selp(instruction: Instruction) -> Rule:
    kind = instruction.type
    return Rule((kind, kind, "pred"), (kind,), lambda a, b, p: select(p, a, b))


def _slct(instruction: Instruction) -> Rule:
    kind, condition = instruction.types[0], instruction.types[1]
    storage, number = _reading(condition, "ftz" in instruction.modifiers)

    def choose(a: Array, b: Array, c: Array) -> Array:
        return select((number(c) if number else c) >= 0, a, b)

    return Rule((kind, kind, storage), (kind,), choose)


FAMILY = Family(
    "comparison and selection", {"setp": _setp, "set": _set, "selp": _selp, "slct": _slct}
)
