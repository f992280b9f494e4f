"""Find the source lines where a program launches and allocates, from its debug information.

addr2line, part of binutils and so present with every g++ on Linux, resolves addresses in the
program's file. Without it, or without debug information (`-g`, which `cutrace record app.cu` and
`cutrace nvcc` request), call sites are unknown.
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
"""Time limit of addr2line; a program of gigabytes can take that long."""

_PLACE = re.compile(r"(?P<file>[^\n]+):(?P<line>[1-9]\d*)(?: \(discriminator \d+\))?")
_OF_OTHERS = re.compile(r"/cuda_runtime\.h$|/(cccl|thrust|cub)/|^/usr/(include|lib)/")
"""Headers whose functions make the call on the program's behalf: wrappers, containers."""

_FIXED = 2  # ET_EXEC of elf.h: addresses in the file are those of the process


class Sites:
    """Resolves code addresses of a program; each address is looked up once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, tuple[int, ...]], str] = {}
        self._fixed: dict[str, bool] = {}
        self._tool = next(filter(None, map(shutil.which, TOOLS)), None)

    def name(self, stack: bytes, base: int, path: bytes) -> str:
        """Return the innermost frame that is not in a header of CUDA or of the system."""
        if not stack or self._tool is None:
            return ""
        file = os.fsdecode(path)
        moved = self._moved(file, base)
        places = tuple(place - moved for (place,) in struct.iter_unpack("<Q", stack))
        # The key is the whole stack: a wrapper's frame is the same for all call sites.
        if (file, places) not in self._known:
            matches = _look_up(self._tool, file, places)
            own = (_shown(each) for each in matches if not _OF_OTHERS.search(each["file"]))
            self._known[file, places] = next(own, "")
        return self._known[file, places]

    def _moved(self, file: str, base: int) -> int:
        """Return the load offset: the difference of process address and file address."""
        if file not in self._fixed:
            self._fixed[file] = _is_fixed(file)
        return 0 if self._fixed[file] else base


def _is_fixed(file: str) -> bool:
    try:
        with open(file, "rb") as program:
            head = program.read(18)
    except OSError:
        return False
    return len(head) == 18 and struct.unpack_from("<H", head, 16) == (_FIXED,)


def _look_up(tool: str, file: str, addresses: Sequence[int]) -> list[re.Match[str]]:
    """Return the resolved addresses, each followed by the callers that it was inlined into."""
    try:
        process = subprocess.run(
            [tool, "-i", "-e", file, *map(hex, addresses)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [place for line in process.stdout.splitlines() if (place := _PLACE.fullmatch(line))]


def _shown(place: re.Match[str]) -> str:
    """Return a path relative to the current folder, else the name only: no machine's folders."""
    path = Path(os.path.normpath(place["file"]))
    here = Path.cwd()
    name = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
    return f"{name}:{place['line']}"
