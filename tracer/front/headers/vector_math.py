"""Arithmetic on CUDA's vector types, as programs expect it of a `helper_math.h` beside them.

The header belongs to NVIDIA's samples and is often left behind when a .cu file is passed on. Where
it is missing this text stands in: component-wise operators, `make_float4(scalar)` and conversions,
and the geometry functions `dot`, `length`, `normalize`, `cross`, `reflect`, `lerp`, `clamp`.
"""

from collections.abc import Iterator
from functools import cache

HEADERS = frozenset({"helper_math.h", "cutil_math.h"})

_BASES = ("float", "int", "uint")
_FUNCTION = "static __forceinline__ __host__ __device__"


@cache
def vector_math() -> str:
    """The text of the header."""
    lines = ["#pragma once", *_scalars()]
    for base in _BASES:
        for size in (2, 3, 4):
            lines += _operators(base, size)
            lines += _constructors(base, size)
            lines += _bounds(base, size)
    for size in (2, 3, 4):
        lines += _geometry(size)
    return "\n".join((*lines, _CROSS, ""))


def _scalars() -> Iterator[str]:
    yield f"{_FUNCTION} float lerp(float a, float b, float t) {{ return a + t * (b - a); }}"
    yield f"{_FUNCTION} float fracf(float v) {{ return v - floorf(v); }}"
    for base in _BASES:
        kind = base.replace("uint", "unsigned int")
        bound = "fmaxf(a, fminf(v, b))" if base == "float" else "max(a, min(v, b))"
        yield f"{_FUNCTION} {kind} clamp({kind} v, {kind} a, {kind} b) {{ return {bound}; }}"


def _operators(base: str, size: int) -> Iterator[str]:
    vector, each = f"{base}{size}", "xyzw"[:size]
    kind = base.replace("uint", "unsigned int")
    for sign in "+-*/" if base == "float" else "+-*":
        for left, right in ((vector, vector), (vector, kind), (kind, vector)):
            parts = (
                f"a{'.' + c if left == vector else ''} {sign} b{'.' + c if right == vector else ''}"
                for c in each
            )
            body = f"return make_{vector}({', '.join(parts)});"
            yield f"{_FUNCTION} {vector} operator{sign}({left} a, {right} b) {{ {body} }}"
        for right in (vector, kind):
            yield (
                f"{_FUNCTION} void operator{sign}=({vector} &a, {right} b) {{ a = a {sign} b; }}"
            )
    if base != "uint":
        parts = (f"-a.{c}" for c in each)
        body = f"return make_{vector}({', '.join(parts)});"
        yield f"{_FUNCTION} {vector} operator-({vector} a) {{ {body} }}"


def _constructors(base: str, size: int) -> Iterator[str]:
    """From one number, from a smaller or larger vector, from the other number types."""
    vector, each = f"{base}{size}", "xyzw"[:size]
    kind = base.replace("uint", "unsigned int")

    def make(parameters: str, values: list[str]) -> str:
        body = f"return make_{vector}({', '.join(values)});"
        return f"{_FUNCTION} {vector} make_{vector}({parameters}) {{ {body} }}"

    yield make(f"{kind} s", ["s"] * size)
    if size > 2:
        shorter = [f"a.{c}" for c in each[:-1]]
        yield make(f"{base}{size - 1} a", [*shorter, "0"])
        yield make(f"{base}{size - 1} a, {kind} s", [*shorter, "s"])
    if size < 4:
        yield make(f"{base}{size + 1} a", [f"a.{c}" for c in each])
    for other in _BASES:
        if other != base:
            yield make(f"{other}{size} a", [f"({kind})a.{c}" for c in each])


def _bounds(base: str, size: int) -> Iterator[str]:
    vector, each = f"{base}{size}", "xyzw"[:size]
    kind = base.replace("uint", "unsigned int")
    for name in ("fminf", "fmaxf") if base == "float" else ("min", "max"):
        parts = ", ".join(f"{name}(a.{c}, b.{c})" for c in each)
        body = f"return make_{vector}({parts});"
        yield f"{_FUNCTION} {vector} {name}({vector} a, {vector} b) {{ {body} }}"
    for low in (vector, kind):
        ends = ("a.{0}, b.{0}" if low == vector else "a, b").format
        parts = ", ".join(f"clamp(v.{c}, {ends(c)})" for c in each)
        body = f"return make_{vector}({parts});"
        yield f"{_FUNCTION} {vector} clamp({vector} v, {low} a, {low} b) {{ {body} }}"
    total = " + ".join(f"a.{c} * b.{c}" for c in each)
    yield f"{_FUNCTION} {kind} dot({vector} a, {vector} b) {{ return {total}; }}"


def _geometry(size: int) -> Iterator[str]:
    v = f"float{size}"
    yield f"{_FUNCTION} float length({v} a) {{ return sqrtf(dot(a, a)); }}"
    yield f"{_FUNCTION} {v} normalize({v} a) {{ return a * rsqrtf(dot(a, a)); }}"
    yield f"{_FUNCTION} {v} lerp({v} a, {v} b, float t) {{ return a + t * (b - a); }}"
    yield f"{_FUNCTION} {v} reflect({v} i, {v} n) {{ return i - 2.0f * n * dot(n, i); }}"
    for name in ("floorf", "fabs", "fracf"):
        parts = ", ".join(f"{name}(a.{c})" for c in "xyzw"[:size])
        yield f"{_FUNCTION} {v} {name}({v} a) {{ return make_{v}({parts}); }}"


_CROSS = f"""{_FUNCTION} float3 cross(float3 a, float3 b)
{{ return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }}"""
