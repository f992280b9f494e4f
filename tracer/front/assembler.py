"""ptxas, NVIDIA's assembler, from nvcc's wheel: PTX to the machine code that nvcc's users run.

A kernel is assembled as a whole program, as nvcc and NVRTC do unless they are asked for code that
is linked later (`-rdc`). NVIDIA's linker for run time, nvJitLink, makes such code of PTX: its
functions keep to calling conventions, and registers are often others than the chip then needs.

Each question has a process of its own, since PTX that no compiler wrote can crash ptxas.

PTX of nvcc 13 (versions from 9.0 on) needs the assembler of nvcc 13, which knows sm_75 and newer.
Older architectures are asked for by that of 12.9, which takes such text where it needs nothing new.
"""

import re
import subprocess
from pathlib import Path

from ...claim import scratch_folder
from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from .toolkit import find_file, missing

PATIENCE = 60.0
"""Seconds that one kernel may take."""

NEWEST = (8, 8)
"""The newest version of PTX that the assembler of 12.9 knows."""

LEAST_OF_13 = 75
"""The oldest architecture that the assembler of 13 knows."""

_VERSION = re.compile(r"^(\s*\.version\s+)(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Assembled:
    """`cubin` is None when ptxas refused; `report` is what it said."""

    cubin: bytes | None
    report: str


def assemblers() -> tuple[Path, ...]:
    """The programs that are installed: none on macOS, for which NVIDIA publishes none."""
    found = (find_file(name) for name in ("ptxas", "ptxas 13"))
    return tuple(path for path in found if path)


def assemble(ptx: str, arch: str, *options: str) -> Assembled:
    """Assemble `ptx` for `arch` (`sm_75`); CutraceError if ptxas crashes or takes too long."""
    name, ptx = _choose(ptx, arch)
    program = find_file(name)
    if program is None:
        raise missing("ptxas")
    with scratch_folder() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        command = [str(program), f"-arch={arch}", *options, str(source), "-o", str(cubin)]
        said, status = _run(command, arch)
        return Assembled(None if status else cubin.read_bytes(), said)


def _choose(ptx: str, arch: str) -> tuple[str, str]:
    """Return which assembler takes a text for an architecture, and the text as it takes it."""
    found = _VERSION.search(ptx)
    if not found or (int(found[2]), int(found[3])) <= NEWEST:
        return "ptxas", ptx
    if int(re.sub(r"\D", "", arch)) >= LEAST_OF_13 and find_file("ptxas 13"):
        return "ptxas 13", ptx
    older = ".".join(map(str, NEWEST))
    return "ptxas", _VERSION.sub(lambda each: f"{each[1]}{older}", ptx, count=1)


def _run(command: list[str], arch: str) -> tuple[str, int]:
    """What a command printed, and its status: 0 where it was content, 1 to 255 where it refused."""
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            start_new_session=True,  # Ctrl-C is for the parent
        )
    except subprocess.TimeoutExpired:
        raise CutraceError(f"NVIDIA's assembler did not finish this PTX, for {arch}") from None
    if not 0 <= answer.returncode < 256:  # a signal; on Windows an exception's number
        raise CutraceError(f"NVIDIA's assembler crashed over this PTX, for {arch}")
    return answer.stdout.decode(errors="replace"), answer.returncode
