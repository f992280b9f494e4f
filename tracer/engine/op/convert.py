"""Conversion between types (PTX ISA 9.7.9.21, cvt)."""

from collections.abc import Callable, Mapping

import numpy as np

from ...ptx.kernel import Instruction
from ..array import DTYPES, Array
from .floating import _flush as flush
from .floating import saturate
from .rule import Rule, Table

_TO_WHOLE: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def _cvt(instruction: Instruction) -> Rule | None:
    if len(instruction.types) != 2 or {"rs", "rna"} & set(instruction.modifiers):
        return None
    to, source = instruction.types
    if {"f32", "f64", "f16"} >= {k for k in (to, source) if DTYPES[k].kind == "f"} and not (
        {to, source} & {"bf16", "tf32", "f16x2", "bf16x2"}
    ):
        return Rule((source,), (to,), _conversion(instruction, to, source))
    return None


def _conversion(instruction: Instruction, to: str, source: str) -> Callable[[Array], Array]:
    from_float, to_float = DTYPES[source].kind == "f", DTYPES[to].kind == "f"
    if from_float and to_float:
        return _float_to_float(instruction, to)
    if from_float:
        return _float_to_integer(instruction, to)
    if to_float:
        return lambda a: a.astype(DTYPES[to])
    return _integer_to_integer(instruction, to)


def _float_to_float(instruction: Instruction, to: str) -> Callable[[Array], Array]:
    whole = next((_TO_WHOLE[m] for m in instruction.modifiers if m in _TO_WHOLE), None)
    ftz, sat = "ftz" in instruction.modifiers, "sat" in instruction.modifiers

    def convert(a: Array) -> Array:
        value = flush(a) if ftz and a.dtype == np.float32 else a
        value = whole(value) if whole else value
        value = value.astype(DTYPES[to])
        value = flush(value) if ftz and to == "f32" else value
        return saturate(value) if sat else value

    return convert


def _float_to_integer(instruction: Instruction, to: str) -> Callable[[Array], Array]:
    whole = next(_TO_WHOLE[m] for m in instruction.modifiers if m in _TO_WHOLE)
    info = np.iinfo(DTYPES[to])
    ftz = "ftz" in instruction.modifiers

    def convert(a: Array) -> Array:
        value = whole((flush(a) if ftz else a).astype(np.float64))
        inside = (value >= info.min) & (value < float(info.max) + (to[-2:] != "64"))
        result = np.where(inside, value, 0.0).astype(DTYPES[to])
        beyond = np.where(value > 0, DTYPES[to].type(info.max), DTYPES[to].type(info.min))
        return np.where(inside | np.isnan(value), result, beyond)

    return convert


def _integer_to_integer(instruction: Instruction, to: str) -> Callable[[Array], Array]:
    info = np.iinfo(DTYPES[to])

    def clamp(a: Array) -> Array:
        limits = np.iinfo(a.dtype)
        low, high = max(info.min, limits.min), min(info.max, limits.max)
        return np.clip(a, a.dtype.type(low), a.dtype.type(high)).astype(DTYPES[to])

    if "sat" in instruction.modifiers:
        return clamp
    return lambda a: a.astype(DTYPES[to])


TABLE: Table = {"cvt": _cvt}
