"""The program: a process of its own, with its own input, output, exit status and signals."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ...cache import folder_of, made_folder
from ...errors import CutraceError, nearest

STARTUP = Path(__file__).with_name("startup")
PYTHON_CACHES = {
    "CUPY_CACHE_DIR": "cupy",
    "NUMBA_CACHE_DIR": "numba",
    "TRITON_CACHE_DIR": "triton",
}
"""Where Python packages keep compiled kernels: not beside the machine code for a real device."""

PATIENCE = 5.0
"""Seconds that a program has to end by itself when it was asked to."""


class Child:
    """A program that runs with our runtime library in front of CUDA's.

    It is the file at `path` where that is given, and still called as the command says. `output` is
    the file to which it prints, if not our own.
    """

    def __init__(
        self,
        command: Sequence[str],
        path: Path | None,
        library: Path,
        memory: int,
        output: int | None = None,
    ) -> None:
        self.line, theirs = socket.socketpair()
        files = (theirs.fileno(), memory)
        self._process = _start(command, path, _environment(library, *files), files, output)
        theirs.close()
        self._ended = os.pidfd_open(self._process.pid)

    def messages(self) -> Iterator[None]:
        """Yield whenever there is something to read, until the program has ended."""
        watched = select.poll()
        watched.register(self.line, select.POLLIN)
        watched.register(self._ended, select.POLLIN)
        while True:
            ready = {place for place, _ in watched.poll()}
            if self.line.fileno() in ready:
                yield
            elif self._ended in ready:
                return

    def wait(self) -> int:
        """Wait for its end; return its exit status, or minus the signal that ended it."""
        return self._process.wait()

    def stop(self) -> None:
        """End it, in any case."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE)
            self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it if it runs, and close the line."""
        self.line.close()
        self.stop()
        os.close(self._ended)


def _environment(library: Path, line: int, memory: int) -> dict[str, str]:
    return {
        **os.environ,
        "LD_LIBRARY_PATH": _before(str(library), "LD_LIBRARY_PATH"),
        "LD_PRELOAD": _before(str(library / "libcuda.so.1"), "LD_PRELOAD"),
        "PYTHONPATH": _before(str(STARTUP), "PYTHONPATH"),
        **{name: str(folder_of(kind)) for name, kind in PYTHON_CACHES.items()},
        **asked_by_packages(),
        "NVTX_INJECTION64_PATH": str(library / "libcuda.so.1"),
        "CUTRACE_LIBCUDA": str(library / "within"),
        "CUTRACE_RECORDER": f"{line}:{memory}",
    }


def asked_by_packages() -> dict[str, str]:
    """Variables for what changes packages of Python (startup), and for the packages themselves."""
    return {
        "CUPY_ACCELERATORS": "",  # CUB's kernels are machine code; without, CuPy compiles its own
        "CUTRACE_PYTHON": sys.executable,
        "CUTRACE_SOURCES": str(made_folder("sources")),
    }


def _before(path: str, name: str) -> str:
    """A path before those that a variable of the environment has."""
    own = os.environ.get(name)
    return f"{path}:{own}" if own else path


def _start(
    command: Sequence[str],
    path: Path | None,
    environment: dict[str, str],
    files: tuple[int, ...],
    output: int | None,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, executable=path, env=environment, pass_fds=files, stdout=output
        )
    except FileNotFoundError:
        folder = Path(command[0]).parent
        names = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
        close = nearest(Path(command[0]).name, names) if "/" in command[0] else ""
        raise CutraceError(f"{command[0]}: there is no such program{close}") from None
    except PermissionError:
        raise CutraceError(f"{command[0]}: {_why_not_executable(Path(command[0]))}") from None
    except OSError as error:
        raise CutraceError(f"{command[0]}: it cannot be started: {error.strerror}") from None


def _why_not_executable(path: Path) -> str:
    if path.is_dir():
        return "a folder; expected a program"
    if path.suffix == ".cu":
        return f"a source, which is built where it stands before --: cutrace record {path} --"
    return "it is not executable: chmod +x makes it so"
