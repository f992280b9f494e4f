"""Floating-point formats as LLVM assembly: widen to float64, round once, and the hardware's NaNs.

Every function here is internal and inlined into the loops of `native.elementwise`. Narrow types
travel as bits in an i64.
"""

from ....lazy_dataclass import dataclass

FINITE, INFINITE = "finite", "infinite"


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format of `bits` bits, `fraction` of them stored; `nan` is what operations make.

    `infinity` is one more than the largest finite pattern, whether or not the format has one.
    """

    name: str
    bits: int
    fraction: int
    bias: int
    infinity: int
    nan: int


FORMATS = {
    f.name: f
    for f in (
        Format("f16", 16, 10, 15, 0x7C00, 0x7FFF),
        Format("bf16", 16, 7, 127, 0x7F80, 0x7FFF),
        Format("f32", 32, 23, 127, 0x7F80_0000, 0x7FFF_FFFF),
        Format("tf32", 19, 10, 127, 0x3FC00, 0x3FFFF),
        Format("e4m3", 8, 3, 7, 0x7F, 0x7F),
        Format("e5m2", 8, 2, 15, 0x7C, 0x7F),
    )
}

_INLINE = "define internal {result} @{name}({parameters}) alwaysinline {{\n{body}\n}}\n"


def define(result: str, name: str, parameters: str, body: str) -> str:
    """Return an internal function that is inlined where it is called."""
    return _INLINE.format(result=result, name=name, parameters=parameters, body=body)


_LAYOUT = {
    "f32": ("float", "i32", 0x8000_0000, 0x7F80_0000, 0x7FFF_FFFF),
    "f64": ("double", "i64", 1 << 63, 0x7FF << 52, 0xFFF8 << 48),
}


def flush(kind: str) -> str:
    """Define @flush: subnormal numbers become zeros of their sign."""
    real, whole, sign, exponent, _ = _LAYOUT[kind]
    return define(real, "flush", f"{real} %x", f"""
  %b = bitcast {real} %x to {whole}
  %e = and {whole} %b, {exponent}
  %s = and {whole} %b, {sign}
  %tiny = icmp eq {whole} %e, 0
  %r = select i1 %tiny, {whole} %s, {whole} %b
  %y = bitcast {whole} %r to {real}
  ret {real} %y""")  # fmt: skip


def canonical(of_root: bool = False) -> str:
    """Define @canonical: every NaN of f32 becomes the one that the hardware makes.

    That of a root is told by its bits: LLVM takes a root's NaN for any other.
    """
    _, _, _, exponent, nan = _LAYOUT["f32"]
    by_bits = f"%a = and i32 %b, {nan}\n  %u = icmp ugt i32 %a, {exponent}"
    return define("float", "canonical", "float %x", f"""
  %b = bitcast float %x to i32
  {by_bits if of_root else "%u = fcmp uno float %x, %x"}
  %r = select i1 %u, i32 {nan}, i32 %b
  %y = bitcast i32 %r to float
  ret float %y""")  # fmt: skip


def quiet_nan(sources: int, first: bool = False) -> str:
    """Define @quiet(result, sources...) of f64: the payload of a source that is a NaN survives.

    Of several the second source's, then the third's, then the first's; with `first` the first's.
    """
    parameters = "".join(f", double %x{k}" for k in range(sources))
    body = "  %invalid = fcmp uno double %r, %r\n  %b0 = bitcast double %r to i64\n"
    body += f"  %c0 = select i1 %invalid, i64 {_LAYOUT['f64'][4]}, i64 %b0\n"
    order = [1, 0] if first else [k for k in (0, 2, 1) if k < sources]
    for place, k in enumerate(order):
        body += f"""  %u{k} = fcmp uno double %x{k}, %x{k}
  %n{k} = bitcast double %x{k} to i64
  %q{k} = or i64 %n{k}, {1 << 51}
  %c{place + 1} = select i1 %u{k}, i64 %q{k}, i64 %c{place}
