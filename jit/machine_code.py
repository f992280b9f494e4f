"""LLVM assembly as machine code of this processor, kept between runs (`base/cache.py`)."""

import ctypes
import hashlib
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, cast

from ..base.cache import keep, key_of, load
from ..base.claim import Lock

KIND, MOST_BYTES = "native", 1 << 27
"""What machine code is kept as between runs: compiling a loop takes ten milliseconds, reading it a
fraction of one."""


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
    the time, and a little less tight; with 0 it is loose, and the time grows as the text does, not
    as its square.
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
                keep(KIND, key, code, MOST_BYTES)
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            _LOADED.add(key)
    return lambda name: _address(engine, symbol(name, assembly))


_LOCK = Lock()
"""One thread at a time compiles: waves that run side by side may need the same loop first."""


def _address(engine: Any, name: str) -> int:
    with _LOCK:
        location = int(engine.get_function_address(name))
    assert location, f"nothing compiled is called {name}"
    return location


_LOADED: set[str] = set()
_DEFINED = re.compile(r"^define (?!internal )[^@\n]*@([\w.]+)", re.MULTILINE)
_NAME = re.compile(r"@([\w.]+)")


def _with_symbols(assembly: str) -> str:
    """Return a text with each function that it exports under its symbol."""
    symbols = {name: symbol(name, assembly) for name in _DEFINED.findall(assembly)}
    return _NAME.sub(lambda match: "@" + symbols.get(match[1], match[1]), assembly)


def _compile(assembly: str, vectors: bool, effort: int) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine(effort)
    module = llvm.parse_assembly(assembly)
    level = min(effort, 1) * (2 if vectors else 1)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = vectors
    options.loop_interleaving = options.loop_unrolling = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return cast(bytes, machine.emit_object(module))


def compile_function(assembly: str, name: str, *arguments: Any) -> Callable[..., None]:
    """Compile one function of LLVM assembly to be called with C types."""
    return ctypes.CFUNCTYPE(None, *arguments)(compile_assembly(assembly)(name))


def address(a: Any) -> int:
    """Return where an array's first element lies."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(a))
    except (TypeError, ValueError):  # empty, read-only, or not side by side: several times slower
        return int(a.__array_interface__["data"][0])
