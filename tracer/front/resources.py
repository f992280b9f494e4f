"""What a kernel takes of each architecture: registers, shared, local, constant bytes and spills.

The assembler is asked, and its report read; constant bytes come from the cubin's sections, since
the report omits them for sm_90 and newer. Answers are kept between runs: ten architectures take
0.2 s of a processor even for a small kernel.
"""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from pathlib import Path

from ...cache import keep, key_of, load
from ...errors import CutraceError
from ...traces.schema import Resources
from .assembler import assemble, assemblers
from .signature import entries

ARCHS = (
    *("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"),
)
"""The architectures that are measured when nobody names others."""
KIND = "resources"
"""What answers are kept as."""

_TARGET = re.compile(r"^(\s*\.target\s+)sm_(\d+)([af]?)", re.MULTILINE)
_ENTRY = re.compile(r"^(?:\.(?:visible|weak)\s+)?\.entry\s+([\w$]+)", re.MULTILINE)
_BRACE = re.compile(r"[{}]")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_LOCAL = re.compile(r"(\d+) bytes lmem")


def resources(
    ptx: str, kernel: str, archs: Sequence[str] = ARCHS, options: Sequence[str] = ()
) -> tuple[Resources, ...]:
    """Measure `kernel` (its PTX name) for each of `archs` that the assembler accepts, in order.

    PTX for a newer target is offered to an older architecture under that one's `.target`: it is
    measured where the text needs nothing newer, and left out where the assembler refuses.
    `options` are the assembler's: `-maxrregcount=32`, or `--compile-only` for code that is linked
    later, whose registers are often others. Safe in a background thread, which runs beside Python.
    Without the assembler (macOS) nothing is measured.
    """
    if kernel not in entries(ptx):
        raise CutraceError(f"no kernel {kernel} in this PTX; it has {', '.join(entries(ptx))}")
    if not assemblers():
        return ()
    return _kept(_alone(ptx, kernel), kernel, tuple(archs), tuple(options))


@lru_cache(maxsize=512)
def _kept(
    ptx: str, kernel: str, archs: tuple[str, ...], options: tuple[str, ...]
) -> tuple[Resources, ...]:
    key = key_of(_made_by(), ptx, kernel, *archs, "", *options)
    kept = load(KIND, key)
    if kept is not None:
        return tuple(Resources(**each) for each in json.loads(kept))
    measured = (_measure(ptx, kernel, arch, options) for arch in archs)
    found = tuple(each for each in measured if each)
    keep(KIND, key, json.dumps([asdict(each) for each in found]).encode())
    return found


@cache
def _made_by() -> str:
    """Which assemblers, and which text of this module, what is kept was made by."""
    files = ((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in assemblers())
    return repr((*files, Path(__file__).read_bytes()))


def _measure(ptx: str, kernel: str, arch: str, options: tuple[str, ...]) -> Resources | None:
    text = _retarget(ptx, arch)
    made = assemble(text, _with_suffix(text, arch), "-v", *options)
    if made.cubin is None:
        return None
    report = _report_of(made.report, kernel)
    registers = _USED.search(report)
    if not registers:
        return None
    frame = _FRAME.search(report)
    stack, stores, loads = map(int, frame.groups()) if frame else (0, 0, 0)
    return Resources(
        arch=arch,
        registers=int(registers[1]),
        shared_bytes=_number(_SHARED, report),
        local_bytes=max(stack, _number(_LOCAL, report)),
        constant_bytes=_constant_bytes(made.cubin, kernel),
        spill_stores=stores,
        spill_loads=loads,
    )


def _alone(ptx: str, kernel: str) -> str:
    """The text without the other kernels, so that the assembler need not go through them."""
    kept, at = [], 0
    for found in _ENTRY.finditer(ptx):
        end = _end_of_body(ptx, found.end())
        kept.append(ptx[at : end if found[1] == kernel else found.start()])
        at = end
    return "".join((*kept, ptx[at:]))


def _end_of_body(ptx: str, at: int) -> int:
    """Return where the body that begins behind `at` ends; inline assembly has braces of its own."""
    depth = 0
    for brace in _BRACE.finditer(ptx, at):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(ptx)


def _retarget(ptx: str, arch: str) -> str:
    """Write the older `arch` into the `.target` line; a newer one takes the text as it is."""
    number = int(re.sub(r"\D", "", arch))

    def older(found: re.Match[str]) -> str:
        return f"{found[1]}sm_{number}" if number < int(found[2]) else found[0]

    return _TARGET.sub(older, ptx, count=1)


def _with_suffix(ptx: str, arch: str) -> str:
    """`sm_90a` for `sm_90` where the text is for that: it would not be taken for any other."""
    target = _TARGET.search(ptx)
    return f"sm_{target[2]}{target[3]}" if target and arch == f"sm_{target[2]}" else arch


def _report_of(report: str, kernel: str) -> str:
    """The lines about one kernel: from `Compiling entry function 'K'` to the next such line."""
    _, found, rest = report.partition(f"Compiling entry function '{kernel}'")
    return rest.partition("Compiling entry function")[0] if found else ""


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


def _constant_bytes(cubin: bytes, kernel: str) -> int:
    """Bytes of all constant banks: the kernel's own, and bank 3 of `__constant__` variables."""
    own = re.compile(rf"\.nv\.constant\d+(\.{re.escape(kernel)})?$")
    return sum(size for name, size in _sections(cubin) if own.match(name))


def _sections(elf: bytes) -> Iterator[tuple[str, int]]:
    """Name and size of each section of a 64-bit little-endian ELF file."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * entry) for i in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        yield elf[start : elf.index(b"\0", start)].decode(), header[5]
