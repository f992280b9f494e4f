"""NVIDIA's assembler in a process of its own, since PTX that no compiler wrote can crash it.

A child serves one thread: it reads a line of JSON and that many bytes of PTX, and answers with a
line of JSON and the bytes of a cubin. One that crashes, or takes longer than `PATIENCE` seconds,
is given up, and the next question starts another.
"""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import IO

from ...errors import CutraceError
from .nvjitlink import Linked, link_ptx

PATIENCE = 60.0

_START = f"import sys; sys.path[:] = {{path!r}}; from {__name__} import serve; serve()"
_children = threading.local()


def assemble(ptx: str, arch: str, *options: str) -> Linked:
    """Assemble `ptx` as `link_ptx` does; CutraceError if the assembler crashes over it."""
    if not sys.executable:  # Python inside of another program
        return link_ptx(ptx, arch, *options)
    child = getattr(_children, "child", None)
    if child is None:
        child = _children.child = _Child()
    try:
        return child.ask(ptx, arch, options)
    except (OSError, ValueError):
        _children.child = None
        child.close()
        raise CutraceError(f"NVIDIA's assembler crashed over this PTX, for {arch}") from None


class _Child:
    """A process that assembles, until its input ends."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _START.format(path=sys.path)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent
        )
        atexit.register(self.close)

    def ask(self, ptx: str, arch: str, options: tuple[str, ...]) -> Linked:
        """Return the answer; OSError or ValueError when there is none."""
        to, answers = self._process.stdin, self._process.stdout
        assert to
        assert answers
        data = ptx.encode()
        watch = threading.Timer(PATIENCE, self._process.kill)
        watch.start()
        try:
            _send(to, {"arch": arch, "options": options, "bytes": len(data)}, data)
            answer = json.loads(answers.readline())
            cubin = None if answer["bytes"] is None else answers.read(answer["bytes"])
            return Linked(cubin, answer["info"], answer["errors"])
        finally:
            watch.cancel()

    def close(self) -> None:
        """Let the process end."""
        atexit.unregister(self.close)
        self._process.kill()
        self._process.communicate()


def serve() -> None:
    """Answer until the input ends: what the child does."""
    questions, to = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library itself prints goes nowhere
    for line in questions:
        asked = json.loads(line)
        ptx = questions.read(asked["bytes"]).decode()
        linked = link_ptx(ptx, asked["arch"], *asked["options"])
        size = None if linked.cubin is None else len(linked.cubin)
        answer = {"bytes": size, "info": linked.info, "errors": linked.errors}
        _send(to, answer, linked.cubin or b"")


def _send(to: IO[bytes], head: Mapping[str, object], data: bytes) -> None:
    to.write(json.dumps(head).encode() + b"\n" + data)
    to.flush()
