"""Where in its own source a program calls for a launch, by its debug information.

An address in the program's file is looked up with addr2line, which comes with every g++ on Linux;
without it, or without debug information (`-g`, which `cutrace record app.cu` and `cutrace nvcc` ask
for), nothing is known.
"""

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

TOOLS: Sequence[str] = ("addr2line", "llvm-addr2line")
SECONDS = 20.0
"""A program of gigabytes may take that long to be searched."""

_PLACE = re.compile(r"(?P<file>[^\n]+):(?P<line>[1-9]\d*)(?: \(discriminator \d+\))?")
_FIXED = 2  # ET_EXEC of elf.h: addresses in the file are those of the process


class Sites:
    """Names addresses of a program; each is looked up once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], str] = {}
        self._fixed: dict[str, bool] = {}
        self._tool = next(filter(None, map(shutil.which, TOOLS)), None)

    def name(self, address: int, base: int, path: bytes) -> str:
        """`app.cu:12`, or nothing: an address in a file that the process has mapped from `base`."""
        if not address or self._tool is None:
            return ""
        file = os.fsdecode(path)
        if file not in self._fixed:
            self._fixed[file] = _is_fixed(file)
        key = file, address if self._fixed[file] else address - base
        if key not in self._known:
            self._known[key] = _look_up(self._tool, *key)
        return self._known[key]


def _is_fixed(file: str) -> bool:
    try:
        with open(file, "rb") as program:
            head = program.read(18)
    except OSError:
        return False
    return len(head) == 18 and struct.unpack_from("<H", head, 16) == (_FIXED,)


def _look_up(tool: str, file: str, address: int) -> str:
    try:
        found = subprocess.run(
            [tool, "-e", file, hex(address)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    place = _PLACE.fullmatch(found.stdout.strip())
    return f"{_shown(place['file'])}:{place['line']}" if place else ""


def _shown(file: str) -> str:
    """A file below the current folder from there, any other by its name: no machine's folders."""
    path = Path(os.path.normpath(file))
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
