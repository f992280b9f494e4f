"""The text of recursion: what a call puts aside and takes back, by depth of each lane.

Lanes that are as deep as one another, which most are, are moved together.
"""

from collections.abc import Callable

from ..frame.call_site import CallSite
from ..frame.register_frame import Frame
from .warp_lines import WarpText

ROOM, LOST = -1, -2
"""What a call asks Python for, instead of an escape: room for another level, or what to say of a
pointer that is no function's."""


def ask(text: WarpText, pc: int, what: int) -> str:
    """Call Python; return whether all is well."""
    back = text.field("escape", "ptr")
    failed = text.emit(f"call i64 {back}(i64 {pc}, i64 {what})")
    return text.emit(f"icmp eq i64 {failed}, 0")


def depths_of(text: WarpText, frame: Frame) -> str:
    """Return a pointer to how deep each lane is."""
    return text.emit(f"getelementptr i8, ptr %frame, i64 {frame.depth.offset}")


def put_levels(text: WarpText, frame: Frame) -> None:
    """Put into `%scratch` where the local memory of each lane's level begins."""
    called = text.fragments.once("levels", "ptr, i64, ptr", _LEVELS)
    depths = depths_of(text, frame)
    text.add(f"call void @{called}(ptr {depths}, i64 {frame.local_stride}, ptr %scratch)")


def put_aside(
    text: WarpText, frame: Frame, site: CallSite, mask: str, begin: Callable[[str], None]
) -> None:
    """Add what puts registers aside, in lanes `mask`; `begin` is told the label that follows."""
    depths = depths_of(text, frame)
    called = text.fragments.once("deepest", "ptr, i64", _DEEPEST, "i64")
    most = text.emit(f"call i64 @{called}(ptr {depths}, i64 {mask})")
    room = text.emit(f"icmp slt i64 {most}, {text.field('aside_levels')}")
    text.add(f"br i1 {room}, label %enough, label %narrow")
    text.lines.append("narrow:")
    text.add(f"br i1 {ask(text, site.pc, ROOM)}, label %enough, label %faulty")
    text.lines.append("enough:")
    begin("enough")
    _move(text, site, mask, depths, "aside")
    _deepen(text, depths, mask, 1)


def take_back(text: WarpText, frame: Frame, site: CallSite) -> None:
    """Add what takes back what was put aside, in the active lanes."""
    depths, mask = depths_of(text, frame), text.emit("zext i32 %active to i64")
    _deepen(text, depths, mask, -1)
    _move(text, site, mask, depths, "back")


def _deepen(text: WarpText, depths: str, mask: str, by: int) -> None:
    called = text.fragments.once("deepen", "ptr, i64, i32", _DEEPEN)
    text.add(f"call void @{called}(ptr {depths}, i64 {mask}, i32 {by})")


def _move(text: WarpText, site: CallSite, mask: str, depths: str, way: str) -> None:
    """Move what a call puts aside, there or back again."""
    row = text.emit("mul i64 %warp, ASIDE_BYTES")
    row = text.emit(f"getelementptr i8, ptr {text.field('aside', 'ptr')}, i64 {row}")
    stride = text.emit(f"mul i64 {text.field('warps')}, ASIDE_BYTES")
    for place, offset in site.aside:
        bits = 8 * place.size
        held = text.emit(f"getelementptr i8, ptr %frame, i64 {place.offset}")
        there = text.emit(f"getelementptr i8, ptr {row}, i64 {offset}")
        name = f"{way}{bits}"
        definition = (_ASIDE if way == "aside" else _BACK).format(name=name, bits=bits)
        called = text.fragments.once(name, "ptr, ptr, i64, ptr, i64", definition)
        given = f"ptr {held}, ptr {there}, i64 {stride}, ptr {depths}, i64 {mask}"
        text.add(f"call void @{called}({given})")


