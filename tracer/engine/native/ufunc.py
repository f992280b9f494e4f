"""Compiled loops for what NumPy cannot do exactly or in one pass, as NumPy functions (ufuncs).

An operation is written in LLVM assembly for one element; the loop around it is LLVM's, made when
first used, and NumPy brings broadcasting and allocation. `llvm.fma` and its kin become one
instruction where the processor has it and libm's exact function where not: the same result on
every machine.
"""

import ctypes
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from threading import Lock
from typing import Any, cast

import numpy as np

from ....cache import keep, key_of, load
from ..lanes import Array

KIND = "native"
"""What machine code is kept as between runs: compiling a loop takes ten milliseconds, reading it a
fraction of one."""

CHUNK = 1024
"""Elements that a loop takes at a time; operands that do not lie side by side are gathered."""

_OPERANDS = 12
_TYPES = {
    **{"?": "i8", "u1": "i8", "u2": "i16", "u4": "i32", "u8": "i64"},
    **{"f4": "float", "f8": "double"},
}

_INNER = """{declarations}
define void @{name}(i64 %n{parameters}) {attributes} {{
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
def _engine() -> Any:
    """Return LLVM's just-in-time compiler for this processor, and keep it alive."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(2))


@cache
def _machine(effort: int) -> Any:
    """Return what makes machine code for this processor, with this effort, 0 to 3."""
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=effort
    )


def _features() -> str:
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_features().flatten())


@cache
def _processor() -> str:
    """Return what compiled code depends on beside its text."""
    import llvmlite.binding as llvm

    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {_features()} {version}"


def symbol(name: str, assembly: str) -> str:
    """Return what a function that a text defines is called once it is compiled.

    A process has one table of compiled functions for everyone who compiles, so that a name has
    the hash of its text in it: texts that both define `fill` never reach the other's.
    """
    return f"{name}.{_mark(assembly)}"


@lru_cache(64)
def _mark(assembly: str) -> str:
    """Return the hash of a text: a kernel's many functions ask for that of one long text."""
    return hashlib.sha256(assembly.encode()).hexdigest()[:24]


def compile_assembly(assembly: str, vectors: bool = True, effort: int = 2) -> Callable[[str], int]:
    """Compile LLVM assembly, optimised for this processor; return what finds a function in it.

    Other texts may call what it defines by `symbol`. With `effort` 1 machine code is made in half
    the time, and a little less tight.
    """
    import llvmlite.binding as llvm

    with _LOCK:
        engine = _engine()
        text = _with_symbols(assembly)
        key = key_of(_processor(), str(vectors), str(effort), text)
        if key not in _LOADED:
            code = load(KIND, key)
            if code is None:
                code = _compile(text, vectors, effort)
                keep(KIND, key, code)
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            _LOADED.add(key)
    return lambda name: _address(engine, symbol(name, assembly))


_LOCK = Lock()
"""One thread at a time compiles: waves that run side by side may need the same loop first."""


def _address(engine: Any, name: str) -> int:
    with _LOCK:
        found = int(engine.get_function_address(name))
    assert found, f"nothing compiled is called {name}"
    return found


_LOADED: set[str] = set()
_DEFINED = re.compile(r"^define (?!internal )[^@\n]*@([\w.]+)", re.MULTILINE)
_NAME = re.compile(r"@([\w.]+)")


def _with_symbols(assembly: str) -> str:
    """Return a text with each function that it exports under its symbol."""
    symbols = {name: symbol(name, assembly) for name in _DEFINED.findall(assembly)}
    return _NAME.sub(lambda found: "@" + symbols.get(found[1], found[1]), assembly)


def _compile(assembly: str, vectors: bool, effort: int) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine(effort)
    module = llvm.parse_assembly(assembly)
    options = llvm.create_pipeline_tuning_options(speed_level=2 if vectors else 1)
    options.loop_vectorization = vectors
    options.loop_interleaving = options.loop_unrolling = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return cast(bytes, machine.emit_object(module))


def compile_function(assembly: str, name: str, *arguments: Any) -> Callable[..., None]:
    """Compile one function of LLVM assembly to be called with C types."""
    return ctypes.CFUNCTYPE(None, *arguments)(compile_assembly(assembly)(name))


@cache
def _outer() -> tuple[int, dict[int, int]]:
    """Return where the loop over chunks lies, and the gathering functions by size in bytes."""
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


_KEPT: list[Any] = []


@dataclass(frozen=True, slots=True)
class Fragment:
    """What `elementwise` was given: the text of one operation, to be used in other loops too."""

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

    `sources` and `results` are NumPy types (`u4`, `f8`, `?`); the body takes %x0, %x1... and
    sets %y0, %y1... It runs under LLVM's rounding mode `rounding`: 0 to zero, 1 to nearest, 2 up,
    3 down; other modes than 1 are heeded by constrained operations only.
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
    made = _ufunc(name, inner, sources, results)
    given = (name, tuple(sources), tuple(results), body, declarations, rounding)
    _FRAGMENTS[made] = Fragment(*given)
    return made


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
    _KEPT.append((plan, loops, plans, types, label))
    places = [ctypes.addressof(part) for part in (loops, plans, types, label)]
    made = _make_ufunc()(*places[:3], 1, len(sources), len(results), -1, places[3], places[3], 0)
    return cast(Callable[..., Any], made)


@cache
def _select(size: int) -> Callable[..., Any]:
    code = f"u{size}"
    body = f"%c = trunc i8 %x0 to i1\n  %y0 = select i1 %c, i{8 * size} %x1, i{8 * size} %x2"
    return elementwise(f"select{8 * size}", ("?", code, code), (code,), body)


def select(condition: Array, a: Array, b: Array) -> Array:
    """Return a where the boolean condition holds, else b (one type, broadcast together).

    The same as `numpy.where`, which takes ten times longer on conditions without a pattern.
    """
    dtype = b.dtype
    if dtype.itemsize == 16:
        wide: Array = np.where(condition, a, b)
        return wide
    bits = _UNSIGNED[dtype.itemsize]
    chosen: Array = _select(dtype.itemsize)(condition, a.view(bits), b.view(bits)).view(dtype)
    return chosen


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def address(a: Array) -> int:
    """Return where an array's first element lies."""
    buffer: Any = a
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    except (TypeError, ValueError):  # empty, read-only, or not side by side: several times slower
        return int(a.__array_interface__["data"][0])
