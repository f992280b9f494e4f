"""NVRTC, NVIDIA's run-time compiler, through ctypes: the calls that turn text into PTX."""

import ctypes
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache

from ....errors import CutraceError
from ..toolkit import load_library

_COMPILATION = 6  # nvrtcResult: the program is wrong, the log says how
_BAD_NAME = 10  # a name expression that names nothing


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one compilation gave: `ptx` is None when it failed, and `log` says why."""

    ptx: str | None
    log: str
    names: Mapping[str, str]


@cache
def _library() -> ctypes.CDLL:
    library = load_library("nvrtc")
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _check(status: int, call: str) -> None:
    if status:
        text: bytes = _library().nvrtcGetErrorString(status)
        raise CutraceError(f"{call} of NVRTC failed: {text.decode()}")


def _strings(texts: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


@cache
def version() -> str:
    """`12.9`."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    return f"{major.value}.{minor.value}"


@cache
def architectures() -> tuple[str, ...]:
    """The targets that this NVRTC knows, oldest first: `("compute_50", ...)`."""
    count = ctypes.c_int()
    _check(_library().nvrtcGetNumSupportedArchs(ctypes.byref(count)), "nvrtcGetNumSupportedArchs")
    numbers = (ctypes.c_int * count.value)()
    _check(_library().nvrtcGetSupportedArchs(numbers), "nvrtcGetSupportedArchs")
    return tuple(f"compute_{number}" for number in numbers)


def compile_program(
    text: str,
    name: str,
    options: Sequence[str],
    name_expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Outcome:
    """Compile `text`; `headers` are files that exist in memory only, by the name included.

    A program that is wrong is an Outcome without PTX; anything else that fails is a CutraceError.
    """
    headers = headers or {}
    program = ctypes.c_void_p()
    status = _library().nvrtcCreateProgram(
        ctypes.byref(program),
        text.encode(),
        name.encode(),
        len(headers),
        _strings(list(headers.values())),
        _strings(list(headers)),
    )
    _check(status, "nvrtcCreateProgram")
    try:
        return _compile(program, options, name_expressions)
    finally:
        _library().nvrtcDestroyProgram(ctypes.byref(program))


def _compile(
    program: ctypes.c_void_p, options: Sequence[str], name_expressions: Sequence[str]
) -> Outcome:
    library = _library()
    for expression in name_expressions:
        status = library.nvrtcAddNameExpression(program, expression.encode())
        _check(status, "nvrtcAddNameExpression")
    texts = _strings(options)
    status = _interruptible(lambda: library.nvrtcCompileProgram(program, len(options), texts))
    log = _read(program, "ProgramLog")
    if status in (_COMPILATION, _BAD_NAME):
        return Outcome(None, log, {})
    if status:
        _check(status, f"nvrtcCompileProgram{_one_line(log)}")
    names = {expression: _lowered_name(program, expression) for expression in name_expressions}
    return Outcome(_read(program, "PTX"), log, names)


def _interruptible(call: Callable[[], int]) -> int:
    """Make a long call so that Ctrl-C stays Python's: it is raised when the call is over.

    While NVRTC parses it handles Ctrl-C itself, and ends the process with a trace half written. So
    the call runs in a thread of its own, and this one keeps putting Python's handler back.
    """
    listening = signal.getsignal(signal.SIGINT)
    if listening is None or threading.current_thread() is not threading.main_thread():
        return call()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        while not wait([future], 0.001).done:
            signal.signal(signal.SIGINT, listening)
    return future.result()


def _one_line(log: str) -> str:
    return f" ({'; '.join(log.split(chr(10))).strip('; ')})" if log.strip() else ""


def _lowered_name(program: ctypes.c_void_p, expression: str) -> str:
    name = ctypes.c_char_p()
    status = _library().nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name))
    _check(status, "nvrtcGetLoweredName")
    return (name.value or b"").decode()


def _read(program: ctypes.c_void_p, what: str) -> str:
    """Fetch the text that `nvrtcGet<what>` hands out, without its closing zero."""
    size = ctypes.c_size_t()
    _check(getattr(_library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(_library(), f"nvrtcGet{what}")(program, buffer), what)
    return buffer.value.decode(errors="replace")
