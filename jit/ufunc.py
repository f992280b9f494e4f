"""Compiled NumPy functions (ufuncs), for operations that NumPy cannot do exactly or in one pass.

An operation is LLVM assembly for one element. LLVM makes the loop around it at its first use, and
NumPy does broadcasting and allocation. `llvm.fma` and its kin become one instruction where the
processor has it, and libm's exact function elsewhere: the result is the same on every machine.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..base.dataclass import dataclass
from .machine_code import address, compile_assembly

CHUNK = 1024
"""Elements per chunk of a loop; operands that are not contiguous are gathered."""

_OPERANDS = 12
_TYPES = {
    **{f"{sign}{size}": f"i{8 * size}" for sign in "iu" for size in (1, 2, 4, 8)},
    **{"?": "i8", "f4": "float", "f8": "double"},
}

_INNER = """{declarations}
define internal void @{name}(i64 %n{parameters}) {attributes} {{
entry:
  {before}
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]{loads}
  {body}{stores}
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  {after}
  ret void
}}
define void @{name}_many(i64 %n, ptr %p) {attributes} {{{places}
  call void @{name}(i64 %n{arguments})
  ret void
}}
"""

_GATHER = """
define void @gather{bits}(i64 %n, ptr %from, i64 %step, ptr noalias %to) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %at = mul i64 %i, %step
  %p = getelementptr i8, ptr %from, i64 %at
  %x = load i{bits}, ptr %p
  %q = getelementptr i{bits}, ptr %to, i64 %i
  store i{bits} %x, ptr %q
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""

_OUTER = f"""
define void @elementwise(ptr %operands, ptr %lengths, ptr %steps, ptr %plan) {{
entry:
  %n = load i64, ptr %lengths
  %buffers = alloca [{_OPERANDS} x [{CHUNK} x i64]], align 64
  %use = alloca [{_OPERANDS} x ptr], align 64
  %inner = load ptr, ptr %plan
  %count_at = getelementptr i64, ptr %plan, i64 1
  %count = load i64, ptr %count_at
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %chunk
chunk:
  %start = phi i64 [0, %entry], [%after, %run]
  %left = sub i64 %n, %start
  %short = icmp ult i64 %left, {CHUNK}
  %length = select i1 %short, i64 %left, i64 {CHUNK}
  %is_first = icmp eq i64 %start, 0
  br label %operand
operand:
  %k = phi i64 [0, %chunk], [%k_next, %ready]
  %step_at = getelementptr i64, ptr %steps, i64 %k
  %step = load i64, ptr %step_at
  %base_at = getelementptr ptr, ptr %operands, i64 %k
  %base = load ptr, ptr %base_at
  %offset = mul i64 %start, %step
  %source = getelementptr i8, ptr %base, i64 %offset
  %slot = add i64 %k, 2
  %gather_at = getelementptr ptr, ptr %plan, i64 %slot
  %gather = load ptr, ptr %gather_at
  %size_slot = add i64 %k, {_OPERANDS + 2}
  %size_at = getelementptr i64, ptr %plan, i64 %size_slot
  %size = load i64, ptr %size_at
  %beside = icmp eq i64 %step, %size
  %is_result = icmp eq i64 %size, 0
  %direct = or i1 %beside, %is_result
  br i1 %direct, label %ready, label %apart
apart:
  %buffer = getelementptr [{_OPERANDS} x [{CHUNK} x i64]], ptr %buffers, i64 0, i64 %k
  %moves = icmp ne i64 %step, 0
  %fill = or i1 %moves, %is_first
  br i1 %fill, label %fetch, label %ready
fetch:
  call void %gather(i64 %length, ptr %source, i64 %step, ptr %buffer)
  br label %ready
ready:
  %place = phi ptr [%source, %operand], [%buffer, %apart], [%buffer, %fetch]
  %use_at = getelementptr ptr, ptr %use, i64 %k
  store ptr %place, ptr %use_at
  %k_next = add i64 %k, 1
  %more_operands = icmp ult i64 %k_next, %count
  br i1 %more_operands, label %operand, label %run
run:
  call void %inner(i64 %length, ptr %use)
  %after = add i64 %start, {CHUNK}
  %more = icmp ult i64 %after, %n
  br i1 %more, label %chunk, label %done
done:
  ret void
}}
"""


@cache
def _outer() -> tuple[int, dict[int, int]]:
    """Return the address of the loop over chunks, and the gathering functions by size in bytes."""
    sizes = (1, 2, 4, 8)
    find = compile_assembly(
        "".join(_GATHER.format(bits=8 * size) for size in sizes) + _OUTER, False
    )
    return find("elementwise"), {size: find(f"gather{8 * size}") for size in sizes}


@cache
def _make_ufunc() -> Callable[..., Any]:
    """Return NumPy's own C function that makes a ufunc of a loop."""
    table = import_module("numpy._core._multiarray_umath")._UFUNC_API
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = ctypes.cast(get(table, None), ctypes.POINTER(ctypes.c_void_p))
    p, i = ctypes.c_void_p, ctypes.c_int
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, p, p, p, i, i, i, i, p, p, i)
    return prototype(api[1])  # PyUFunc_FromFuncAndData


