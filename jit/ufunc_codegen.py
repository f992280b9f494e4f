"""Codegen of NumPy's universal functions for one element: a table of the statements of each."""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol

import numpy as np

BOOL = np.dtype(np.bool_)


class Writer(Protocol):
    """The interface that takes statements."""

    def emit(self, statement: str) -> str:
        """Add a statement; return the name of its value."""

    def bitcast(self, value: str, source: str, to: str) -> str:
        """Return a value as another type of the same size."""


class Lines:
    """The statements of a separate function."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def emit(self, statement: str) -> str:
        """Add a statement; return the name of its value."""
        name = f"%e{len(self.lines)}"
        self.lines.append(f"{name} = {statement}")
        return name

    def bitcast(self, value: str, source: str, to: str) -> str:
        """Return a value as another type of the same size."""
        return value if source == to else self.emit(f"bitcast {source} {value} to {to}")


def _intrinsics() -> list[str]:
    lines = [f"declare i{bits} @llvm.ctpop.i{bits}(i{bits})" for bits in (8, 16, 32, 64)]
    lines.append("declare i64 @llvm.ctlz.i64(i64, i1)")
    for kind, real in (("f32", "float"), ("f64", "double")):
        names = ("fabs", "sqrt", "rint", "trunc", "floor", "ceil")
        lines += [f"declare {real} @llvm.{name}.{kind}({real})" for name in names]
        lines.append(f"declare {real} @llvm.copysign.{kind}({real}, {real})")
    return lines


DECLARATIONS = _intrinsics()
"""Declarations of the functions that statements call."""
DECLARED = "".join(f"{line}\n" for line in DECLARATIONS)


class UntracedError(Exception):
    """A rule does something without a statement here, for example branch on a value."""


def literal(value: float) -> str:
    """Write a float64 as an exact literal of LLVM."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


@cache
def llvm(dtype: np.dtype[Any]) -> str:
    """Return LLVM's type of a NumPy type; half precision is integer bits."""
    if dtype == BOOL:
        return "i1"
    if dtype.itemsize > 8:
        raise UntracedError
    real = {4: "float", 8: "double"}.get(dtype.itemsize) if dtype.kind == "f" else None
    return real or f"i{8 * dtype.itemsize}"


def conversion(have: np.dtype[Any], target: np.dtype[Any]) -> str:
    """Return LLVM's conversion instruction, "" where the bits stay the same."""
    signed = "s" if have.kind == "i" else "u"
    match have.kind == "f", target.kind == "f":
        case True, True:
            return "fpext" if target.itemsize > have.itemsize else "fptrunc"
        case False, True:
            return f"{signed}itofp"
        case True, False:
            return "fptosi" if target.kind == "i" else "fptoui"
    if have != BOOL and have.itemsize == target.itemsize:
        return ""
    if target.itemsize < have.itemsize:
        return "trunc"
    return "sext" if have.kind == "i" else "zext"


_Emit = Callable[[Writer, np.dtype[Any], list[str]], str]
"""Emits a universal function, given the type of its first source and its sources."""


