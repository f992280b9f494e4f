"""Worker program around NVRTC: JSON requests on stdin, answers on stdout, one per line.

It is a separate process because NVRTC can crash on a source and handles Ctrl-C itself while it
parses. It imports only the standard library and nothing from cutrace, so that it starts fast.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_WRONG = (6, 10)  # nvrtcResult: an invalid program, or a name expression that names nothing


class Failed(Exception):
    """A call failed for another reason than an invalid program."""


class Library:
    """NVRTC's functions through ctypes."""

    def __init__(self, path: str) -> None:
        if sys.platform == "win32":
            os.add_dll_directory(str(Path(path).parent))
        self.calls = ctypes.CDLL(path)
        self.calls.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(self, status: int, call: str) -> None:
        """Raise Failed with NVRTC's message if a call failed."""
        if status:
            text: bytes = self.calls.nvrtcGetErrorString(status)
            raise Failed(f"{call} of NVRTC failed: {text.decode()}")

    def version(self) -> str:
        """Return the version: `12.9`."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        status = self.calls.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.check(status, "nvrtcVersion")
        return f"{major.value}.{minor.value}"

    def architectures(self) -> list[str]:
        """Return the supported targets, oldest first: `["compute_50", ...]`."""
        count = ctypes.c_int()
        status = self.calls.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        self.check(status, "nvrtcGetNumSupportedArchs")
        numbers = (ctypes.c_int * count.value)()
        self.check(self.calls.nvrtcGetSupportedArchs(numbers), "nvrtcGetSupportedArchs")
        return [f"compute_{number}" for number in numbers]

    def compile(self, request: dict[str, Any]) -> dict[str, Any]:
        """Compile a request; `ptx` is None for an invalid program, `log` has the messages."""
        program, headers = ctypes.c_void_p(), request["headers"]
        status = self.calls.nvrtcCreateProgram(
            ctypes.byref(program),
            request["text"].encode(),
            request["name"].encode(),
            len(headers),
            _strings(list(headers.values())),
            _strings(list(headers)),
        )
        self.check(status, "nvrtcCreateProgram")
        try:
            return self._compile(program, request["options"], request["name_expressions"])
        finally:
            self.calls.nvrtcDestroyProgram(ctypes.byref(program))

    def _compile(
        self, program: ctypes.c_void_p, options: Sequence[str], expressions: Sequence[str]
    ) -> dict[str, Any]:
        for expression in expressions:
            status = self.calls.nvrtcAddNameExpression(program, expression.encode())
            self.check(status, "nvrtcAddNameExpression")
        status = self.calls.nvrtcCompileProgram(program, len(options), _strings(options))
        log = self._read(program, "ProgramLog")
        if status in _WRONG:
            return {"ptx": None, "log": log, "names": {}}
        words = "; ".join(log.split("\n")).strip("; ")
        self.check(status, f"nvrtcCompileProgram ({words})" if words else "nvrtcCompileProgram")
        names = {expression: self._lowered_name(program, expression) for expression in expressions}
        return {"ptx": self._read(program, "PTX"), "log": log, "names": names}

    def _lowered_name(self, program: ctypes.c_void_p, expression: str) -> str:
        name = ctypes.c_char_p()
        status = self.calls.nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name))
        self.check(status, "nvrtcGetLoweredName")
        return (name.value or b"").decode()

    def _read(self, program: ctypes.c_void_p, what: str) -> str:
        """Return the text of `nvrtcGet<what>` without its terminating zero."""
        size = ctypes.c_size_t()
        status = getattr(self.calls, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        self.check(status, what)
        buffer = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.calls, f"nvrtcGet{what}")(program, buffer), what)
        return buffer.value.decode(errors="replace")


def _strings(texts: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def answer(library: Library, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one request, or the reason under `failed`."""
    architectures = library.architectures()
    about = {"version": library.version(), "architectures": architectures}
    if request["architecture"].rstrip("af") not in architectures:
        return about | {"unknown": True}
    try:
        os.chdir(request["folder"])
        return about | library.compile(request)
    except Failed as error:
        return about | {"failed": str(error)}


def main() -> None:
    """Answer requests until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # keep the compiler's prints out of the answers
        library = Library(sys.argv[1])
        for line in sys.stdin:
            print(json.dumps(answer(library, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
