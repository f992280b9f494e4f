"""The program: a process of its own, with its own input, output, exit status and signals.

Processes that it starts in turn use the device as it does, each on a line of its own.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from ...cache import folder_of, made_folder
from ...claim import Claim, claim_scratch
from ...errors import CutraceError, nearest
from .connections import Connections, Listener
from .exported.stand_ins import is_named_in

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
        self._listener = Listener()
        self._connections = Connections(self._listener.socket, memory)
        try:
            environment = _environment(_folders(library, command, path), self._listener.name)
            self._process = _start(command, path, environment, output)
        except CutraceError:
            self._listener.close()
            raise
        self._ended = os.pidfd_open(self._process.pid)

    def lines(self) -> Iterator[socket.socket]:
        """Yield what there is something to read from, until the program has ended."""
        while (line := self._connections.wait(self._ended)) is not None:
            yield line

    def drop(self, line: socket.socket) -> None:
        """Forget a process of the program's that has gone."""
        self._connections.drop(line)

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
        self._connections.close()
        self._listener.close()
        self.stop()
        os.close(self._ended)


def _folders(library: Path, command: Sequence[str], path: Path | None) -> list[Path]:
    """Where a program is to look for libraries before all other folders."""
    program = path or Path(shutil.which(command[0]) or command[0])
    return [library, library / "libraries"] if is_named_in(program) else [library]


def _environment(folders: Sequence[Path], recorder: str) -> dict[str, str]:
    library = folders[0]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": _before(":".join(map(str, folders)), "LD_LIBRARY_PATH"),
        "LD_PRELOAD": _before(str(library / "libcuda.so.1"), "LD_PRELOAD"),
        "PYTHONPATH": _before(str(STARTUP), "PYTHONPATH"),
        **{name: str(folder_of(kind)) for name, kind in PYTHON_CACHES.items()},
        **asked_by_packages(),
        "NVTX_INJECTION64_PATH": str(library / "libcuda.so.1"),
        "CUTRACE_LIBCUDA": str(library / "within"),
        "CUTRACE_RECORDER": recorder,
    }


def asked_by_packages() -> dict[str, str]:
    """Variables for what changes packages of Python (startup), and for the packages themselves."""
    return {
        "CUPY_ACCELERATORS": "",  # CUB's kernels are machine code; without, CuPy compiles its own
        "CUTRACE_PYTHON": sys.executable,
        "CUTRACE_SOURCES": str(made_folder("sources")),
        "CUTRACE_SCRATCH": str(_scratch(os.getpid()).folder),
    }


@cache
def _scratch(process: int) -> Claim:
    """A folder for what the processes of a program make for a moment; it goes with this process."""
    return claim_scratch()


def _before(path: str, name: str) -> str:
    """A path before those that a variable of the environment has."""
    own = os.environ.get(name)
    return f"{path}:{own}" if own else path


def _start(
    command: Sequence[str],
    path: Path | None,
    environment: dict[str, str],
    output: int | None,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, executable=path, env=environment, stdout=output)
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
