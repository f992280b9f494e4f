"""Trace a NumPy function for one element, and emit it as LLVM assembly.

The function is called with `Traced` values, each of one element: every NumPy operation on them
emits a statement with NumPy's own types. So a computation is described once; LLVM makes the same
code of it as of assembly written by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from .ufunc import Fragment, elementwise, fragment_of
from .ufunc_codegen import (
    BOOL,
    DECLARED,
    STATEMENTS,
    Lines,
    UntracedError,
    Writer,
    conversion,
    literal,
    llvm,
)

CallFragment: TypeAlias = Callable[[Fragment, list[str]], str]
"""Emits the call of a fragment with these values; returns the name of the result."""


def _no_call(fragment: Fragment, arguments: list[str]) -> str:
    raise UntracedError


def trace(
    writer: Writer,
    compute: Callable[..., Any],
    arguments: Sequence[str | NDArray[Any]],
    types: tuple[Sequence[np.dtype[Any]], Sequence[np.dtype[Any]]],
    call: CallFragment = _no_call,
) -> list[str] | None:
    """Return the results of `compute` for values and constants of the types `types[0]`, as values
    of the types `types[1]`; None if it cannot be traced."""
    values = [
        Traced(writer, call, dtype, value) if isinstance(value, str) else value
        for value, dtype in zip(arguments, types[0], strict=True)
    ]
    try:
        outcome = compute(*values)
        results = outcome if isinstance(outcome, tuple) else (outcome,)
        return [_as(result, dtype) for result, dtype in zip(results, types[1], strict=True)]
    except UntracedError:
        return None


def write(
    function: Callable[..., Any],
    parameters: Mapping[str, np.dtype[Any]],
    results: Mapping[str, str],
) -> str:
    """Return statements that compute a function of named values, and name the results.

    `results` are their names and NumPy types: `{"%new": "u4"}`.
    """
    lines = Lines()
    types = [np.dtype(code) for code in results.values()]
    texts = trace(lines, function, [*parameters], ([*parameters.values()], types))
    if texts is None:
        raise UntracedError(function)
    named = zip(results, types, texts, strict=True)
    last = (f"{name} = bitcast {llvm(t)} {value} to {llvm(t)}" for name, t, value in named)
    return "\n  ".join((*lines.lines, *last))


def elementwise_of(
    name: str,
    function: Callable[..., Any],
    sources: Sequence[str],
    result: str,
    declarations: str = "",
    rounding: int = 1,
) -> Callable[..., Any]:
    """Return a function of NumPy arrays compiled to one pass over the elements.

    `sources` and `result` are NumPy types, `u4`, `f8`; the other parameters are those of
    `ufunc.elementwise`.
    """
    parameters = {f"%x{k}": np.dtype(code) for k, code in enumerate(sources)}
    body = write(function, parameters, {"%y0": result})
    return elementwise(name, sources, (result,), body, DECLARED + declarations, rounding)


def statement(text: str, dtype: str, *values: Any) -> Any:
    """Emit a statement of LLVM with `{}` for each value, and return its result. It serves
    operations that NumPy lacks; plain numbers become literals."""
    (first, *_) = (value for value in values if isinstance(value, Traced))
    texts = (value.text if isinstance(value, Traced) else literal(value) for value in values)
    return first.result(np.dtype(dtype), text.format(*texts))


def _as(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a result with the bits of `dtype`."""
    if not isinstance(value, Traced):
        return _constant(np.asarray(value), dtype)
    if value.dtype.itemsize != dtype.itemsize:
        raise UntracedError
    return value.view(dtype).text


