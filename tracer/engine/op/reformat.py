"""From one floating-point format, or an integer, to another format: compiled, rounded once.

Numbers go through float64, which holds every other format exactly.
"""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ....lazy_dataclass import dataclass
from ....native.traced import elementwise_of
from ..lanes import DTYPES, Array
from .format import FORMATS, canonical, flush, narrow, narrow_integer, saturate, widen

FLOATS = frozenset({"f16", "bf16", "f32", "f64", "tf32", "e4m3", "e5m2"})
_STORAGE = {"f64": "b64", "f32": "b32", "tf32": "b32", "f16": "b16", "bf16": "b16"}
TO_WHOLE: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


@dataclass(frozen=True, slots=True)
class Reformat:
    """One conversion: PTX types, rounding mode, to a whole number, and what the modifiers ask."""

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
        """A name of its own for the compiled function."""
        flags = ("ftz", self.ftz), ("sat", self.sat), ("relu", self.relu), ("finite", self.finite)
        words = [self.source, self.to, self.mode, self.whole, *(w for w, on in flags if on)]
        return "_".join(word for word in words if word)


def storage(kind: str) -> str:
    """Return the PTX type of bits in which values of a floating-point type travel."""
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
    found = (bits << 13 if kind == "tf32" else bits).astype(_code(kind))
    if form.ftz and kind == "f32":
        return flush(found.view(np.float32)).view(np.uint32)
    return found


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


def through_double(kind: str, formula: Callable[..., Array]) -> Callable[..., Array]:
    """Return the function from bits of numbers to bits of what a float64 formula gives."""
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
