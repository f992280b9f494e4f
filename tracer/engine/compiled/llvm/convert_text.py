"""Comparison, selection and conversion as text for one lane; see op/compare.py, op/convert.py."""

from collections.abc import Mapping

import numpy as np

from ....ptx.kernel import Instruction, Pair
from ...lanes import DTYPES
from ...op.bits import INTEGERS
from ...op.formula import literal
from .integer_text import Emitter
from .lane_text import Lane, llvm_type, width

_REAL = {"f32": "float", "f64": "double"}
_TINY = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
HALVES = ("f16", "bf16")
"""What is compared as f32."""
_FLOAT = {
    **{"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"},
    **{"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"},
    **{"num": "ord", "nan": "uno"},
}
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_COMBINE = ("and", "or", "xor")


def _flushed(lane: Lane, kind: str, value: str) -> str:
    """Return +0 for a number that is subnormal in its type, else the value (f32, f64)."""
    number = "f32" if kind in HALVES else kind
    real = _REAL[number]
    size = lane.emit(f"call {real} @llvm.fabs.{number}({real} {value})")
    tiny = lane.emit(f"fcmp olt {real} {size}, {literal(_TINY[kind])}")
    return lane.emit(f"select i1 {tiny}, {real} 0.0, {real} {value}")


def _outcome(lane: Lane, instruction: Instruction, a: str, b: str) -> str | None:
    kind, operator = instruction.type, instruction.modifiers[0]
    if kind in _TINY:
        if "ftz" in instruction.modifiers:
            a, b = _flushed(lane, kind, a), _flushed(lane, kind, b)
        if operator not in _FLOAT:
            return None
        return lane.emit(f"fcmp {_FLOAT[operator]} {_REAL.get(kind, 'float')} {a}, {b}")
    if kind not in INTEGERS:
        return None
    sign = "s" if kind[0] == "s" else "u"
    relation = _UNSIGNED.get(operator, operator if operator in ("eq", "ne") else sign + operator)
    return lane.emit(f"icmp {relation} i{width(kind)} {a}, {b}")


def _combined(lane: Lane, instruction: Instruction, outcome: str, c: list[str]) -> str:
    word = next((m for m in instruction.modifiers if m in _COMBINE), None)
    return lane.emit(f"{word} i1 {outcome}, {c[0]}") if word and c else outcome


def _set_predicate(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    a, b, *c = given
    outcome = _outcome(lane, instruction, a, b)
    if outcome is None:
        return None
    results = [_combined(lane, instruction, outcome, c)]
    if isinstance(instruction.operands[0], Pair):
        opposite = lane.emit(f"xor i1 {outcome}, true")
        results.append(_combined(lane, instruction, opposite, c))
    return results


def _set(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    a, b, *c = given
    kind = instruction.types[0]
    outcome = _outcome(lane, instruction, a, b)
    if outcome is None or kind not in ("u32", "s32", "f32"):
        return None
    chosen = _combined(lane, instruction, outcome, c)
    if kind == "f32":
        return [lane.emit(f"uitofp i1 {chosen} to float")]
    return [lane.emit(f"sext i1 {chosen} to i32")]


def _select(lane: Lane, instruction: Instruction, given: list[str]) -> list[str]:
    kind = llvm_type(instruction.type)
    return [lane.emit(f"select i1 {given[2]}, {kind} {given[0]}, {kind} {given[1]}")]


def _select_by_sign(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    a, b, c = given
    to, condition = instruction.types
    if condition == "f32":
        if "ftz" in instruction.modifiers:
            c = _flushed(lane, "f32", c)
        positive = lane.emit(f"fcmp oge float {c}, 0.0")
    elif condition == "s32":
        positive = lane.emit(f"icmp sge i32 {c}, 0")
    else:
        return None
    kind = llvm_type(to)
    return [lane.emit(f"select i1 {positive}, {kind} {a}, {kind} {b}")]


def _convert(lane: Lane, instruction: Instruction, given: list[str]) -> list[str] | None:
    types, modifiers = instruction.types, instruction.modifiers
    if len(types) != 2 or {"sat", "pack", "rs", "relu", "satfinite"} & set(modifiers):
        return None
    to, source = types
    is_whole = [kind[0] in "bus" and kind[1:].isdigit() for kind in types]
    if all(is_whole):
        return [_resize(lane, given[0], source, to)]
    if is_whole[1] and to in _REAL and not {"rz", "rm", "rp"} & set(modifiers):
        sign = "s" if source[0] == "s" else "u"
        return [lane.emit(f"{sign}itofp i{width(source)} {given[0]} to {_REAL[to]}")]
    if is_whole[0] and source in _REAL:
        return [_to_whole(lane, instruction, to, source, given[0])]
    return None


def _resize(lane: Lane, value: str, source: str, to: str) -> str:
    have, wanted = width(source), width(to)
    if have == wanted:
        return value
    grow = "sext" if source[0] == "s" else "zext"
    word = grow if wanted > have else "trunc"
    return lane.emit(f"{word} i{have} {value} to i{wanted}")


_WHOLE = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def _to_whole(lane: Lane, instruction: Instruction, to: str, source: str, bits: str) -> str:
    """Round a number to an integer, clamped; NaN gives 0, or the lowest or highest bit alone."""
    value = lane.bitcast(bits, f"i{width(source)}", _REAL[source])
    if "ftz" in instruction.modifiers:
        zero = lane.emit(f"call float @llvm.copysign.f32(float 0.0, float {value})")
        size = lane.emit(f"call float @llvm.fabs.f32(float {value})")
        tiny = lane.emit(f"fcmp olt float {size}, {literal(_TINY['f32'])}")
        value = lane.emit(f"select i1 {tiny}, float {zero}, float {value}")
    if source == "f32":
        value = lane.emit(f"fpext float {value} to double")
    name = next((_WHOLE[m] for m in instruction.modifiers if m in _WHOLE), "trunc")
    whole = lane.emit(f"call double @llvm.{name}.f64(double {value})")
    info = np.iinfo(DTYPES[to])
    below = literal(float(info.max) + (info.bits != 64))
    above = lane.emit(f"fcmp oge double {whole}, {literal(float(info.min))}")
    under = lane.emit(f"fcmp olt double {whole}, {below}")
    inside = lane.emit(f"and i1 {above}, {under}")
    safe = lane.emit(f"select i1 {inside}, double {whole}, double 0.0")
    kind, sign = f"i{info.bits}", "s" if to[0] == "s" else "u"
    number = lane.emit(f"fpto{sign}i double {safe} to {kind}")
    positive = lane.emit(f"fcmp ogt double {whole}, 0.0")
    beyond = lane.emit(f"select i1 {positive}, {kind} {info.max}, {kind} {info.min}")
    highest = 1 << info.bits - 1
    of_nan = highest if source == "f64" or info.bits == 64 else 0
    nan = lane.emit(f"fcmp uno double {whole}, {whole}")
    beyond = lane.emit(f"select i1 {nan}, {kind} {of_nan}, {kind} {beyond}")
    return lane.emit(f"select i1 {inside}, {kind} {number}, {kind} {beyond}")


NUMBER: Mapping[str, Emitter] = {
    "setp": _set_predicate,
    "set": _set,
    "selp": _select,
    "slct": _select_by_sign,
    "cvt": _convert,
}
"""By opcode."""
