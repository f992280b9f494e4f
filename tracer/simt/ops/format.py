"""Floating-point formats: widen to float64, round once, and the hardware's NaNs.

Numbers are float32 or float64; values of narrow formats are their bits, as uint64.
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ....base.dataclass import dataclass
from ....jit.numpy_tracer import elementwise_of, statement
from .lanes import DTYPES, Array

_U = np.uint64
_SIGN, _ALL = 1 << 63, (1 << 63) - 1
_FRACTION, _INFINITE = (1 << 52) - 1, 0x7FF << 52


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format of `bits` bits, `fraction` of them stored; `nan` is the NaN that operations
    make.

    `infinity` is one more than the largest finite pattern, even if the format has no infinity;
    where it has no NaN either, `nan` is the largest number.
    """

    name: str
    bits: int
    fraction: int
    bias: int
    infinity: int
    nan: int

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << self.bits - 1

    @property
    def tiny(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)


FORMATS = {
    f.name: f
    for f in (
        Format("f16", 16, 10, 15, 0x7C00, 0x7FFF),
        Format("bf16", 16, 7, 127, 0x7F80, 0x7FFF),
        Format("f32", 32, 23, 127, 0x7F80_0000, 0x7FFF_FFFF),
        Format("f64", 64, 52, 1023, 0x7FF << 52, 0xFFF8 << 48),
        Format("tf32", 19, 10, 127, 0x3FC00, 0x3FFFF),
        Format("e4m3", 8, 3, 7, 0x7F, 0x7F),
        Format("e5m2", 8, 2, 15, 0x7C, 0x7F),
        Format("e2m1", 4, 1, 1, 0x8, 0x7),
        Format("e2m3", 6, 3, 1, 0x20, 0x1F),
        Format("e3m2", 6, 2, 3, 0x20, 0x1F),
    )
}


def flush_bits(bits: Array, form: Format) -> Array:
    """Return bits with subnormal numbers flushed to zeros of their sign."""
    return np.where(bits & form.infinity == 0, bits & form.sign, bits)


def flush(x: Array) -> Array:
    """Return numbers with subnormal ones flushed to zeros of their sign."""
    size = x.dtype.itemsize
    return flush_bits(x.view(f"u{size}"), FORMATS[f"f{8 * size}"]).view(x.dtype)


def canonical(x: Array, of_root: bool = False) -> Array:
    """Return float32 with the hardware's NaN in place of every NaN.

    The NaN of a square root is detected by its bits, because LLVM treats it like any other.
    """
    form, bits = FORMATS["f32"], x.view(np.uint32)
    is_nan = (bits & form.nan) > form.infinity if of_root else np.isnan(x)
    return np.where(is_nan, np.uint32(form.nan), bits).view(np.float32)


def quiet_nan(result: Array, sources: tuple[Array, ...], first: bool = False) -> Array:
    """Return float64 results that keep the payload of a NaN source.

    Of several NaNs the second source's wins, then the third's, then the first's; with `first`, the
    first's.
    """
    bits = np.where(np.isnan(result), _U(FORMATS["f64"].nan), result.view(_U))
    for k in [1, 0] if first else [k for k in (0, 2, 1) if k < len(sources)]:
        bits = np.where(np.isnan(sources[k]), sources[k].view(_U) | (1 << 51), bits)
    return bits.view(np.float64)


def saturate(x: Array) -> Array:
    """Return numbers clamped to [0, 1], a NaN as +0."""
    return np.where(x > 0.0, np.where(x < 1.0, x, 1.0), 0.0)


def odd_sum(a: Array, b: Array) -> Array:
    """Return a + b in float64 with a sticky last bit if the sum is inexact. Rounding it to a
    narrower format then gives the same result as rounding the exact sum."""
    total = a + b
    other = total - a
    error = (a - (total - other)) + (b - other)
    bits = total.view(np.int64)
    inexact = (error < 0.0) | (error > 0.0)
    step = np.where(bits ^ error.view(np.int64) < 0, np.int64(-1), np.int64(1))
    return np.where((bits & 1 == 0) & inexact, bits + step, bits).view(np.float64)


def widen(bits: Array, form: Format) -> Array:
    """Return bits as float64, exactly; a NaN keeps its payload and becomes quiet."""
    magnitude = bits & form.sign - 1
    sign = bits >> form.bits - 1 << 63
    moved = magnitude << 52 - form.fraction
    value = moved.view(np.float64) * 2.0 ** (1023 - form.bias)
    is_nan = magnitude > form.infinity - (form.name == "e4m3")
    large = np.where(is_nan, moved | (0x7FF8 << 48), _U(_INFINITE))
    number: Array = np.where(magnitude >= form.infinity, large, value.view(_U)) | sign
    return number.view(np.float64)