_LEVELS = """
define void @levels(ptr %depths, i64 %stride, ptr %to) {
  %d = load <32 x i32>, ptr %depths, align 4
  %w = zext <32 x i32> %d to <32 x i64>
  %s0 = insertelement <32 x i64> poison, i64 %stride, i64 0
  %s = shufflevector <32 x i64> %s0, <32 x i64> poison, <32 x i32> zeroinitializer
  %x = mul <32 x i64> %w, %s
  store <32 x i64> %x, ptr %to, align 8
  ret void
}
"""
_DEEPEST = """
declare i32 @llvm.vector.reduce.smax.v32i32(<32 x i32>)
define i64 @deepest(ptr %depths, i64 %mask) {
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %d = load <32 x i32>, ptr %depths, align 4
  %a = select <32 x i1> %m, <32 x i32> %d, <32 x i32> zeroinitializer
  %r = call i32 @llvm.vector.reduce.smax.v32i32(<32 x i32> %a)
  %w = zext i32 %r to i64
  ret i64 %w
}
"""
_DEEPEN = """
define void @deepen(ptr %depths, i64 %mask, i32 %by) {
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %d = load <32 x i32>, ptr %depths, align 4
  %b0 = insertelement <32 x i32> poison, i32 %by, i64 0
  %b = shufflevector <32 x i32> %b0, <32 x i32> poison, <32 x i32> zeroinitializer
  %n = add <32 x i32> %d, %b
  %x = select <32 x i1> %m, <32 x i32> %n, <32 x i32> %d
  store <32 x i32> %x, ptr %depths, align 4
  ret void
}
"""
_LEVEL_OF_ALL = """
declare i64 @llvm.cttz.i64(i64, i1)
define void @{{name}}(ptr %lanes, ptr %row, i64 %stride, ptr %depths, i64 %mask) {{{{
entry:
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %d = load <32 x i32>, ptr %depths, align 4
  %i = call i64 @llvm.cttz.i64(i64 %mask, i1 true)
  %fp = getelementptr i32, ptr %depths, i64 %i
  %f = load i32, ptr %fp, align 4
  %s0 = insertelement <32 x i32> poison, i32 %f, i64 0
  %s = shufflevector <32 x i32> %s0, <32 x i32> poison, <32 x i32> zeroinitializer
  %c = icmp ne <32 x i32> %d, %s
  %n = and <32 x i1> %c, %m
  %bits = bitcast <32 x i1> %n to i32
  %same = icmp eq i32 %bits, 0
  br i1 %same, label %all, label %each
all:
  %level = zext i32 %f to i64
  %at = mul i64 %level, %stride
  %p = getelementptr i8, ptr %row, i64 %at
  %new = load <32 x i{{bits}}>, ptr {source}, align 8
  %old = load <32 x i{{bits}}>, ptr {to}, align 8
  %x = select <32 x i1> %m, <32 x i{{bits}}> %new, <32 x i{{bits}}> %old
  store <32 x i{{bits}}> %x, ptr {to}, align 8
  ret void
each:
  %rest = phi i64 [%mask, %entry], [%after, %each]
  %j = call i64 @llvm.cttz.i64(i64 %rest, i1 true)
  %dp = getelementptr i32, ptr %depths, i64 %j
  %dj = load i32, ptr %dp, align 4
  %lj = zext i32 %dj to i64
  %aj = mul i64 %lj, %stride
  %rj = getelementptr i8, ptr %row, i64 %aj
  %there = getelementptr i{{bits}}, ptr %rj, i64 %j
  %here = getelementptr i{{bits}}, ptr %lanes, i64 %j
  %v = load i{{bits}}, ptr {from_lane}, align 1
  store i{{bits}} %v, ptr {to_lane}, align 1
  %less = sub i64 %rest, 1
  %after = and i64 %rest, %less
  %more = icmp ne i64 %after, 0
  br i1 %more, label %each, label %done
done:
  ret void
}}}}
"""
_ASIDE = _LEVEL_OF_ALL.format(source="%lanes", to="%p", from_lane="%here", to_lane="%there")
_BACK = _LEVEL_OF_ALL.format(source="%p", to="%lanes", from_lane="%there", to_lane="%here")
