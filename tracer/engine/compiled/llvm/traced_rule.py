"""What a rule computes with NumPy, as text for one lane.

A rule's function is called with values that stand for one element each: whatever NumPy would do to
an array of such elements they write down as a statement, with NumPy's own types. So an instruction
is described once, in op/; LLVM makes the same code of this as of a text written by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .....native.ufunc import Fragment, fragment_of
from ...lanes import DTYPES, Array
from ...op.formula import literal
from .lane_text import Lane

CallFragment = Callable[[Fragment, list[str]], str]
"""Writes the call of a fragment with these values; returns the name of what it gives."""

_BOOL = np.dtype(np.bool_)


class UntracedError(Exception):
    """A rule does something that has no statement here, such as to look at a value."""


def trace(
    lane: Lane,
    call: CallFragment,
    compute: Callable[..., Any],
    given: Sequence[str | Array],
    kinds: tuple[tuple[str, ...], tuple[str, ...]],
) -> list[str] | None:
    """Return what `compute` makes of values and constants of the PTX types `kinds[0]`, as values of
    the types `kinds[1]`; None where it cannot be written down."""
    values = [
        Traced(lane, call, DTYPES[kind], value) if isinstance(value, str) else value
        for value, kind in zip(given, kinds[0], strict=True)
    ]
    try:
        found = compute(*values)
        results = found if isinstance(found, tuple) else (found,)
        return [
            _as(lane, call, result, DTYPES[kind])
            for result, kind in zip(results, kinds[1], strict=True)
        ]
    except UntracedError:
        return None


def _as(lane: Lane, call: CallFragment, value: Any, dtype: np.dtype[Any]) -> str:
    """Return a result with the bits of `dtype`, as the array engine puts it into a register."""
    if not isinstance(value, Traced):
        return _constant(np.asarray(value), dtype)
    if value.dtype.itemsize != dtype.itemsize:
        raise UntracedError
    return value.view(dtype).text


def llvm(dtype: np.dtype[Any]) -> str:
    """Return LLVM's type of a NumPy type; half precision travels as bits."""
    if dtype == _BOOL:
        return "i1"
    if dtype.itemsize > 8:
        raise UntracedError
    real = {4: "float", 8: "double"}.get(dtype.itemsize) if dtype.kind == "f" else None
    return real or f"i{8 * dtype.itemsize}"


