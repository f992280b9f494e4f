"""The moves of lanes' bytes between memory and registers: loads, stores, atomic updates.

Each is a function in LLVM assembly that takes one warp: a base, the bytes between its lanes, 32
addresses, the mask of the lanes, and the register. Machine code calls it for a warp; the
interpreter for all warps of a group, with the pointers of `reach`.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from ....jit.machine_code import address, compile_function
from ....jit.structure import I64
from ..ops.lanes import LANES, Array, Bits

_NUMBERS = ", ".join(f"i64 {lane}" for lane in range(LANES))
POINTERS = f"""\
  %a = load <32 x i64>, ptr %addresses, align 8
  %s0 = insertelement <32 x i64> poison, i64 %start, i64 0
  %s = shufflevector <32 x i64> %s0, <32 x i64> poison, <32 x i32> zeroinitializer
  %n0 = insertelement <32 x i64> poison, i64 %step, i64 0
  %n = shufflevector <32 x i64> %n0, <32 x i64> poison, <32 x i32> zeroinitializer
  %l = mul <32 x i64> %n, <{_NUMBERS}>
  %b = add <32 x i64> %s, %l
  %w = add <32 x i64> %a, %b
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>"""
"""The place of each lane's bytes, %w, and whether the lane is in the mask, %m."""

PARAMETERS = "i64 %start, i64 %step, ptr %addresses, i64 %mask, ptr %lanes"
TYPES = "i64, i64, ptr, i64, ptr"
"""Parameter types of a move: the base of the space, the bytes between its lanes, the addresses, the
mask of the lanes, the register."""

FEW = 2
"""Up to this many lanes are moved one by one. A later read of the whole register must wait until
the stores of single lanes have reached the cache, so that a gather is faster for more lanes."""

_GATHER = """
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare <32 x i{n}> @llvm.masked.gather.v32i{n}.v32p0(<32 x ptr>, i32, <32 x i1>, <32 x i{n}>)
declare void @llvm.masked.scatter.v32i{n}.v32p0(<32 x i{n}>, <32 x ptr>, i32, <32 x i1>)
"""

_MOVE = """
define void @{name}({parameters}) {{
entry:
  %count = call i64 @llvm.ctpop.i64(i64 %mask)
  %is_none = icmp eq i64 %count, 0
  br i1 %is_none, label %done, label %any
any:
  %is_few = icmp ule i64 %count, {few}
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
  %el = getelementptr i{wide}, ptr %lanes, i64 %i
  {each}
  %less = sub i64 %rest, 1
  %after = and i64 %rest, %less
  %more = icmp ne i64 %after, 0
  br i1 %more, label %each, label %done
many:
{pointers}
  %p = inttoptr <32 x i64> %w to <32 x ptr>
  {many}
  br label %done
done:
  ret void
}}
"""

_UPDATE = """define internal {t} @{name}.new({t} %old, {t} %b, {t} %d) alwaysinline {{
  {body}
  ret {t} %new
}}
define void @{name}({parameters}, ptr %bs, ptr %ds) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %after]
  %bit = lshr i64 %mask, %i
  %on = trunc i64 %bit to i1
  br i1 %on, label %change, label %after
change:
  %pa = getelementptr i64, ptr %addresses, i64 %i
  %a = load i64, ptr %pa
  %own = mul i64 %step, %i
  %a0 = add i64 %a, %start
  %a1 = add i64 %a0, %own
  %pw = inttoptr i64 %a1 to ptr
  %pb = getelementptr {t}, ptr %bs, i64 %i
  %b = load {t}, ptr %pb, align 1
  %pd = getelementptr {t}, ptr %ds, i64 %i
  %d = load {t}, ptr %pd, align 1
  {change}
  %po = getelementptr {t}, ptr %lanes, i64 %i
  store {t} %old, ptr %po, align 1
  br label %after
after:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 32
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

_ALONE = """\
%old = load {t}, ptr %pw, align 1
  %new = call {t} @{name}.new({t} %old, {t} %b, {t} %d)
  store {t} %new, ptr %pw, align 1"""
_AMONG_THREADS = "%old = atomicrmw {fetch} ptr %pw, {t} %b monotonic"

_GROUP = """
define void @{name}.group(i64 %n, ptr %addresses, ptr %masks, i64 %start{parameters}) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %pm = getelementptr i32, ptr %masks, i64 %i
  %m = load i32, ptr %pm
  %mask = zext i32 %m to i64
  %at = shl i64 %i, 5
  %pa = getelementptr i64, ptr %addresses, i64 %at
{places}
  call void @{name}(i64 %start, i64 0, ptr %pa, i64 %mask{arguments})
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def load_text(name: str, bits: int, wide: int, how: str, is_blended: bool = False) -> str:
    """Return the load of `bits` per lane into registers of `wide` bits, extended by `how`; with
    `is_blended` the other lanes keep their value."""
    return _move_text(name, bits, wide, f"""
  %e = load i{bits}, ptr %ep, align 1
  %f = {how} i{bits} %e to i{wide}
  store i{wide} %f, ptr %el, align {wide // 8}
""", f"""
  %x = call <32 x i{bits}> @llvm.masked.gather.v32i{bits}.v32p0(
    <32 x ptr> %p, i32 1, <32 x i1> %m, <32 x i{bits}> zeroinitializer)
  %v = {how} <32 x i{bits}> %x to <32 x i{wide}>
  %old = load <32 x i{wide}>, ptr %lanes, align 8
  %kept = select <32 x i1> %m, <32 x i{wide}> %v, <32 x i{wide}> %old
  store <32 x i{wide}> {"%kept" if is_blended else "%v"}, ptr %lanes, align 8
""")  # fmt: skip


