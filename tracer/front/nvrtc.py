"""Client of NVRTC, NVIDIA's run-time compiler, which runs in a worker: `nvrtc_process.py`.

The first compilation starts the worker, which serves all later ones. A source that crashes NVRTC
ends the worker, not this process. Outcomes of self-contained sources are cached between runs.
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

from ...base.cache import Cache, key_of
from ...base.claim import Lock, Owner
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from .toolkit import library

_PROGRAM = Path(__file__).with_name("nvrtc_process.py")
_LASTING = frozenset({"-G", "--device-debug"})
"""Options after which NVRTC 12.9 optimizes less in all later compilations of the same process."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one compilation: `ptx` is None if it failed, and `log` has the messages."""

    ptx: str | None
    log: str
    names: Mapping[str, str]
    version: str = ""
    """NVRTC's version: `12.9`."""


def compile_program(
    text: str,
    name: str,
    target: str,
    options: Sequence[str] = (),
    name_expressions: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> Outcome:
    """Compile `text` for `compute_75`; `headers` exist in memory only, by the name included.

    An invalid program gives an Outcome without PTX; any other failure raises a CutraceError. The
    outcome of a source without includes is cached.
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
    answer = _ANSWERS.get(key_of_request(request), lambda: _COMPILER.request(request))
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
    """The worker process; a fork, a crash or an interruption replaces it by a new one."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._running: subprocess.Popen[str] | None = None
        self._owner = Owner()

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its answer; requests are serialized."""
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
            except BaseException:  # Ctrl-C: the next request would read this request's answer
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
        """End the process and return its exit status, the negative signal if a signal ended it."""
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


_CACHEABLE_OPTIONS = ("-D", "-I", "-U", "-lineinfo", "--gpu-architecture=", "-std=", "--std=", "-w")
"""Prefixes of options that read no file if the source includes nothing."""


def key_of_request(request: Mapping[str, Any]) -> str | None:
    """Return the cache key of a request, None if its answer is not cached."""
    stands_alone = "include" not in request["text"] and not request["headers"]
    if not stands_alone or not all(
        each.startswith(_CACHEABLE_OPTIONS) for each in request["options"]
    ):
        return None
    return key_of(_compiler(), json.dumps(request, sort_keys=True))


def _pack(answer: dict[str, Any]) -> bytes | None:
    """Return an answer with PTX as JSON; others are not kept."""
    return json.dumps(answer).encode() if answer.get("ptx") else None


_ANSWERS: Cache[dict[str, Any]] = Cache("ptx", 1 << 26, _pack, json.loads)


@cache
def _compiler() -> str:
    """Return a fingerprint of the NVRTC library and of the worker program."""
    files = (library("nvrtc"), Path(__file__).with_name("nvrtc_process.py"))
    file_stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return repr(file_stats)