def _constant(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a number, or the only element of an array, as a literal of LLVM."""
    array: Any = np.asarray(value)
    if array.size != 1:
        raise UntracedError
    array = array.astype(dtype).reshape(())
    if dtype == _BOOL:
        return "true" if array else "false"
    if llvm(dtype) in ("float", "double"):
        return literal(float(array))
    return str(int(array.view(f"u{dtype.itemsize}")))


def _dtype_of(value: Any) -> Any:
    """Return what NumPy asks of an operand to find its loop: a type, `int` for a plain number."""
    if isinstance(value, (bool, np.bool_)):
        return _BOOL
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return type(value)
    return value.dtype


@cache
def _types(ufunc: Any, kinds: tuple[Any, ...], wanted: Any) -> tuple[np.dtype[Any], ...]:
    """Return the types of NumPy's loop for operands of these, all its results of a `wanted` one."""
    chosen = {} if wanted is None else {"signature": (*[None] * ufunc.nin, np.dtype(wanted))}
    types: tuple[np.dtype[Any], ...] = ufunc.resolve_dtypes(
        (*kinds, *[None] * ufunc.nout), **chosen
    )
    return types


class Traced(NDArrayOperatorsMixin):
    """One element of `dtype`, whose value is called `text`."""

    shape = (1, 1)
    ndim = 2

    def __init__(self, lane: Lane, call: CallFragment, dtype: np.dtype[Any], text: str) -> None:
        self.dtype = dtype
        self.text = text
        self._lane = lane
        self._call = call

    def __bool__(self) -> bool:
        raise UntracedError

    def copy(self) -> "Traced":
        """Return it as it is: statements never change a value."""
        return self

    def view(self, kind: Any) -> "Traced":
        """Return the same bits as another type of this size."""
        dtype = np.dtype(kind)
        if dtype.itemsize != self.dtype.itemsize:
            raise UntracedError
        have, wanted = llvm(self.dtype), llvm(dtype)
        if "i1" in (have, wanted) and have != wanted:
            raise UntracedError
        return self._made(dtype, self._lane.bitcast(self.text, have, wanted))

    def astype(self, kind: Any) -> "Traced":
        """Return it converted."""
        dtype = np.dtype(kind)
        if dtype == self.dtype:
            return self
        have, wanted = llvm(self.dtype), llvm(dtype)
        if dtype == _BOOL:
            return self._is_not_zero()
        if any(kind.kind == "f" and kind.itemsize == 2 for kind in (dtype, self.dtype)):
            raise UntracedError
        word = _conversion(self.dtype, dtype)
        if not word:
            return self._made(dtype, self.text)
        return self._made(dtype, self._lane.emit(f"{word} {have} {self.text} to {wanted}"))

    def _is_not_zero(self) -> "Traced":
        kind = llvm(self.dtype)
        test, zero = ("fcmp une", "0.0") if self.dtype.kind == "f" else ("icmp ne", "0")
        return self._made(_BOOL, self._lane.emit(f"{test} {kind} {self.text}, {zero}"))

    def _made(self, dtype: np.dtype[Any], text: str) -> "Traced":
        return Traced(self._lane, self._call, dtype, text)

    def _text_of(self, value: Any, dtype: np.dtype[Any]) -> str:
        """Return any operand as this type."""
        return value.astype(dtype).text if isinstance(value, Traced) else _constant(value, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Write down what a universal function does."""
        out = options.pop("out", ())
        result = self._loop(ufunc, method, inputs, options)
        return result.astype(out[0].dtype) if out else result

    def _loop(
        self, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> "Traced":
        fragment = fragment_of(ufunc)
        wanted = options.pop("dtype", None)
        if method != "__call__" or options:
            raise UntracedError
        if fragment is not None:
            return self._called(fragment, inputs)
        types = _types(ufunc, tuple(map(_dtype_of, inputs)), wanted)
        emit = _STATEMENTS.get(ufunc.__name__)
        if emit is None or len(types) != len(inputs) + 1:
            raise UntracedError
        values = [self._text_of(v, t) for v, t in zip(inputs, types, strict=False)]
        return self._made(types[-1], emit(self._lane, types[0], values))

    def _called(self, fragment: Fragment, inputs: tuple[Any, ...]) -> "Traced":
        if len(fragment.results) != 1:
            raise UntracedError
        types = [np.dtype(code) for code in fragment.sources]
        given = [self._text_of(v, t) for v, t in zip(inputs, types, strict=True)]
        texts = [
            self._lane.emit(f"zext i1 {text} to i8") if dtype == _BOOL else text
            for text, dtype in zip(given, types, strict=True)
        ]
        return self._made(np.dtype(fragment.results[0]), self._call(fragment, texts))

    def __array_function__(
        self, function: Any, types: Any, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Write down what one of NumPy's other functions does."""
        if options or function not in _FUNCTIONS:
            raise UntracedError
        return _FUNCTIONS[function](self, *inputs)

    def where(self, condition: Any, a: Any, b: Any) -> "Traced":
        """Return a where the condition holds, else b."""
        dtype = np.result_type(*(v.dtype if isinstance(v, Traced) else v for v in (a, b)))
        kind, chosen = llvm(dtype), self._text_of(condition, _BOOL)
        given = ", ".join(f"{kind} {self._text_of(value, dtype)}" for value in (a, b))
        return self._made(dtype, self._lane.emit(f"select i1 {chosen}, {given}"))

    def clip(self, value: Any, low: Any, high: Any) -> "Traced":
        """Return an integer within limits."""
        clipped: Traced = np.minimum(np.maximum(value, low), high)
        return clipped


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.where: Traced.where,
    np.clip: Traced.clip,
    np.broadcast_to: lambda self, value, shape: value,
}


def _conversion(have: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """Return LLVM's word for a conversion, "" where the bits stay as they are."""
    signed = "s" if have.kind == "i" else "u"
    match have.kind == "f", wanted.kind == "f":
        case True, True:
            return "fpext" if wanted.itemsize > have.itemsize else "fptrunc"
        case False, True:
            return f"{signed}itofp"
        case True, False:
            return "fptosi" if wanted.kind == "i" else "fptoui"
    if have != _BOOL and have.itemsize == wanted.itemsize:
        return ""
    if wanted.itemsize < have.itemsize:
        return "trunc"
    return "sext" if have.kind == "i" else "zext"


_Emit = Callable[[Lane, np.dtype[Any], list[str]], str]
"""Adds the statement of a universal function: the type of its first source, and its sources."""


def _plain(whole: str, real: str = "") -> _Emit:
    def emit(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
        word = real if dtype.kind == "f" else whole
        is_half = dtype.kind == "f" and dtype.itemsize == 2
        if not word or is_half or (dtype == _BOOL and real):  # a sum of booleans is no `add`
            raise UntracedError
        return lane.emit(f"{word} {llvm(dtype)} {', '.join(given)}")

    return emit


def _relation(whole: str, real: str) -> _Emit:
    def emit(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
        if dtype.kind == "f":
            test = f"fcmp {real}"
        elif whole in ("eq", "ne"):
            test = f"icmp {whole}"
        else:
            test = f"icmp {'s' if dtype.kind == 'i' else 'u'}{whole}"
        return lane.emit(f"{test} {llvm(dtype)} {', '.join(given)}")

    return emit


def _extreme(order: str) -> _Emit:
    def emit(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
        if dtype.kind not in "iu":
            raise UntracedError
        first = _relation(order, "")(lane, dtype, given)
        kind = llvm(dtype)
        return lane.emit(f"select i1 {first}, {kind} {given[0]}, {kind} {given[1]}")

    return emit


def _shift(is_left: bool) -> _Emit:
    """By the width or more nothing is left but the sign."""

    def emit(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
        kind, bits = llvm(dtype), 8 * dtype.itemsize
        signed = not is_left and dtype.kind == "i"
        word = "shl" if is_left else "ashr" if signed else "lshr"
        near = lane.emit(f"icmp ult {kind} {given[1]}, {bits}")
        count = lane.emit(f"select i1 {near}, {kind} {given[1]}, {kind} {bits - 1}")
        moved = lane.emit(f"{word} {kind} {given[0]}, {count}")
        return moved if signed else lane.emit(f"select i1 {near}, {kind} {moved}, {kind} 0")

    return emit


def _invert(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
    return lane.emit(f"xor {llvm(dtype)} {given[0]}, {'true' if dtype == _BOOL else -1}")


def _negative(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
    if dtype.kind == "f":
        return _plain("", "fneg")(lane, dtype, given)
    return lane.emit(f"sub {llvm(dtype)} 0, {given[0]}")


def _absolute(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
    if dtype.kind == "f":
        return _intrinsic("fabs")(lane, dtype, given)
    if dtype.kind == "u":
        return given[0]
    kind = llvm(dtype)
    below = lane.emit(f"icmp slt {kind} {given[0]}, 0")
    return lane.emit(
        f"select i1 {below}, {kind} {_negative(lane, dtype, given)}, {kind} {given[0]}"
    )


def _intrinsic(name: str) -> _Emit:
    def emit(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
        kind = llvm(dtype)
        if kind not in ("float", "double"):
            raise UntracedError
        return lane.emit(f"call {kind} @llvm.{name}.f{8 * dtype.itemsize}({kind} {given[0]})")

    return emit


def _size(relation: str, bound: str) -> _Emit:
    """Compare the size of a number with infinity."""

    def emit(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
        size = _absolute(lane, dtype, given)
        return lane.emit(f"fcmp {relation} {llvm(dtype)} {size}, {bound}")

    return emit


def _ones(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
    kind = llvm(dtype)
    value = _absolute(lane, dtype, given)
    counted = lane.emit(f"call {kind} @llvm.ctpop.{kind}({kind} {value})")
    return counted if kind == "i8" else lane.emit(f"trunc {kind} {counted} to i8")


def _logical(word: str) -> _Emit:
    def emit(lane: Lane, dtype: np.dtype[Any], given: list[str]) -> str:
        if dtype != _BOOL:
            raise UntracedError
        return lane.emit(f"{word} i1 {', '.join(given)}")

    return emit


_INFINITY = literal(float("inf"))
_STATEMENTS: Mapping[str, _Emit] = {
    "add": _plain("add", "fadd"),
    "subtract": _plain("sub", "fsub"),
    "multiply": _plain("mul", "fmul"),
    "bitwise_and": _plain("and"),
    "bitwise_or": _plain("or"),
    "bitwise_xor": _plain("xor"),
    "logical_and": _logical("and"),
    "logical_or": _logical("or"),
    "logical_xor": _logical("xor"),
    "logical_not": lambda lane, dtype, given: _logical("xor")(lane, dtype, [*given, "true"]),
    "invert": _invert,
    "left_shift": _shift(is_left=True),
    "right_shift": _shift(is_left=False),
    "equal": _relation("eq", "oeq"),
    "not_equal": _relation("ne", "une"),
    "less": _relation("lt", "olt"),
    "less_equal": _relation("le", "ole"),
    "greater": _relation("gt", "ogt"),
    "greater_equal": _relation("ge", "oge"),
    "minimum": _extreme("lt"),
    "maximum": _extreme("gt"),
    "negative": _negative,
    "absolute": _absolute,
    "rint": _intrinsic("rint"),
    "trunc": _intrinsic("trunc"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "isfinite": _size("olt", _INFINITY),
    "isinf": _size("oeq", _INFINITY),
    "isnan": _size("uno", "0.0"),
    "bitwise_count": _ones,
}
"""By the name of the universal function."""