def store_text(name: str, bits: int, wide: int) -> str:
    """Return the store of `bits` per lane from registers of `wide` bits."""
    cut = "bitcast" if bits == wide else "trunc"
    return _move_text(name, bits, wide, f"""
  %f = load i{wide}, ptr %el, align {wide // 8}
  %e = {cut} i{wide} %f to i{bits}
  store i{bits} %e, ptr %ep, align 1
""", f"""
  %v = load <32 x i{wide}>, ptr %lanes, align 8
  %x = {cut} <32 x i{wide}> %v to <32 x i{bits}>
  call void @llvm.masked.scatter.v32i{bits}.v32p0(
    <32 x i{bits}> %x, <32 x ptr> %p, i32 1, <32 x i1> %m)
""")  # fmt: skip


def _move_text(name: str, bits: int, wide: int, each: str, many: str) -> str:
    """Return a function that moves `bits` per lane between memory and registers of `wide` bits per
    lane.

    `each` moves a lane in memory at %ep and in the register at %el; `many` moves all lanes, at %p
    and %lanes.
    """
    return _GATHER.format(n=bits) + _MOVE.format(
        name=name,
        parameters=PARAMETERS,
        few=FEW,
        wide=wide,
        pointers=POINTERS,
        each=each,
        many=many,
    )


def update_text(name: str, element: str, body: str, definitions: str = "", fetch: str = "") -> str:
    """Return an atomic update of one element per lane, in order; `body` is as in `op.update`.

    Threads may run the update beside one another if it is LLVM's operation `fetch`.
    """
    change = (_AMONG_THREADS if fetch else _ALONE).format(name=name, t=element, fetch=fetch)
    update = _UPDATE.format(name=name, t=element, body=body, parameters=PARAMETERS, change=change)
    return definitions + update


def _of_group(text: str, name: str, registers: dict[str, str]) -> Callable[..., None]:
    """Compile a move for all warps of a group; `registers` are the types of its arrays of lanes."""
    places = "\n".join(
        f"  %p{register} = getelementptr {kind}, ptr %{register}, i64 %at"
        for register, kind in registers.items()
    )
    parameters = "".join(f", ptr %{register}" for register in registers)
    arguments = "".join(f", ptr %p{register}" for register in registers)
    whole = text + _GROUP.format(
        name=name, parameters=parameters, places=places, arguments=arguments
    )
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    kinds = (word, pointer, pointer, word, *(pointer,) * len(registers))
    return compile_function(whole, f"{name}.group", *kinds)


@cache
def _load(bits: int) -> Callable[..., None]:
    return _of_group(load_text("load", bits, bits, "bitcast"), "load", {"lanes": f"i{bits}"})


@cache
def _store(bits: int) -> Callable[..., None]:
    return _of_group(store_text("store", bits, bits), "store", {"lanes": f"i{bits}"})


def load_lanes(pointers: I64, lanes: Bits, element: int, dtype: np.dtype[Any]) -> Array:
    """Return an element behind the pointer of each of the lanes, (warps, 32); others are 0."""
    to = np.zeros((len(lanes), LANES), dtype)
    size = dtype.itemsize
    _load(8 * size)(len(lanes), address(pointers), address(lanes), element * size, address(to))
    return to


def store_lanes(
    pointers: I64, lanes: Bits, element: int, dtype: np.dtype[Any], value: Array
) -> None:
    """Write an element behind the pointer of each of the lanes, in order of warp and lane."""
    values, size = _whole(value, dtype, len(lanes)), dtype.itemsize
    store = _store(8 * size)
    store(len(lanes), address(pointers), address(lanes), element * size, address(values))


Update: TypeAlias = Callable[[I64, Bits, int, list[Array]], Array]
"""Changes an element of each lane; takes pointers, lanes, the element's number, and one or two
operands."""


@cache
def updater(name: str, dtype: np.dtype[Any], code: tuple[str, str, str], fetch: str = "") -> Update:
    """Return the atomic update of elements of a type; `code` is as of `op.update`, `fetch` as of
    `update_text`."""
    kind, size = code[0], dtype.itemsize
    run = _of_group(
        update_text(name, *code, fetch=fetch), name, {"lanes": kind, "bs": kind, "ds": kind}
    )

    def update(pointers: I64, lanes: Bits, element: int, values: list[Array]) -> Array:
        old = np.zeros((len(lanes), LANES), dtype)
        operands = [_whole(value, dtype, len(lanes)) for value in values]
        places = map(address, (old, operands[0], operands[-1]))
        run(len(lanes), address(pointers), address(lanes), element * size, *places)
        return old

    return update


def _whole(value: Array, dtype: np.dtype[Any], warps: int) -> Array:
    """Return a value as (warps, 32) contiguous elements of a type of its size."""
    return np.ascontiguousarray(np.broadcast_to(value.view(dtype), (warps, LANES)))
