"""Arithmetic of atomic operations on a word of memory, in LLVM assembly (PTX ISA 9.7.13.5).

Each sets %new from %old and the operands %b and %d, all of one integer type. As on the hardware
f32 sums in global memory take subnormal numbers for zeros, those in shared memory do not; f64
sums in global memory keep a NaN as it is, those in shared memory make it quiet.
"""

from collections.abc import Mapping

from . import assembly, extreme, half

_INTEGER: Mapping[str, str] = {
    "add": "%new = add {t} %old, %b",
    "and": "%new = and {t} %old, %b",
    "or": "%new = or {t} %old, %b",
    "xor": "%new = xor {t} %old, %b",
    "exch": "%new = or {t} %b, 0",
    "cas": "%same = icmp eq {t} %old, %b\n  %new = select i1 %same, {t} %d, {t} %old",
    "inc": "%over = icmp uge {t} %old, %b\n  %up = add {t} %old, 1\n"
    "  %new = select i1 %over, {t} 0, {t} %up",
    "dec": "%zero = icmp eq {t} %old, 0\n  %over = icmp ugt {t} %old, %b\n"
    "  %wrap = or i1 %zero, %over\n  %down = sub {t} %old, 1\n"
    "  %new = select i1 %wrap, {t} %b, {t} %down",
}
_PICK = "%c = icmp {order} {t} %old, %b\n  %new = select i1 %c, {t} %old, {t} %b"
_ORDER = {"minu": "ult", "maxu": "ugt", "mins": "slt", "maxs": "sgt"}
OPERATIONS = frozenset({*_INTEGER, "min", "max"})


def update(operation: str, kind: str, in_global: bool) -> tuple[str, str, str] | None:
    """Return the integer type, the body, and definitions; None where PTX has no such operation."""
    bits, is_integer = kind[1:], kind[0] in "bus" and kind[1:].isdigit()
    if is_integer and operation in ("min", "max"):
        body = _PICK.replace("{order}", _ORDER.get(operation + kind[0], "ult"))
        return f"i{bits}", body.replace("{t}", f"i{bits}"), ""
    if is_integer and operation in _INTEGER:
        return f"i{bits}", _INTEGER[operation].replace("{t}", f"i{bits}"), ""
    if kind == "f32" and operation == "add":
        return "i32", _single_sum(in_global), assembly.flush("f32") + assembly.canonical()
    if kind == "f64" and operation == "add":
        return "i64", _DOUBLE_SUM if in_global else _SOFTWARE_DOUBLE_SUM, assembly.quiet_nan(2)
    return _half(operation, kind)


def _single_sum(flush: bool) -> str:
    given = ["%fo", "%fb"] if flush else ["%ro", "%rb"]
    return f"""%ro = bitcast i32 %old to float
  %rb = bitcast i32 %b to float
  %fo = call float @flush(float %ro)
  %fb = call float @flush(float %rb)
  %s = fadd float {", ".join(given)}
  %c = call float @canonical(float %s)
  %fs = call float @flush(float %c)
  %new = bitcast float {"%fs" if flush else "%c"} to i32"""


_DOUBLE_SUM = """%ro = bitcast i64 %old to double
  %rb = bitcast i64 %b to double
  %s = fadd double %ro, %rb
  %sum = bitcast double %s to i64
  %uo = fcmp uno double %ro, %ro
  %ub = fcmp uno double %rb, %rb
  %first = select i1 %uo, i64 %old, i64 %sum
  %new = select i1 %ub, i64 %b, i64 %first"""

_SOFTWARE_DOUBLE_SUM = """%ro = bitcast i64 %old to double
  %rb = bitcast i64 %b to double
  %s = fadd double %rb, %ro
  %q = call double @quiet(double %s, double %rb, double %ro)
  %new = bitcast double %q to i64"""

_HALVES = """%ol = trunc i32 %old to i16
  %bl = trunc i32 %b to i16
  %os = lshr i32 %old, 16
  %bt = lshr i32 %b, 16
  %oh = trunc i32 %os to i16
  %bh = trunc i32 %bt to i16
  %nl = call i16 @one(i16 %ol, i16 %bl)
  %nh = call i16 @one(i16 %oh, i16 %bh)
  %wl = zext i16 %nl to i32
  %wh = zext i16 %nh to i32
  %up = shl i32 %wh, 16
  %new = or i32 %wl, %up"""


def _half(operation: str, kind: str) -> tuple[str, str, str] | None:
    single = kind.removesuffix("x2")
    if single not in ("f16", "bf16") or operation not in ("add", "min", "max"):
        return None
    if operation == "add":
        definitions = half.element("add", single)
    else:
        definitions = extreme.element(single, operation == "min")
    if single != kind:
        return "i32", _HALVES, definitions
    return "i16", "%new = call i16 @one(i16 %old, i16 %b)", definitions