"""
    body += f"  %y = bitcast i64 %c{sources} to double\n  ret double %y"
    return define("double", "quiet", f"double %r{parameters}", body)


def saturate(kind: str) -> str:
    """Define @saturate: into [0, 1], a NaN to +0."""
    real = _LAYOUT[kind][0]
    return define(real, "saturate", f"{real} %x", f"""
  %below = fcmp olt {real} %x, 1.0
  %m = select i1 %below, {real} %x, {real} 1.0
  %above = fcmp ogt {real} %x, 0.0
  %y = select i1 %above, {real} %m, {real} 0.0
  ret {real} %y""")  # fmt: skip


def widen(kind: str) -> str:
    """Define @widen_KIND(i64 bits) -> double, exactly; a NaN keeps its payload and grows quiet."""
    form = FORMATS[kind]
    top = (1 << (form.bits - 1)) - 1
    scale = (1023 + 1023 - form.bias) << 52
    body = f"""
  %m = and i64 %x, {top}
  %s0 = lshr i64 %x, {form.bits - 1}
  %s = shl i64 %s0, 63
  %f = shl i64 %m, {52 - form.fraction}
  %d = bitcast i64 %f to double
  %scale = bitcast i64 {scale} to double
  %v = fmul double %d, %scale
  %special = icmp uge i64 %m, {form.infinity}
  %nan = icmp ugt i64 %m, {form.infinity if form.name != "e4m3" else form.infinity - 1}
  %payload = or i64 %f, {0x7FF8 << 48}
  %large = select i1 %nan, i64 %payload, i64 {0x7FF << 52}
  %b = bitcast double %v to i64
  %c = select i1 %special, i64 %large, i64 %b
  %r = or i64 %c, %s
  %y = bitcast i64 %r to double
  ret double %y"""
    return define("double", f"widen_{kind}", "i64 %x", body)


def _up(mode: str) -> str:
    """Decide %up from %q, %rest, %half and the sign %s."""
    odd_tie = "  %odd = and i64 %q, 1\n  %is_odd = icmp ne i64 %odd, 0\n"
    match mode:
        case "rn":
            return odd_tie + (
                "  %over = icmp ugt i64 %rest, %half\n  %tie = icmp eq i64 %rest, %half\n"
                "  %even = and i1 %tie, %is_odd\n  %up = or i1 %over, %even\n"
            )
        case "rna":
            return "  %up = icmp uge i64 %rest, %half\n"
        case "rz":
            return "  %up = icmp ult i64 %rest, 0\n"
    side = "eq" if mode == "rp" else "ne"
    return (
        f"  %inexact = icmp ne i64 %rest, 0\n  %side = icmp {side} i64 %s, 0\n"
        "  %up = and i1 %inexact, %side\n"
    )


def _beyond(form: Format, mode: str, finite: bool) -> str:
    """Set %w to %v, or to what `mode` makes of a number too large for the format."""
    largest = form.infinity - 1
    huge = {"rn": form.infinity, "rna": form.infinity, "rz": largest}.get(mode)
    if finite:
        huge = largest
    if huge is not None:
        choice = f"  %huge = add i64 {huge}, 0\n"
    else:
        up, down = (form.infinity, largest) if mode == "rp" else (largest, form.infinity)
        choice = (
            f"  %positive = icmp eq i64 %s, 0\n"
            f"  %huge = select i1 %positive, i64 {up}, i64 {down}\n"
        )
    return choice + (
        f"  %beyond = icmp uge i64 %v, {form.infinity}\n"
        f"  %w = select i1 %beyond, i64 %huge, i64 %v\n"
    )


def narrow(kind: str, mode: str = "rn", finite: bool = False, payload: bool = False) -> str:
    """Define @narrow_KIND(double) -> i64 bits, rounded once; `finite` is `.satfinite`.

    With `payload` a NaN keeps its sign and the upper bits of its payload.
    """
    form = FORMATS[kind]
    lowest, cut = 1024 - form.bias, 52 - form.fraction
    special = form.infinity - 1 if finite else form.infinity
    body = f"""
  %u = bitcast double %x to i64
  %s = lshr i64 %u, 63
  %a = and i64 %u, {(1 << 63) - 1}
  %e = lshr i64 %a, 52
  %f = and i64 %a, {(1 << 52) - 1}
  %is_normal = icmp ne i64 %e, 0
  %hidden = select i1 %is_normal, i64 {1 << 52}, i64 0
  %m = or i64 %f, %hidden
  %short = sub i64 {lowest}, %e
  %small = icmp sgt i64 %short, 0
  %many = icmp sgt i64 %short, {form.fraction + 2}
  %bounded = select i1 %many, i64 {form.fraction + 2}, i64 %short
  %extra = select i1 %small, i64 %bounded, i64 0
  %drop = add i64 %extra, {cut}
  %q = lshr i64 %m, %drop
  %back = shl i64 %q, %drop
  %rest = sub i64 %m, %back
  %one_less = sub i64 %drop, 1
  %half = shl i64 1, %one_less
{_up(mode)}  %inc = zext i1 %up to i64
  %rounded = add i64 %q, %inc
  %over_bias = sub i64 %e, {lowest}
  %field = shl i64 %over_bias, {form.fraction}
  %normal_part = select i1 %small, i64 0, i64 %field
  %v = add i64 %normal_part, %rounded
{_beyond(form, mode, finite)}  %infinite = icmp eq i64 %a, {0x7FF << 52}
  %w1 = select i1 %infinite, i64 {special}, i64 %w
  %sign = shl i64 %s, {form.bits - 1}
  %signed = or i64 %w1, %sign
  %nan = icmp ugt i64 %a, {0x7FF << 52}
  %upper = lshr i64 %f, {cut}
  %quiet = or i64 %upper, {form.infinity | 1 << (form.fraction - 1)}
  %kept = or i64 %quiet, %sign
  %of_nan = {"or i64 %kept, 0" if payload else f"add i64 {form.nan}, 0"}
  %y = select i1 %nan, i64 %of_nan, i64 %signed
  ret i64 %y"""
    return define("i64", f"narrow_{kind}", "double %x", body)


def narrow_integer(kind: str, mode: str = "rn") -> str:
    """Define @narrow_integer(i64 magnitude, i64 sign) -> i64 bits of the format, rounded once."""
    form = FORMATS[kind] if kind != "f64" else Format("f64", 64, 52, 1023, 0x7FF << 52, 0)
    body = f"""
  %zero = icmp eq i64 %x, 0
  %z = call i64 @llvm.ctlz.i64(i64 %x, i1 false)
  %shift = and i64 %z, 63
  %top = shl i64 %x, %shift
  %q = lshr i64 %top, {63 - form.fraction}
  %rest = and i64 %top, {(1 << (63 - form.fraction)) - 1}
  %half = add i64 {1 << (62 - form.fraction)}, 0
{_up(mode)}  %inc = zext i1 %up to i64
  %rounded = add i64 %q, %inc
  %e = sub i64 {62 + form.bias}, %shift
  %field = shl i64 %e, {form.fraction}
  %sum = add i64 %field, %rounded
  %v = select i1 %zero, i64 0, i64 %sum
{_beyond(form, mode, finite=False)}  %sign = shl i64 %s, {form.bits - 1}
  %y = or i64 %w, %sign
  ret i64 %y"""
    return "declare i64 @llvm.ctlz.i64(i64, i1)\n" + define(
        "i64", "narrow_integer", "i64 %x, i64 %s", body
    )


ODD_SUM = define("double", "odd_sum", "double %a, double %b", """
  %s = fadd double %a, %b
  %b1 = fsub double %s, %a
  %a1 = fsub double %s, %b1
  %db = fsub double %b, %b1
  %da = fsub double %a, %a1
  %error = fadd double %da, %db
  %u = bitcast double %s to i64
  %odd = and i64 %u, 1
  %is_even = icmp eq i64 %odd, 0
  %inexact = fcmp one double %error, 0.0
  %fix = and i1 %is_even, %inexact
  %v = bitcast double %error to i64
  %differ = xor i64 %u, %v
  %opposite = icmp slt i64 %differ, 0
  %step = select i1 %opposite, i64 -1, i64 1
  %moved = add i64 %u, %step
  %r = select i1 %fix, i64 %moved, i64 %u
  %y = bitcast i64 %r to double
  ret double %y""")  # fmt: skip
"""Define @odd_sum: a + b in float64, the last bit set where the sum is not exact, so that one more
rounding to a narrower format gives what rounding the exact sum would."""
