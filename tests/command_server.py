"""Command lines of cutrace for tests, each in a process of its own that has imported all it needs.

Starting Python and importing is two thirds of what a short command takes. So one process imports
once, and forks itself for each command: what runs is `python -m cutrace` in that folder with that
environment, from its first line to its exit status.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

NEEDED = (
    *("cutrace.commands.record", "cutrace.commands.running.program", "cutrace.commands._main"),
    *("cutrace.tracer.program.run", "cutrace.tracer.program.code", "cutrace.tracer.simt.run"),
    *("cutrace.tracer.session.function", "cutrace.jit.machine_code", "llvmlite.binding"),
    *("cutrace.analyzer.profile", "cutrace.analyzer.report.formats.table", "polars", "pyarrow.ipc"),
)
LONGEST = 1 << 20
"""Bytes of a request or an answer."""


class Server:
    """The process that forks: `run` is what `subprocess.run` is for `python -m cutrace`."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd="/"
        )
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()

    def run(
        self, words: Sequence[str], folder: Path, text: str, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line in a folder; `TimeoutExpired` if it hangs."""
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(text.encode())
            given.seek(0)
            asked = json.dumps([words, str(folder), dict(os.environ), _archs()]).encode()
            files = [file.fileno() for file in (given, out, err)]
            socket.send_fds(self._socket, [asked], files)
            status = self._wait(words, seconds)
            said = [os.pread(file.fileno(), 1 << 30, 0).decode() for file in (out, err)]
        return subprocess.CompletedProcess(words, status, *said)

    def _wait(self, words: Sequence[str], seconds: float) -> int:
        """The exit status of the command that was asked for."""
        process = int(self._socket.recv(LONGEST))
        self._socket.settimeout(seconds)
        try:
            return int(self._socket.recv(LONGEST))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            self._socket.settimeout(None)
            self._socket.recv(LONGEST)
            raise subprocess.TimeoutExpired(words, seconds) from None
        finally:
            self._socket.settimeout(None)


def _archs() -> Sequence[str]:
    """The architectures that the assembler is asked for in this test process; see conftest.py."""
    from cutrace.tracer.session import resources

    archs: Sequence[str] = getattr(vars(resources)["measure"], "keywords", {}).get("archs", ())
    return archs


def _measure(archs: Sequence[str]) -> None:
    """Ask the assembler for some architectures alone; for all if none is named."""
    from cutrace.tracer.front.resources import measure

    if archs:
        patch("cutrace.tracer.session.resources.measure", partial(measure, archs=archs)).start()


@cache
def server() -> Server:
    """The server of this test process, started when it is first needed."""
    return Server()


def serve(asked: socket.socket) -> bool:
    """Fork for each request until nobody asks; return whether this is a fork."""
    while True:
        request, files, *_ = socket.recv_fds(asked, LONGEST, 3)
        if not request:
            return False
        process = os.fork()
        if not process:
            asked.close()
            words, folder, environment, archs = json.loads(request)
            _become(words, folder, environment, files)
            _measure(archs)
            return True
        for file in files:
            os.close(file)
        asked.send(str(process).encode())
        _, status = os.waitpid(process, 0)
        asked.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(words: list[str], folder: str, environment: dict[str, str], files: list[int]) -> None:
    """Take over what `python -m cutrace` in a folder would have had."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs behind does not hear it
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["cutrace", *words]
    sys.path[0] = folder


if __name__ == "__main__":
    for name in NEEDED:
        import_module(name)
    gc.freeze()
    if serve(socket.socket(fileno=int(sys.argv[1]))):
        runpy.run_module("cutrace", run_name="__main__", alter_sys=True)
