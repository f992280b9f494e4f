"""nvJitLink, NVIDIA's assembler and linker as a library, through ctypes: PTX to cubin."""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from ...errors import CutraceError
from .toolkit import load_library

_PTX = 2  # nvJitLinkInputType


@dataclass(frozen=True, slots=True)
class Linked:
    """`cubin` is None when the assembler refused, and `errors` says why; `info` is its report."""

    cubin: bytes | None
    info: str
    errors: str


@cache
def _call(name: str) -> Any:
    """A function by its CUDA 12.0 symbol, which every release of the family keeps."""
    return getattr(load_library("nvJitLink"), f"__nvJitLink{name}_12_0")


def link_ptx(ptx: str, arch: str, *options: str) -> Linked:
    """Assemble `ptx` for `arch` (`sm_75`); `options` are nvJitLink's own (`-Xptxas=-v`)."""
    words = [f"-arch={arch}".encode(), *(option.encode() for option in options)]
    handle = ctypes.c_void_p()
    status = _call("Create")(
        ctypes.byref(handle), len(words), (ctypes.c_char_p * len(words))(*words)
    )
    if status:
        raise CutraceError(f"nvJitLink refused the options {b' '.join(words).decode()}: {status}")
    try:
        data = ptx.encode() + b"\0"
        failed = _call("AddData")(handle, _PTX, data, len(data), b"kernel.ptx")
        failed = failed or _call("Complete")(handle)
        cubin = None if failed else _read(handle, "LinkedCubin")
        return Linked(cubin, _text(handle, "InfoLog"), _text(handle, "ErrorLog"))
    finally:
        _call("Destroy")(ctypes.byref(handle))


def _read(handle: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    if _call(f"Get{what}Size")(handle, ctypes.byref(size)) or not size.value:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    _call(f"Get{what}")(handle, buffer)
    return buffer.raw


def _text(handle: ctypes.c_void_p, what: str) -> str:
    return _read(handle, what).rstrip(b"\0").decode(errors="replace")