def _constant(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a number, or the only element of an array, as a literal of LLVM."""
    return _whole(value, dtype) if type(value) is int else _number(value, dtype)


@cache
def _whole(value: int, dtype: np.dtype[Any]) -> str:
    return _number(value, dtype)


def _number(value: Any, dtype: np.dtype[Any]) -> str:
    array: Any = np.asarray(value)
    if array.size != 1:
        raise UntracedError
    array = array.astype(dtype).reshape(())
    if dtype == BOOL:
        return "true" if array else "false"
    if llvm(dtype) in ("float", "double"):
        return literal(float(array))
    return str(int(array.view(f"u{dtype.itemsize}")))


def _dtype_of(value: Any) -> Any:
    """Return the type of an operand for NumPy's type resolution; `int` for a plain number."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return type(value)
    return value.dtype


@cache
def _types(ufunc: Any, kinds: tuple[Any, ...], result_type: Any) -> tuple[np.dtype[Any], ...]:
    """Return the types of NumPy's loop for these operands; all its results have type `result_type`
    if given."""
    signature = (
        {} if result_type is None else {"signature": (*[None] * ufunc.nin, np.dtype(result_type))}
    )
    types: tuple[np.dtype[Any], ...] = ufunc.resolve_dtypes(
        (*kinds, *[None] * ufunc.nout), **signature
    )
    return types


class Traced(NDArrayOperatorsMixin):
    """One element of `dtype` with the value named `text`."""

    shape = (1, 1)
    ndim = 2

    def __init__(self, writer: Writer, call: CallFragment, dtype: np.dtype[Any], text: str) -> None:
        self.dtype = dtype
        self.text = text
        self._writer = writer
        self._call = call

    def __bool__(self) -> bool:
        raise UntracedError

    def copy(self) -> "Traced":
        """Return the same object: statements never change a value."""
        return self

    def view(self, kind: Any) -> "Traced":
        """Return the same bits as another type of this size."""
        dtype = np.dtype(kind)
        if dtype.itemsize != self.dtype.itemsize:
            raise UntracedError
        have, target_type = llvm(self.dtype), llvm(dtype)
        if "i1" in (have, target_type) and have != target_type:
            raise UntracedError
        return self._result(dtype, self._writer.bitcast(self.text, have, target_type))

    def astype(self, kind: Any) -> "Traced":
        """Return the value converted to a type."""
        dtype = np.dtype(kind)
        if dtype == self.dtype:
            return self
        have, target_type = llvm(self.dtype), llvm(dtype)
        if dtype == BOOL:
            return self._is_not_zero()
        if any(kind.kind == "f" and kind.itemsize == 2 for kind in (dtype, self.dtype)):
            raise UntracedError
        word = conversion(self.dtype, dtype)
        if not word:
            return self._result(dtype, self.text)
        text = self._writer.emit(f"{word} {have} {self.text} to {target_type}")
        if word in ("fptosi", "fptoui"):  # of a NaN the result is poison otherwise
            text = self._writer.emit(f"freeze {target_type} {text}")
        return self._result(dtype, text)

    def _is_not_zero(self) -> "Traced":
        kind = llvm(self.dtype)
        test, zero = ("fcmp une", "0.0") if self.dtype.kind == "f" else ("icmp ne", "0")
        return self._result(BOOL, self._writer.emit(f"{test} {kind} {self.text}, {zero}"))

    def result(self, dtype: np.dtype[Any], statement: str) -> "Traced":
        """Emit a statement and return its value."""
        return self._result(dtype, self._writer.emit(statement))

    def _result(self, dtype: np.dtype[Any], text: str) -> "Traced":
        return Traced(self._writer, self._call, dtype, text)

    def _text_of(self, value: Any, dtype: np.dtype[Any]) -> str:
        """Return an operand as this type."""
        return value.astype(dtype).text if isinstance(value, Traced) else _constant(value, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Emit a universal function."""
        out = options.pop("out", ())
        result = self._loop(ufunc, method, inputs, options)
        return result.astype(out[0].dtype) if out else result

    def _loop(
        self, ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> "Traced":
        fragment = fragment_of(ufunc)
        result_type = options.pop("dtype", None)
        if method != "__call__" or options:
            raise UntracedError
        if fragment is not None:
            return self._called(fragment, inputs)
        types = _types(ufunc, tuple(map(_dtype_of, inputs)), result_type)
        emit = STATEMENTS.get(ufunc.__name__)
        if emit is None or len(types) != len(inputs) + 1:
            raise UntracedError
        values = [self._text_of(v, t) for v, t in zip(inputs, types, strict=False)]
        return self._result(types[-1], emit(self._writer, types[0], values))

    def _called(self, fragment: Fragment, inputs: tuple[Any, ...]) -> "Traced":
        if len(fragment.results) != 1:
            raise UntracedError
        types = [np.dtype(code) for code in fragment.sources]
        arguments = [self._text_of(v, t) for v, t in zip(inputs, types, strict=True)]
        texts = [
            self._writer.emit(f"zext i1 {text} to i8") if dtype == BOOL else text
            for text, dtype in zip(arguments, types, strict=True)
        ]
        return self._result(np.dtype(fragment.results[0]), self._call(fragment, texts))

    def __array_function__(
        self, function: Any, types: Any, inputs: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Emit another NumPy function."""
        if options or function not in _FUNCTIONS:
            raise UntracedError
        return _FUNCTIONS[function](self, *inputs)

    def where(self, condition: Any, a: Any, b: Any) -> "Traced":
        """Return a where the condition holds, else b."""
        dtype = np.result_type(*(v.dtype if isinstance(v, Traced) else v for v in (a, b)))
        kind, flag = llvm(dtype), self._text_of(condition, BOOL)
        operands = ", ".join(f"{kind} {self._text_of(value, dtype)}" for value in (a, b))
        return self._result(dtype, self._writer.emit(f"select i1 {flag}, {operands}"))

    def clip(self, value: Any, low: Any, high: Any) -> "Traced":
        """Return an integer clamped to limits."""
        clipped: Traced = np.minimum(np.maximum(value, low), high)
        return clipped


_FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.where: Traced.where,
    np.clip: Traced.clip,
    np.broadcast_to: lambda self, value, shape: value,
}