_ALIVE: list[Any] = []


@dataclass(frozen=True, slots=True)
class Fragment:
    """The text of one operation of `elementwise`, for use in other loops."""

    name: str
    sources: tuple[str, ...]
    results: tuple[str, ...]
    body: str
    declarations: str
    rounding: int

    def types(self, codes: Sequence[str]) -> list[str]:
        """Return LLVM's names of NumPy types."""
        return [_TYPES[code] for code in codes]


_FRAGMENTS: dict[Any, Fragment] = {}


def fragment_of(function: Any) -> Fragment | None:
    """Return the text of a function that `elementwise` made, None for any other."""
    return _FRAGMENTS.get(function)


def elementwise(
    name: str,
    sources: Sequence[str],
    results: Sequence[str],
    body: str,
    declarations: str = "",
    rounding: int = 1,
) -> Callable[..., Any]:
    """Return a NumPy function that computes `body` for every element.

    `sources` and `results` are NumPy types (`u4`, `f8`, `?`); the body reads %x0, %x1... and sets
    %y0, %y1... It runs under LLVM's rounding mode `rounding`: 0 to zero, 1 to nearest, 2 up, 3
    down. Only constrained operations obey modes other than 1.
    """
    types = [_TYPES[code] for code in (*sources, *results)]
    loads = "".join(
        f"\n  %a{k} = getelementptr {types[k]}, ptr %p{k}, i64 %i"
        f"\n  %x{k} = load {types[k]}, ptr %a{k}"
        for k in range(len(sources))
    )
    stores = "".join(
        f"\n  %b{k} = getelementptr {t}, ptr %p{k + len(sources)}, i64 %i"
        f"\n  store {t} %y{k}, ptr %b{k}"
        for k, t in enumerate(types[len(sources) :])
    )
    places = "".join(
        f"\n  %at{k} = getelementptr ptr, ptr %p, i64 {k}\n  %q{k} = load ptr, ptr %at{k}"
        for k in range(len(types))
    )
    directed = rounding != 1
    text = _INNER.format(
        name=name,
        parameters="".join(f", ptr noalias %p{k}" for k in range(len(types))),
        arguments="".join(f", ptr %q{k}" for k in range(len(types))),
        attributes="strictfp" if directed else "",
        before=f"call void @llvm.set.rounding(i32 {rounding})" if directed else "",
        after="call void @llvm.set.rounding(i32 1)" if directed else "",
        declarations=declarations + ("declare void @llvm.set.rounding(i32)" if directed else ""),
        loads=loads,
        body=body,
        stores=stores,
        places=places,
    )
    inner = compile_assembly(text)(f"{name}_many")
    ufunc = _ufunc(name, inner, sources, results)
    fields = (name, tuple(sources), tuple(results), body, declarations, rounding)
    _FRAGMENTS[ufunc] = Fragment(*fields)
    return ufunc


def _ufunc(
    name: str, inner: int, sources: Sequence[str], results: Sequence[str]
) -> Callable[..., Any]:
    outer, gathers = _outer()
    dtypes = [np.dtype(code) for code in (*sources, *results)]
    plan = np.zeros(2 * _OPERANDS + 2, dtype=np.int64)
    plan[0], plan[1] = inner, len(dtypes)
    for k, dtype in enumerate(dtypes):
        plan[k + 2] = gathers[dtype.itemsize]
        plan[k + 2 + _OPERANDS] = dtype.itemsize if k < len(sources) else 0
    loops, plans = (ctypes.c_void_p * 1)(outer), (ctypes.c_void_p * 1)(address(plan))
    types = ctypes.create_string_buffer(bytes(dtype.num for dtype in dtypes), len(dtypes))
    label = ctypes.create_string_buffer(name.encode())
    _ALIVE.append((plan, loops, plans, types, label))
    places = [ctypes.addressof(part) for part in (loops, plans, types, label)]
    ufunc = _make_ufunc()(*places[:3], 1, len(sources), len(results), -1, places[3], places[3], 0)
    return cast(Callable[..., Any], ufunc)


@cache
def _select(size: int) -> Callable[..., Any]:
    code = f"u{size}"
    body = f"%c = trunc i8 %x0 to i1\n  %y0 = select i1 %c, i{8 * size} %x1, i{8 * size} %x2"
    return elementwise(f"select{8 * size}", ("?", code, code), (code,), body)


def select(condition: NDArray[Any], a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return a where the boolean condition holds, else b (one type, broadcast together).

    The same as `numpy.where`, which takes ten times longer on conditions without a pattern.
    """
    dtype = b.dtype
    if dtype.itemsize == 16:
        wide: NDArray[Any] = np.where(condition, a, b)
        return wide
    bits = _UNSIGNED[dtype.itemsize]
    result: NDArray[Any] = _select(dtype.itemsize)(condition, a.view(bits), b.view(bits)).view(
        dtype
    )
    return result


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
