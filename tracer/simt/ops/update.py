"""Arithmetic of atomic operations on a word of memory (PTX ISA 9.7.13.5).

Each is a function of the old word and the operands b and d, all of one type. As on the hardware,
f32 sums in global memory flush subnormal numbers to zero, those in shared memory do not; f64 sums
in global memory keep a NaN unchanged, those in shared memory make it quiet.
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ....jit.numpy_tracer import write
from ....jit.ufunc_codegen import DECLARED
from . import extreme, half
from .format import canonical, flush, quiet_nan
from .lanes import DTYPES, Array
from .packed import on_halves

_INTEGER: Mapping[str, Callable[[Array, Array, Array], Array]] = {
    "add": lambda old, b, d: old + b,
    "and": lambda old, b, d: old & b,
    "or": lambda old, b, d: old | b,
    "xor": lambda old, b, d: old ^ b,
    "exch": lambda old, b, d: b,
    "cas": lambda old, b, d: np.where(old == b, d, old),
    "inc": lambda old, b, d: np.where(old >= b, old.dtype.type(0), old + 1),
    "dec": lambda old, b, d: np.where((old == 0) | (old > b), b, old - 1),
    "min": lambda old, b, d: np.minimum(old, b),
    "max": lambda old, b, d: np.maximum(old, b),
}
OPERATIONS = frozenset(_INTEGER)


def fetch_operation(operation: str, kind: str) -> str:
    """Return LLVM's atomic operation; empty unless a sum of updates has no order."""
    if kind[0] not in "bus" or kind[1:] not in ("32", "64"):
        return ""
    if operation in ("min", "max"):
        return operation if kind[0] == "s" else f"u{operation}"
    return operation if operation in ("add", "and", "or", "xor") else ""


_OF_128_BITS: Mapping[str, str] = {
    "exch": "%new = or i128 %b, 0",
    "cas": "%same = icmp eq i128 %old, %b\n  %new = select i1 %same, i128 %d, i128 %old",
}
"""Operations in assembly, because NumPy has no 128-bit integers."""


@cache
def update(operation: str, kind: str, in_global: bool) -> tuple[str, str, str] | None:
    """Return the integer type, LLVM assembly that computes %new from %old and the operands %b and
    %d, and definitions; None if PTX has no such operation."""
    if kind == "b128":
        return ("i128", _OF_128_BITS[operation], "") if operation in _OF_128_BITS else None
    compute = _computing(operation, kind, in_global)
    if compute is None:
        return None
    is_integer = kind[0] in "bus" and kind[1:].isdigit()
    bits = 8 * DTYPES[kind].itemsize
    dtype = DTYPES[kind] if is_integer else np.dtype(f"u{bits // 8}")
    argument_types = dict.fromkeys(("%old", "%b", "%d"), dtype)
    return f"i{bits}", write(compute, argument_types, {"%new": f"u{bits // 8}"}), DECLARED


def _computing(operation: str, kind: str, in_global: bool) -> Callable[..., Array] | None:
    if kind[0] in "bus" and kind[1:].isdigit():
        return _INTEGER.get(operation)
    if operation == "add" and kind in ("f32", "f64"):
        if kind == "f32":
            return _flushed_sum if in_global else _sum
        return _double_sum if in_global else _software_double_sum
    single = kind.removesuffix("x2")
    if single not in ("f16", "bf16") or operation not in ("add", "min", "max"):
        return None
    is_sum = operation == "add"
    one = half.element("add", single) if is_sum else extreme.element(single, operation == "min")
    whole = one if single == kind else on_halves(one)
    return lambda old, b, d: whole(old, b)


def _sum(old: Array, b: Array, d: Array) -> Array:
    return canonical(old.view(np.float32) + b.view(np.float32)).view(np.uint32)


def _flushed_sum(old: Array, b: Array, d: Array) -> Array:
    one, other = flush(old.view(np.float32)), flush(b.view(np.float32))
    return flush(canonical(one + other)).view(np.uint32)


def _double_sum(old: Array, b: Array, d: Array) -> Array:
    one, other = old.view(np.float64), b.view(np.float64)
    total = np.where(np.isnan(one), old, (one + other).view(np.uint64))
    return np.where(np.isnan(other), b, total)


def _software_double_sum(old: Array, b: Array, d: Array) -> Array:
    sources = b.view(np.float64), old.view(np.float64)
    return quiet_nan(sources[0] + sources[1], sources).view(np.uint64)