def _rounded(quotient: Array, remainder: Array, half: Array | int, sign: Array, mode: str) -> Array:
    """Return the quotient, plus one where `remainder`, with midpoint `half`, rounds up."""
    match mode:
        case "rz":
            return quotient
        case "rn":
            up = (remainder > half) | ((remainder == half) & (quotient & 1 != 0))
        case "rna":
            up = remainder >= half
        case _:
            up = (remainder != 0) & (sign == 0 if mode == "rp" else sign != 0)
    more: Array = quotient + up.astype(_U)
    return more


def _bounded(bits: Array, form: Format, sign: Array, mode: str, finite: bool) -> Array:
    """Return bits, or the result of `mode` for a number too large for the format."""
    largest, infinity = _U(form.infinity - 1), _U(form.infinity)
    huge = {"rn": infinity, "rna": infinity, "rz": largest}.get(mode)
    up, down = (infinity, largest) if mode == "rp" else (largest, infinity)
    overflow = largest if finite else np.where(sign == 0, up, down) if huge is None else huge
    return np.where(bits >= form.infinity, overflow, bits)


def narrow(
    value: Array, form: Format, mode: str = "rn", finite: bool = False, payload: bool = False
) -> Array:
    """Return the bits of float64 in a narrower format, rounded once; `finite` is `.satfinite`.

    With `payload` a NaN keeps its sign and the upper bits of its payload.
    """
    lowest, cut = 1024 - form.bias, 52 - form.fraction
    bits = value.view(_U)
    sign, size = bits >> 63, bits & _ALL
    exponent, fraction = size >> 52, size & _FRACTION
    whole = fraction | np.where(exponent != 0, _U(1 << 52), _U(0))
    short = (lowest - exponent).view(np.int64)
    small = short > 0
    drop = np.minimum(np.where(small, short.view(_U), _U(0)), form.fraction + 2) + cut
    quotient = whole >> drop
    remainder = whole - (quotient << drop)
    rounded = _rounded(quotient, remainder, _U(1) << (drop - 1), sign, mode)
    field = np.where(small, _U(0), (exponent - lowest) << form.fraction)
    encoding = _bounded(field + rounded, form, sign, mode, finite)
    encoding = np.where(size == _INFINITE, _U(form.infinity - finite), encoding) | (
        sign << form.bits - 1
    )
    of_nan: Array | np.uint64 = _U(form.nan)
    if payload:
        quiet = form.infinity | 1 << form.fraction - 1
        of_nan = (fraction >> cut) | quiet | (sign << form.bits - 1)
    return np.where(size > _INFINITE, of_nan, encoding)


def narrow_integer(size: Array, sign: Array, form: Format, mode: str = "rn") -> Array:
    """Return the bits of an integer of this size and sign in a format, rounded once."""
    zeros = statement("call i64 @llvm.ctlz.i64(i64 {}, i1 false)", "u8", size)
    shift = zeros & 63
    top = size << shift
    remainder = top & (1 << 63 - form.fraction) - 1
    rounded = _rounded(top >> 63 - form.fraction, remainder, 1 << 62 - form.fraction, sign, mode)
    encoding = np.where(size == 0, _U(0), ((62 + form.bias - shift) << form.fraction) + rounded)
    bounded: Array = _bounded(encoding, form, sign, mode, finite=False) | (sign << form.bits - 1)
    return bounded


FLOATS = frozenset(FORMATS)
_STORAGE = {"f64": "b64", "f32": "b32", "tf32": "b32", "f16": "b16", "bf16": "b16"}
TO_WHOLE: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


@dataclass(frozen=True, slots=True)
class Reformat:
    """One conversion: PTX types, rounding mode, whether to round to an integer, and the
    modifiers."""

    source: str
    to: str
    mode: str = "rn"
    whole: str = ""
    ftz: bool = False
    sat: bool = False
    relu: bool = False
    finite: bool = False

    @property
    def name(self) -> str:
        """A unique name for the compiled function."""
        flags = ("ftz", self.ftz), ("sat", self.sat), ("relu", self.relu), ("finite", self.finite)
        words = [self.source, self.to, self.mode, self.whole, *(w for w, on in flags if on)]
        return "_".join(word for word in words if word)