def _plain(whole: str, real: str = "") -> _Emit:
    def emit(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
        word = real if dtype.kind == "f" else whole
        is_half = dtype.kind == "f" and dtype.itemsize == 2
        if not word or is_half or (dtype == BOOL and real):  # a sum of booleans is no `add`
            raise UntracedError
        return writer.emit(f"{word} {llvm(dtype)} {', '.join(operands)}")

    return emit


def _relation(whole: str, real: str) -> _Emit:
    def emit(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
        if dtype.kind == "f":
            test = f"fcmp {real}"
        elif whole in ("eq", "ne"):
            test = f"icmp {whole}"
        else:
            test = f"icmp {'s' if dtype.kind == 'i' else 'u'}{whole}"
        return writer.emit(f"{test} {llvm(dtype)} {', '.join(operands)}")

    return emit


def _extreme(order: str) -> _Emit:
    def emit(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
        if dtype.kind not in "iu":
            raise UntracedError
        first = _relation(order, "")(writer, dtype, operands)
        kind = llvm(dtype)
        return writer.emit(f"select i1 {first}, {kind} {operands[0]}, {kind} {operands[1]}")

    return emit


def _shift(is_left: bool) -> _Emit:
    """Emit a shift; an amount of the width or more leaves only the sign."""

    def emit(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
        kind, bits = llvm(dtype), 8 * dtype.itemsize
        signed = not is_left and dtype.kind == "i"
        word = "shl" if is_left else "ashr" if signed else "lshr"
        near = writer.emit(f"icmp ult {kind} {operands[1]}, {bits}")
        count = writer.emit(f"select i1 {near}, {kind} {operands[1]}, {kind} {bits - 1}")
        moved = writer.emit(f"{word} {kind} {operands[0]}, {count}")
        return moved if signed else writer.emit(f"select i1 {near}, {kind} {moved}, {kind} 0")

    return emit


def _invert(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
    return writer.emit(f"xor {llvm(dtype)} {operands[0]}, {'true' if dtype == BOOL else -1}")


def _negative(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
    if dtype.kind == "f":
        return _plain("", "fneg")(writer, dtype, operands)
    return writer.emit(f"sub {llvm(dtype)} 0, {operands[0]}")


def _absolute(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
    if dtype.kind == "f":
        return _intrinsic("fabs")(writer, dtype, operands)
    if dtype.kind == "u":
        return operands[0]
    kind = llvm(dtype)
    below = writer.emit(f"icmp slt {kind} {operands[0]}, 0")
    return writer.emit(
        f"select i1 {below}, {kind} {_negative(writer, dtype, operands)}, {kind} {operands[0]}"
    )


def _intrinsic(name: str) -> _Emit:
    def emit(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
        kind = llvm(dtype)
        if kind not in ("float", "double"):
            raise UntracedError
        values = ", ".join(f"{kind} {value}" for value in operands)
        return writer.emit(f"call {kind} @llvm.{name}.f{8 * dtype.itemsize}({values})")

    return emit


def _size(relation: str, bound: str) -> _Emit:
    """Emit a comparison of the magnitude of a number with infinity."""

    def emit(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
        size = _absolute(writer, dtype, operands)
        return writer.emit(f"fcmp {relation} {llvm(dtype)} {size}, {bound}")

    return emit


def _ones(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
    kind = llvm(dtype)
    value = _absolute(writer, dtype, operands)
    counted = writer.emit(f"call {kind} @llvm.ctpop.{kind}({kind} {value})")
    return counted if kind == "i8" else writer.emit(f"trunc {kind} {counted} to i8")


def _logical(word: str) -> _Emit:
    def emit(writer: Writer, dtype: np.dtype[Any], operands: list[str]) -> str:
        if dtype != BOOL:
            raise UntracedError
        return writer.emit(f"{word} i1 {', '.join(operands)}")

    return emit


_INFINITY = literal(float("inf"))
STATEMENTS: Mapping[str, _Emit] = {
    "add": _plain("add", "fadd"),
    "subtract": _plain("sub", "fsub"),
    "divide": _plain("", "fdiv"),
    "multiply": _plain("mul", "fmul"),
    "bitwise_and": _plain("and"),
    "bitwise_or": _plain("or"),
    "bitwise_xor": _plain("xor"),
    "logical_and": _logical("and"),
    "logical_or": _logical("or"),
    "logical_xor": _logical("xor"),
    "logical_not": lambda writer, dtype, operands: _logical("xor")(
        writer, dtype, [*operands, "true"]
    ),
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
    "copysign": _intrinsic("copysign"),
    "sqrt": _intrinsic("sqrt"),
    "rint": _intrinsic("rint"),
    "trunc": _intrinsic("trunc"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "isfinite": _size("olt", _INFINITY),
    "isinf": _size("oeq", _INFINITY),
    "isnan": _size("uno", "0.0"),
    "bitwise_count": _ones,
}
"""The statements by the name of the universal function."""
