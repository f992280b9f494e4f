"""Matrix products as the tensor cores of compute capability 9.0 compute them.

Matrices are arrays (rows, columns, warps). The rules were measured bit for bit on the hardware. One
instruction aligns all products and the accumulator to the largest exponent among them (that of a
product is the sum of its factors' exponents), truncates them 25 bits below it, adds them exactly,
and truncates the sum to float32, or rounds it to nearest as f16. It sums 8-bit floats two bytes of
every four at a time (of a sparse factor four columns of every eight), starting from zero, and adds
the accumulator at the end. `wgmma` truncates all products of 8-bit floats and the accumulator 13
bits below, and so the sum, if it is f32. Double precision is a chain of fused multiply-adds;
integers are exact.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from ....jit.numpy_tracer import elementwise_of
from .floating import arithmetic
from .format import Reformat, reformat
from .lanes import Array

KEPT_BITS = 25
"""Bits below the largest exponent that a sum keeps."""

OCTET_BITS = 13
"""The same for a sum of `wgmma` over 8-bit floats."""

_LEAST = {"e4m3": -6, "e5m2": -14, "f16": -14, "f32": -126}
"""The least exponents of normal numbers."""

_NOTHING = -4096


def of_bits(bits: Array, kind: str) -> Array:
    """Return the elements of a matrix as float64; the low 13 bits of tf32 are ignored."""
    if kind == "tf32":
        bits = bits & np.uint32(0xFFFF_E000)
        kind = "f32"
    return reformat(Reformat(kind, "f64"))(bits).view(np.float64)


@cache
def _largest() -> Callable[..., Array]:
    """Return the function of a, b and an exponent that returns the larger of it and the exponent of
    a * b."""

    def largest(a: Array, b: Array, least: Array) -> Array:
        sizes = a.view(np.uint64) << 1, b.view(np.uint64) << 1
        both = ((sizes[0] >> 53) + (sizes[1] >> 53)).view(np.int64) - 2046
        is_zero = (sizes[0] == 0) | (sizes[1] == 0)
        return np.where(is_zero, least, np.maximum(both, least))

    return elementwise_of("largest_exponent", largest, ("f8", "f8", "i8"), "i8")


@cache
def _sum_cut() -> Callable[..., Array]:
    """Return the function of a, b, a scale and a sum that adds a * b, scaled and truncated, to the
    sum."""

    def sum_cut(a: Array, b: Array, scale: Array, total: Array) -> Array:
        cut: Array = total + np.trunc(a * b * scale)
        return cut

    return elementwise_of("sum_cut", sum_cut, ("f8",) * 4, "f8")


def _block(a: Array, b: Array, c: Array) -> Array:
    """Return the exact sum (m, n, warps) of c and the truncated products of one block."""
    one = np.ones((1, 1, 1))
    exponent = _largest()(c, one, np.array(_NOTHING, dtype=np.int64))
    for k in range(a.shape[1]):
        exponent = _largest()(a[:, k, None], b[None, k], exponent)
    lift = np.maximum(exponent, -900)
    scale = np.ldexp(1.0, (KEPT_BITS - lift).astype(np.int32))
    total = np.trunc(c * scale)
    for k in range(a.shape[1]):
        total = _sum_cut()(a[:, k, None], b[None, k], scale, total)
    block_sum: Array = total / scale
    return block_sum


def _special(a: Array, b: Array, c: Array, result: Array) -> Array:
    """Set infinities and NaNs where a factor or the accumulator is one."""
    if np.isfinite(a).all() and np.isfinite(b).all() and np.isfinite(c).all():
        return result
    plain = c
    for k in range(a.shape[1]):
        plain = plain + a[:, k, None] * b[None, k]
    return np.where(np.isfinite(plain), result, plain)


def multiply_floats(a: Array, b: Array, c: Array, result: str, octets: int) -> Array:
    """Return the bits of a @ b + c as `result` (f32 or f16).

    For 8-bit floats, `octets` of every 2 * `octets` columns are summed at a time; it is 0 for other
    types.
    """
    if octets:
        first = np.arange(a.shape[1]) % (2 * octets) < octets
        total = np.zeros_like(c)
        for half in (first, ~first):
            total = _special(a[:, half], b[half], total, _cut(_block(a[:, half], b[half], total)))
        return arithmetic("add", "f32")(
            total.astype(np.float32), c.astype(np.float32)
        ).view(np.uint32)  # fmt: skip
    total = _special(a, b, c, _block(a, b, c))
    total = _overflowed(total)
    mode = "rn" if result == "f16" else "rz"
    bits = reformat(Reformat("f64", result, mode))(total.view(np.uint64))
    nan = bits.dtype.type(0x7FFF if result == "f16" else 0x7FFF_FFFF)
    return np.where(np.isnan(total), nan, bits)


def multiply_of_warpgroup(a: Array, b: Array, c: Array, result: str, octets: str) -> Array:
    """Return the bits of a @ b + c as `wgmma` computes it; `octets` are the types of 8-bit floats,
    `e4m3 e5m2`, or empty."""
    if not octets:
        total = _special(a, b, c, _block(a, b, c))
    else:
        total = _special(a, b, c, _block_of_octets(a, b, c, octets.split(), result))
    return _rounded(total + 0.0, result)


def _rounded(total: Array, result: str) -> Array:
    """Return the bits of an exact sum: truncated to f32, or rounded to nearest f16."""
    mode = "rn" if result == "f16" else "rz"
    bits = reformat(Reformat("f64", result, mode))(_overflowed(total).view(np.uint64))
    size = bits.dtype.type
    bits = np.where(bits << size(1) == 0, size(0), bits)
    return np.where(np.isnan(total), size(0x7FFF if result == "f16" else 0x7FFF_FFFF), bits)


def _block_of_octets(a: Array, b: Array, c: Array, kinds: list[str], result: str) -> Array:
    """Return the sum of c and products of 8-bit floats, each truncated OCTET_BITS below the largest
    exponent, and so the sum as f32. Subnormal numbers have the exponent of the least normal
    ones."""
    first, second = (_exponents(x, _LEAST[kind]) for x, kind in zip((a, b), kinds, strict=True))
    largest = _exponents(c, _LEAST[result])
    for k in range(a.shape[1]):
        largest = np.maximum(largest, first[:, k, None] + second[None, k])
    scale = np.ldexp(1.0, OCTET_BITS - np.maximum(largest, -900))
    total: Array = np.trunc(c * scale)
    for k in range(a.shape[1]):
        total = total + np.trunc(a[:, k, None] * b[None, k] * scale)
    total = total / scale
    if result == "f16":
        return total
    below = np.ldexp(1.0, OCTET_BITS - np.maximum(_exponents(total, -900), -900))
    block_sum: Array = np.trunc(total * below) / below
    return block_sum


def _exponents(x: Array, least: int) -> Array:
    """Return the exponents of numbers, at least `least`; very low for zeros, 0 for infinities and
    NaNs."""
    exponents = np.maximum(np.frexp(x)[1] - 1, least)
    return np.where(x == 0, _NOTHING, np.where(np.isfinite(x), exponents, 0)).astype(np.int32)


def _overflowed(total: Array) -> Array:
    """Return the sum with infinity where it exceeds float32, although sums are truncated."""
    return np.where(np.abs(total) >= 2.0**128, np.copysign(np.inf, total), total)


def _cut(total: Array) -> Array:
    bits = reformat(Reformat("f64", "f32", "rz"))(_overflowed(total).view(np.uint64))
    return bits.view(np.float32).astype(np.float64)


def multiply_doubles(a: Array, b: Array, c: Array) -> Array:
    """Return a @ b + c in float64, as a chain of fused multiply-adds."""
    fma = arithmetic("fma", "f64")
    for k in range(a.shape[1]):
        c = fma(a[:, k, None], b[None, k], c)
    return c


def multiply_integers(a: Array, b: Array, c: Array, saturate: bool) -> Array:
    """Return a @ b + c of int64 as s32, wrapped or clamped."""
    total = c.astype(np.int64)
    for k in range(a.shape[1]):
        total = total + a[:, k, None] * b[None, k]
    if saturate:
        total = np.clip(total, np.iinfo(np.int32).min, np.iinfo(np.int32).max)
    return total.astype(np.int32)


def multiply_bits(a: Array, b: Array, c: Array, both: bool) -> Array:
    """Return c plus the number of bits set in a AND b (or a XOR b), by words of 32 bits."""
    total = c.astype(np.int64)
    combine = np.bitwise_and if both else np.bitwise_xor
    for k in range(a.shape[1]):
        total = total + np.bitwise_count(combine(a[:, k, None], b[None, k]))
    return total.astype(np.int32)
