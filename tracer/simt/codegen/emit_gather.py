"""Codegen of gathers and scatters: the lanes of a register from memory or to it.

The emitted functions move few lanes one by one, and more at once with LLVM's masked vectors.
"""

from ...ptx.kernel import TYPE_BYTES, Operand, Register
from .emit_lane import Refuse
from .emit_lines import WarpText

ARGUMENTS = "i64 %start, i64 %step, ptr %addresses, i64 %mask, ptr %lanes"
_LANES = ", ".join(f"i64 {lane}" for lane in range(32))
TYPES = "i64, i64, ptr, i64, ptr"
"""Parameter types of a gather or scatter: the base of the space, the bytes between its lanes, the
addresses, the mask of the lanes, the register."""

_GATHER = """
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare <32 x i{n}> @llvm.masked.gather.v32i{n}.v32p0(<32 x ptr>, i32, <32 x i1>, <32 x i{n}>)
declare void @llvm.masked.scatter.v32i{n}.v32p0(<32 x i{n}>, <32 x ptr>, i32, <32 x i1>)
"""
FEW = 2
"""Up to this many lanes are moved one by one. A later read of the whole register must wait until
the stores of single lanes have reached the cache, so that a gather is faster for more lanes."""

_ACCESS = f"""
define void @{{name}}({{arguments}}) {{{{
entry:
  %count = call i64 @llvm.ctpop.i64(i64 %mask)
  %is_none = icmp eq i64 %count, 0
  br i1 %is_none, label %done, label %any
any:
  %is_few = icmp ule i64 %count, {FEW}
  br i1 %is_few, label %each, label %many
each:
  %rest = phi i64 [%mask, %any], [%after, %each]
  %i = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %pa = getelementptr i64, ptr %addresses, i64 %i
  %ea = load i64, ptr %pa, align 8
  %es = mul i64 %step, %i
  %eb = add i64 %start, %es
  %ew = add i64 %ea, %eb
  %ep = inttoptr i64 %ew to ptr
  %el = getelementptr i{{wide}}, ptr %lanes, i64 %i
  {{each}}
  %less = sub i64 %rest, 1
  %after = and i64 %rest, %less
  %more = icmp ne i64 %after, 0
  br i1 %more, label %each, label %done
many:
  %a = load <32 x i64>, ptr %addresses, align 8
  %s0 = insertelement <32 x i64> poison, i64 %start, i64 0
  %s = shufflevector <32 x i64> %s0, <32 x i64> poison, <32 x i32> zeroinitializer
  %n0 = insertelement <32 x i64> poison, i64 %step, i64 0
  %n = shufflevector <32 x i64> %n0, <32 x i64> poison, <32 x i32> zeroinitializer
  %l = mul <32 x i64> %n, <{{numbers}}>
  %b = add <32 x i64> %s, %l
  %w = add <32 x i64> %a, %b
  %p = inttoptr <32 x i64> %w to <32 x ptr>
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  {{many}}
  br label %done
done:
  ret void
}}}}
"""


def loaded(
    text: WarpText, kind: str, element: Operand, blended: bool, refuse: Refuse
) -> tuple[str, str]:
    """Return the function that loads lanes of a type, and its target; the other lanes keep their
    value if `blended`."""
    if not isinstance(element, Register):
        raise refuse("a result that is no register")
    bits, wide = 8 * TYPE_BYTES[kind], 8 * TYPE_BYTES[element.type]
    if wide < bits or element.type == "pred":
        raise refuse("a register narrower than its type")
    grow = "sext" if kind[0] == "s" else "zext"
    name = f"load{bits}" if bits == wide else f"load{bits}_{grow}{wide}"
    name += "_blended" if blended else ""
    how = "bitcast" if bits == wide else grow
    called = text.fragments.once(name, TYPES, _access(name, bits, wide, f"""
  %e = load i{bits}, ptr %ep, align 1
  %f = {how} i{bits} %e to i{wide}
  store i{wide} %f, ptr %el, align {wide // 8}
""", f"""
  %x = call <32 x i{bits}> @llvm.masked.gather.v32i{bits}.v32p0(
    <32 x ptr> %p, i32 1, <32 x i1> %m, <32 x i{bits}> zeroinitializer)
  %v = {how} <32 x i{bits}> %x to <32 x i{wide}>
  %old = load <32 x i{wide}>, ptr %lanes, align 8
  %kept = select <32 x i1> %m, <32 x i{wide}> %v, <32 x i{wide}> %old
  store <32 x i{wide}> {"%kept" if blended else "%v"}, ptr %lanes, align 8
"""))  # fmt: skip
    return called, text.place(element)


def stored(text: WarpText, kind: str, wide: int) -> str:
    """Return the function that stores lanes of a type, from a register of `wide` bits per lane."""
    bits = 8 * TYPE_BYTES[kind]
    name = f"store{bits}_{wide}"
    cut = "bitcast" if bits == wide else "trunc"
    called: str = text.fragments.once(name, TYPES, _access(name, bits, wide, f"""
  %f = load i{wide}, ptr %el, align {wide // 8}
  %e = {cut} i{wide} %f to i{bits}
  store i{bits} %e, ptr %ep, align 1
""", f"""
  %v = load <32 x i{wide}>, ptr %lanes, align 8
  %x = {cut} <32 x i{wide}> %v to <32 x i{bits}>
  call void @llvm.masked.scatter.v32i{bits}.v32p0(
    <32 x i{bits}> %x, <32 x ptr> %p, i32 1, <32 x i1> %m)
"""))  # fmt: skip
    return called


def _access(name: str, bits: int, wide: int, each: str, many: str) -> str:
    """Return a function that moves `bits` per lane between memory and registers of `wide` bits per
    lane.

    `each` moves a lane in memory at %ep and in the register at %el; `many` moves all lanes, at %p
    and %lanes.
    """
    return _GATHER.format(n=bits) + _ACCESS.format(
        name=name, arguments=ARGUMENTS, wide=wide, numbers=_LANES, each=each, many=many
    )
