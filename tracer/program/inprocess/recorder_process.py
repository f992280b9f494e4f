"""Record this process: load the library into it and start a recorder process for it.

The library has the driver's soname, so packages that open CUDA's driver later get the library. If
one has opened the real driver already, recording is refused with a message.
"""

import ctypes
import json
import linecache
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ....base.cache import made_folder
from ....base.claim import Owner, in_child
from ....base.errors import CutraceError
from ...front.toolkit import find_host_compiler, find_toolkit
from ..library import build_library
from ..run import PYTHON_CACHES, asked_by_packages
from ..server import Listener
from ..startup.sitecustomize import BEFORE_COMPILING, patch_packages

_DRIVER = re.compile(r"\S*/libcuda\.so\S*")
_ADVICE = "open `with cutrace.recording(...)` before the first call of CUDA's in this process"


class RecorderProcess:
    """The recorder of this process, with the same lifetime; `device` is the device it presents."""

    def __init__(self, command: Callable[[Sequence[str]], Sequence[str]], device: str) -> None:
        _refuse_what_is_too_late()
        library = build_library(find_toolkit(), find_host_compiler())
        self.device = device
        self._owner = Owner()
        listener = Listener()
        mine, other = socket.socketpair()
        files = (listener.socket.fileno(), other.fileno())
        self._recorder = _start(command([*map(str, files), device]), files)
        other.close()
        in_child(mine.close)  # the recorder ends with this process, not with its forked children
        self._control = Control(mine)
        try:
            _place(library, listener.name)
        finally:
            listener.close()
        BEFORE_COMPILING.append(self._tell_source)

    def request(self, **question: Any) -> dict[str, Any]:
        """Send a request to the recorder; raise CutraceError with its error or on exit."""
        if not self._owner.is_here:
            raise CutraceError(
                "this process was forked from one that records: it has no device, as with CUDA; "
                "start it anew (multiprocessing's method `spawn`)"
            )
        self._control.send(**question)
        answer = self._control.receive()
        if answer is None:
            raise CutraceError(f"the recorder beside this process has ended: {self._why()}")
        if "error" in answer:
            raise CutraceError(answer["error"])
        return answer

    def _tell_source(self, function: Any) -> None:
        """Send the source of a function from a notebook cell, which is in no file."""
        name = function.__code__.co_filename
        path = os.path.abspath(name)  # the path that Numba gives it
        if not os.path.isfile(path) and (lines := linecache.getlines(name)):
            self.request(source=path, text="".join(lines))

    def _why(self) -> str:
        status = self._recorder.wait()
        return f"exit status {status}; stderr says more"


def _start(command: Sequence[str], files: Sequence[int]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command, pass_fds=files, stdin=subprocess.DEVNULL, start_new_session=True
    )


def _place(library: Path, recorder: str) -> None:
    """Load the library under the soname that later lookups use, and connect it to the recorder."""
    for name, kind in PYTHON_CACHES.items():
        os.environ.setdefault(name, str(made_folder(kind)))
    os.environ.update(asked_by_packages())
    os.environ["CUTRACE_LIBCUDA"] = str(library / "within")
    os.environ["CUTRACE_RECORDER"] = recorder
    try:
        driver = ctypes.CDLL(str(library / "within" / "libcuda.so.1"))
        driver._cutrace_bind()
        status = driver.cuInit(0)
    finally:
        del os.environ["CUTRACE_RECORDER"]
    if status:
        raise CutraceError(f"the recorder beside this process does not answer: CUDA error {status}")
    _forget_there_was_none()
    patch_packages()


def _refuse_what_is_too_late() -> None:
    """Raise CutraceError if a driver is loaded, or a package has cached that none exists."""
    if "CUTRACE_RECORDER" in os.environ and "/cutrace/runtime/" in _maps():
        raise CutraceError(
            "this program is recorded as a whole already, by `cutrace record`: run it with python "
            "instead, and cutrace.recording() writes its own trace"
        )
    if match := _DRIVER.search(_maps()):
        raise CutraceError(
            f"this process has opened {match[0]}, the driver of a real device: {_ADVICE}"
        )


def _forget_there_was_none() -> None:
    """Clear Numba's cached result: it looks for a driver when a kernel is decorated."""
    numba = sys.modules.get("numba.cuda.cudadrv.driver")
    if numba is not None and numba.driver.initialization_error:
        numba.driver.is_initialized, numba.driver.initialization_error = False, None


def _maps() -> str:
    return Path("/proc/self/maps").read_text()


class Control:
    """One end of the control socket."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self._file = line.makefile("rwb")

    def send(self, **message: Any) -> None:
        """Send a message; a closed peer is ignored."""
        with suppress(OSError):
            self._file.write(json.dumps(message).encode() + b"\n")
            self._file.flush()

    def receive(self) -> dict[str, Any] | None:
        """Wait for a message; return None if the peer has closed."""
        try:
            text = self._file.readline()
        except OSError:
            return None
        message: dict[str, Any] | None = json.loads(text) if text else None
        return message
