"""NVRTC, NVIDIA's run-time compiler, asked in a process of its own: `process.py` is that program.

It is started by the first compilation and answers all that follow. A source that crashes it ends
that process and not this one.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...base.cache import keep, key_of, load
from ...base.claim import Lock, Owner
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from .toolkit import library

_PROGRAM = Path(__file__).with_name("nvrtc_process.py")
_LASTING = frozenset({"-G", "--device-debug"})
"""Options after which NVRTC 12.9 optimizes less whatever it compiles in the same process."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one compilation gave: `ptx` is None when it failed, and `log` says why."""

    ptx: str | None
    log: str
    names: Mapping[str, str]
    version: str = ""
    """NVRTC's: `12.9`."""


def compile_program(
    text: str,
    name: str,
    target: str,
    options: Sequence[str] = (),
    name_expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Outcome:
    """Compile `text` for `compute_75`; `headers` exist in memory only, by the name included.

    A program that is wrong is an Outcome without PTX; anything else that fails is a CutraceError.
    A source that includes nothing is compiled once (`kept_outcome.py`).
    """
    request = {
        "text": text,
        "name": name,
        "folder": os.getcwd(),
        "architecture": target,
        "options": [f"--gpu-architecture={target}", *options],
        "name_expressions": list(name_expressions),
        "headers": dict(headers or {}),
    }
    key = key_of_request(request)
    answer = load_answer(key)
    if answer is None:
        answer = _COMPILER.request(request)
        keep_answer(key, answer)
    if "unknown" in answer:
        raise CutraceError(_unknown(target, answer["version"], answer["architectures"]))
    if "failed" in answer:
        raise CutraceError(answer["failed"])
    return Outcome(answer["ptx"], answer["log"], answer["names"], answer["version"])


def _unknown(target: str, version: str, architectures: Sequence[str]) -> str:
    return (
        f"target {target}: NVRTC {version} compiles for {architectures[0]} to {architectures[-1]}"
        f"{nearest(target, architectures)}; the trace of any of them is replayed on every device"
    )


class _Process:
    """The compiler's process: a new one after a fork, a crash or an interruption."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._running: subprocess.Popen[str] | None = None
        self._owner = Owner()

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One question at a time."""
        with self._turn:
            running = self._start()
            assert running.stdin is not None
            assert running.stdout is not None
            try:
                running.stdin.write(json.dumps(request) + "\n")
                running.stdin.flush()
                line = running.stdout.readline()
            except BrokenPipeError:
                line = ""
            except BaseException:  # Ctrl-C: the answer would be taken for that of the next request
                self._end()
                raise
            if not line:
                raise CutraceError(_crashed(self._end(), request["name"]))
            if not _LASTING.isdisjoint(request["options"]):
                self._end()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _start(self) -> "subprocess.Popen[str]":
        if self._running is None or not self._owner.is_here:
            command = [sys.executable, "-I", "-S", str(_PROGRAM), str(library("nvrtc"))]
            pipe = subprocess.PIPE
            self._running = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8"
            )
            self._owner = Owner()
            atexit.register(self._end)
        return self._running

    def _end(self) -> int:
        """End the process, and say how it ended: minus the signal, if by one."""
        running, self._running = self._running, None
        if running is None or not self._owner.is_here:
            return 0
        if running.poll() is None:
            running.kill()
        with running:
            return running.wait()


_COMPILER = _Process()


def _crashed(status: int, name: str) -> str:
    how = signal.strsignal(-status) if status < 0 else f"exit status {status}"
    return (
        f"{name}: NVRTC, NVIDIA's compiler, crashed on this source ({how}); compile it to PTX by "
        f"nvcc and record the .ptx, or find by halves what it crashes on"
    )


KIND, MOST_BYTES = "ptx", 1 << 26
"""What answers are kept as, and how many bytes of them."""
_CACHEABLE_OPTIONS = ("-D", "-I", "-U", "-lineinfo", "--gpu-architecture=", "-std=", "--std=", "-w")
"""How options begin that read no file where nothing is included."""


def key_of_request(request: Mapping[str, Any]) -> str | None:
    """Return a key for a request, None where its answer is not kept."""
    stands_alone = "include" not in request["text"] and not request["headers"]
    if not stands_alone or not all(
        each.startswith(_CACHEABLE_OPTIONS) for each in request["options"]
    ):
        return None
    return key_of(_compiler(), json.dumps(request, sort_keys=True))


def load_answer(key: str | None) -> dict[str, Any] | None:
    """Return the answer that was kept."""
    data = None if key is None else load(KIND, key)
    return None if data is None else dict(json.loads(data))


def keep_answer(key: str | None, answer: Mapping[str, Any]) -> None:
    """Keep an answer with PTX."""
    if key is not None and answer.get("ptx"):
        keep(KIND, key, json.dumps(answer).encode(), MOST_BYTES)


@cache
def _compiler() -> str:
    """Which NVRTC, and which program of ours asks it."""
    files = (library("nvrtc"), Path(__file__).with_name("nvrtc_process.py"))
    file_stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return repr(file_stats)