def storage(kind: str) -> str:
    """Return the untyped PTX type that stores values of a floating-point type."""
    return _STORAGE.get(kind, "b8")


def _bits(kind: str) -> int:
    return 8 * DTYPES[storage(kind)].itemsize


def _code(kind: str) -> str:
    return f"u{_bits(kind) // 8}"


def _source(bits: Array, kind: str, ftz: bool) -> Array:
    """Return bits as float64."""
    if kind == "f64":
        return bits.view(np.float64)
    if kind in ("f32", "tf32"):
        number = bits.view(np.float32)
        return (flush(canonical(number)) if ftz else number).astype(np.float64)
    return widen(bits.astype(np.uint64), FORMATS[kind])


def _target(value: Array, form: Reformat) -> Array:
    """Return float64 as bits."""
    kind = form.to
    if kind == "f64":
        return value.view(np.uint64)
    bits = narrow(value, FORMATS[kind], form.mode, form.finite, payload=form.source == "f64")
    target_bits = (bits << 13 if kind == "tf32" else bits).astype(_code(kind))
    if form.ftz and kind == "f32":
        return flush(target_bits.view(np.float32)).view(np.uint32)
    return target_bits


@cache
def reformat(form: Reformat) -> Callable[[Array], Array]:
    """Return the function from bits of one format to bits of another."""

    def convert(bits: Array) -> Array:
        value = _source(bits, form.source, form.ftz)
        if form.whole:
            value = TO_WHOLE[form.whole](value)
        if form.sat:
            value = saturate(value)
        if form.relu:
            value = np.where(value <= 0.0, 0.0, value)
        return _target(value, form)

    return elementwise_of(f"cvt_{form.name}", convert, (_code(form.source),), _code(form.to))


def reformat_at_random(
    form: Format, count: int, relu: bool, finite: bool
) -> Callable[[Array, Array], Array]:
    """Return the function from bits of f32 and `count` random bits to bits of a format: the random
    bits are added at the top of what is cut off."""
    kept = _U((1 << count) - 1)

    def convert(bits: Array, random: Array) -> Array:
        wide = bits.astype(np.uint64)
        sign, magnitude = wide >> 31, wide & 0x7FFF_FFFF
        exponent, fraction = magnitude >> 23, magnitude & 0x7F_FFFF
        whole = fraction | np.where(exponent != 0, _U(1 << 23), _U(0))
        lowest = 128 - form.bias  # the field of the least normal number of the format
        short = np.maximum((lowest - exponent).view(np.int64), 0).view(_U)
        drop = np.minimum(short, 20) + (23 - form.fraction)
        # What lies below the random bits cannot carry, so it is cut off with them.
        moved = (whole << 16) + ((random & kept) << drop + (16 - count))
        field = np.where(short > 0, _U(0), (exponent - lowest) << form.fraction)
        encoding = field + (moved >> drop + 16)
        encoding = np.where(encoding >= form.infinity, _U(form.infinity - finite), encoding)
        encoding = np.where(magnitude == 0x7F80_0000, _U(form.infinity - finite), encoding)
        encoding = encoding | sign << form.bits - 1
        if relu:
            encoding = np.where(sign != 0, _U(0), encoding)
        return np.where(magnitude > 0x7F80_0000, _U(form.nan), encoding)

    return convert


def through_double(kind: str, formula: Callable[..., Array]) -> Callable[..., Array]:
    """Return a float64 formula as a function of bits of `kind`."""
    form = Reformat(kind, kind)

    def compute(*sources: Array) -> Array:
        return _target(formula(*(_source(bits, kind, False) for bits in sources)), form)

    return compute


@cache
def reformat_integer(form: Reformat) -> Callable[[Array], Array]:
    """Return the function from integers to bits of a format."""

    def convert(a: Array) -> Array:
        wide = a.astype(np.int64 if a.dtype.kind == "i" else np.uint64)
        below = wide < 0
        size: Array = np.where(below, -wide, wide).view(np.uint64)
        sign: Array = below.astype(np.uint64)
        if form.sat:
            size, sign = ((size != 0) & ~below).astype(np.uint64), sign & 0
        return narrow_integer(size, sign, FORMATS[form.to], form.mode).astype(_code(form.to))

    code = DTYPES[form.source].str[1:]
    return elementwise_of(f"cvt_{form.name}", convert, (code,), _code(form.to))
