"""Small compiled loops for what NumPy cannot do exactly (fused multiply-add) or fast (select).

The loops are LLVM's, made when first used. `llvm.fma` becomes one instruction where the processor
has it and libm's exact function where not: the same result on every machine.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .array import Array

_TYPES = {"f4": "float", "f8": "double", "u1": "i8", "u2": "i16", "u4": "i32", "u8": "i64"}

_FMA = """declare {t} @llvm.fma.{n}({t}, {t}, {t})"""
_FMA_BODY = "%v = call {t} @llvm.fma.{n}({t} %x0, {t} %x1, {t} %x2)"
_SELECT_BODY = "%b = trunc i8 %x0 to i1\n  %v = select i1 %b, {t} %x1, {t} %x2"


def _loop(name: str, sources: tuple[str, ...], result: str, body: str, declarations: str) -> str:
    """Write `out[i] = body(x0[i * s0], x1[i * s1], ...)` for i in 0..n as LLVM assembly."""
    parameters = "".join(f", ptr noalias %a{k}, i64 %s{k}" for k in range(len(sources)))
    loads = "".join(
        f"""
  %i{k} = mul i64 %i, %s{k}
  %p{k} = getelementptr {t}, ptr %a{k}, i64 %i{k}
  %x{k} = load {t}, ptr %p{k}"""
        for k, t in enumerate(sources)
    )
    return f"""
{declarations}
define void @{name}(i64 %n{parameters}, ptr noalias %out) {{
entry:
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]{loads}
  {body}
  %po = getelementptr {result}, ptr %out, i64 %i
  store {result} %v, ptr %po
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
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
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine), machine


def compile_function(assembly: str, name: str, *arguments: Any) -> Callable[..., None]:
    """Compile one function of LLVM assembly, optimised for this processor."""
    import llvmlite.binding as llvm

    engine, machine = _engine()
    module = llvm.parse_assembly(assembly)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    llvm.create_pass_builder(machine, options).getModulePassManager().run(
        module, llvm.create_pass_builder(machine, options)
    )
    engine.add_module(module)
    engine.finalize_object()
    return ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address(name))


@cache
def _elementwise(operation: str, code: str) -> Callable[..., None]:
    element = _TYPES[code]
    if operation == "fma":
        names = {"t": element, "n": "f32" if code == "f4" else "f64"}
        sources, body = (element,) * 3, _FMA_BODY.format(**names)
        declarations = _FMA.format(**names)
    else:
        sources, body, declarations = ("i8", element, element), _SELECT_BODY.format(t=element), ""
    name = f"{operation}_{code}"
    text = _loop(name, sources, element, body, declarations)
    operand = (ctypes.c_void_p, ctypes.c_int64)
    return compile_function(text, name, ctypes.c_int64, *operand * 3, ctypes.c_void_p)


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c, rounded once (float32 or float64, broadcast together)."""
    return _apply(_elementwise("fma", a.dtype.str[1:]), a, b, c)


def select(condition: Array, a: Array, b: Array) -> Array:
    """Return a where the boolean condition holds, else b (one type, broadcast together).

    The same as `numpy.where`, which takes ten times longer on conditions without a pattern.
    """
    code = f"u{a.dtype.itemsize}"
    return _apply(_elementwise("select", code), condition, a, b)


def _apply(loop: Callable[..., None], *sources: Array) -> Array:
    shape = np.broadcast_shapes(*(x.shape for x in sources))
    out = np.empty(shape, dtype=sources[-1].dtype)
    operands = [_flat(x, shape) for x in sources]
    places = [part for x in operands for part in (address(x), int(x.size > 1))]
    loop(out.size, *places, address(out))
    return out


def _flat(a: Array, shape: tuple[int, ...]) -> Array:
    """Return `a` contiguous in `shape`, or its single element as it is."""
    if a.size == 1:
        return a
    return np.ascontiguousarray(a if a.shape == shape else np.broadcast_to(a, shape))


def address(a: Array) -> int:
    """Return where an array's first element lies."""
    return int(a.__array_interface__["data"][0])
