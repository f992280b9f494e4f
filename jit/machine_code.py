"""Compile LLVM assembly to machine code of this processor, and cache it between runs
(`base/cache.py`)."""

import ctypes
import hashlib
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, cast

from ..base.cache import Cache, key_of
from ..base.claim import Lock

_CODE: Cache[bytes] = Cache("native", 1 << 27, bytes, bytes)
"""Machine code: compiling a loop takes ten milliseconds, reading it from the cache a fraction of
one."""


@cache
def _engine() -> Any:
    """Return LLVM's just-in-time compiler for this processor, and keep it alive."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(2))


@cache
def _machine(effort: int) -> Any:
    """Return the code generator for this processor with an effort of 0 to 3."""
    import llvmlite.binding as llvm

    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=effort
    )


def _features() -> str:
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_features().flatten())


@cache
def _processor() -> str:
    """Return the inputs of the cache key other than the text."""
    import llvmlite.binding as llvm

    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvm.get_default_triple()} {llvm.get_host_cpu_name()} {_features()} {version}"


def symbol(name: str, assembly: str) -> str:
    """Return the symbol of a function that a text defines.

    A process has one symbol table for all compiled texts. The symbol therefore contains the hash of
    its text: two texts that both define `fill` do not clash.
    """
    return f"{name}.{_mark(assembly)}"


@lru_cache(64)
def _mark(assembly: str) -> str:
    """Return the hash of a text; cached, because a kernel has many functions in one long text."""
    return hashlib.sha256(assembly.encode()).hexdigest()[:24]


def compile_assembly(assembly: str, vectors: bool = True, effort: int = 2) -> Callable[[str], int]:
    """Compile LLVM assembly, optimised for this processor; return a function that finds the address
    of a function by name.

    Other texts may call its functions by `symbol`. Effort 1 takes half the time of 2, for slightly
    slower code; with 0 the code is slow, but the compile time is linear in the length of the text,
    not quadratic.
    """
    import llvmlite.binding as llvm

    with _LOCK:
        engine = _engine()
        text = _with_symbols(assembly)
        key = key_of(_processor(), str(vectors), str(effort), text)
        if key not in _LOADED:
            code = _CODE.get(key, lambda: _compile(text, vectors, effort))
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            _LOADED.add(key)
    return lambda name: _address(engine, symbol(name, assembly))


_LOCK = Lock()
"""One thread compiles at a time: parallel waves may need the same loop first."""


def _address(engine: Any, name: str) -> int:
    with _LOCK:
        location = int(engine.get_function_address(name))
    assert location, f"nothing compiled is called {name}"
    return location


_LOADED: set[str] = set()
_DEFINED = re.compile(r"^define (?!internal )[^@\n]*@([\w.]+)", re.MULTILINE)
_NAME = re.compile(r"@([\w.]+)")


def _with_symbols(assembly: str) -> str:
    """Return a text with each exported function renamed to its symbol."""
    symbols = {name: symbol(name, assembly) for name in _DEFINED.findall(assembly)}
    return _NAME.sub(lambda match: "@" + symbols.get(match[1], match[1]), assembly)


def _compile(assembly: str, vectors: bool, effort: int) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine(effort)
    module = llvm.parse_assembly(assembly)
    # of a kernel's blocks, which have no loops, level 2 makes the same code in more time
    level = (0, 1, 2 if vectors else 1)[effort]
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = vectors
    options.loop_interleaving = options.loop_unrolling = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return cast(bytes, machine.emit_object(module))


def compile_function(assembly: str, name: str, *arguments: Any) -> Callable[..., None]:
    """Compile one function of LLVM assembly to be called with C types."""
    return ctypes.CFUNCTYPE(None, *arguments)(compile_assembly(assembly)(name))


_address_of, _first_byte_of = ctypes.addressof, ctypes.c_char.from_buffer


def address(a: Any) -> int:
    """Return the address of an array's first element."""
    try:
        return _address_of(_first_byte_of(a))
    except (TypeError, ValueError):  # empty, read-only or strided: several times slower
        return int(a.__array_interface__["data"][0])
