"""Measure a kernel per architecture: registers, shared, local, constant bytes, spills.

ptxas assembles the PTX, and its report is parsed. Constant bytes come from the cubin's sections,
since the report omits them for sm_90 and newer. For architectures with instructions of 128 bits the
cubin's machine code is also analysed (sass.py). Results are cached between runs: ten architectures
take 0.2 s of CPU time even for a small kernel.
"""

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

from ...base.cache import Cache, key_of, source_digest
from ...base.claim import scratch_folder
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.machine_schedule import pack_schedule, unpack_schedule
from ...traces.schema import Resources
from .sass import Facts, MachineInstruction, read_facts, sections
from .signature import entries
from .toolkit import find_file, missing

ARCHS = (
    *("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"),
)
"""Architectures that are measured by default."""
FIRST_DECODED = 70
"""Oldest architecture whose machine code is analysed: since Volta an instruction has 128 bits."""

_TARGET = re.compile(r"^(\s*\.target\s+)sm_(\d+)([af]?)", re.MULTILINE)
_ENTRY = re.compile(r"^(?:\.(?:visible|weak)\s+)?\.entry\s+([\w$]+)", re.MULTILINE)
_BRACE = re.compile(r"[{}]")
_USED = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_LOCAL = re.compile(r"(\d+) bytes lmem")


PackedFacts = tuple[Sequence[Sequence[Any]], str]
"""Facts of machine code as JSON has them: rows of line and instruction, and a packed schedule."""


Report = tuple[tuple[Resources, ...], Mapping[str, PackedFacts]]
"""Resources of each architecture, and facts of those since FIRST_DECODED."""


@dataclass(frozen=True)
class Measured:
    """The assembler's report on a kernel, asked for when it is read.

    `key` stands for all that it depends on; empty without an assembler.
    """

    key: str = ""
    report: Callable[[], Report] = lambda: ((), {})

    @cached_property
    def _report(self) -> Report:
        return self.report()

    @property
    def resources(self) -> tuple[Resources, ...]:
        """The resources on each architecture that the assembler accepts, in order."""
        return self._report[0]

    @cached_property
    def facts(self) -> Mapping[str, Facts]:
        """The facts of the machine code by architecture, since FIRST_DECODED."""
        return {arch: _read_facts(*each) for arch, each in self._report[1].items()}


def resources(
    ptx: str, kernel: str, archs: Sequence[str] = ARCHS, options: Sequence[str] = ()
) -> tuple[Resources, ...]:
    """Return the resources of `kernel` (its PTX name) on each accepted architecture, in order."""
    return measure(ptx, kernel, archs, options).resources


def measure(
    ptx: str, kernel: str, archs: Sequence[str] = ARCHS, options: Sequence[str] = ()
) -> Measured:
    """Measure `kernel` (its PTX name) on each of `archs` that the assembler accepts, in order.

    PTX for a newer target is assembled for an older architecture with a changed `.target`. If the
    text needs newer features, the assembler refuses and the architecture is left out. `options` are
    the assembler's: `-maxrregcount=32`, or `--compile-only` for code that is linked later, which
    often has a different register count. Safe in a background thread, which runs in parallel with
    Python. Without the assembler (macOS) nothing is measured.
    """
    if kernel not in entries(ptx):
        raise CutraceError(f"no kernel {kernel} in this PTX; it has {', '.join(entries(ptx))}")
    if not assemblers():
        return Measured()
    return _cached(single_kernel(ptx, kernel), kernel, tuple(archs), tuple(options))


@lru_cache(maxsize=512)
def _cached(ptx: str, kernel: str, archs: tuple[str, ...], options: tuple[str, ...]) -> Measured:
    key = key_of(_made_by(), ptx, kernel, *archs, "", *options)
    make = partial(_assemble_each, ptx, kernel, archs, options)
    return Measured(key, partial(_MEASURED.get, key, make))


def _assemble_each(
    ptx: str, kernel: str, archs: tuple[str, ...], options: tuple[str, ...]
) -> Report:
    marked = mark_lines(ptx)
    packed: dict[str, PackedFacts] = {}
    kernel_resources: list[Resources] = []
    for arch in archs:
        is_decoded = _number_of(arch) >= FIRST_DECODED
        text, more = (marked, ("-lineinfo",)) if is_decoded else (ptx, ())
        if answer := _assemble(text, kernel, arch, (*options, *more)):
            kernel_resources.append(answer[0])
            if is_decoded:
                packed[arch] = _pack_facts(read_facts(answer[1], kernel, _number_of(arch)))
    return tuple(kernel_resources), packed


def _write(report: Report) -> bytes:
    return json.dumps(([asdict(each) for each in report[0]], report[1])).encode()


def _read(data: bytes) -> Report:
    kernel_resources, packed = json.loads(data)
    return tuple(Resources(**{**each, "accesses": ()}) for each in kernel_resources), packed


_MEASURED: Cache[Report] = Cache("resources", 1 << 24, _write, _read)


def _pack_facts(facts: Facts) -> PackedFacts:
    rows = [(line, *astuple(one)) for line, each in facts.by_line.items() for one in each]
    return rows, pack_schedule(facts.schedule)


def _read_facts(rows: Sequence[Sequence[Any]], schedule: str) -> Facts:
    by_line: dict[int, list[MachineInstruction]] = {}
    for row in rows:
        by_line.setdefault(row[0], []).append(MachineInstruction(*row[1:]))
    return Facts(by_line, unpack_schedule(schedule))


def _number_of(arch: str) -> int:
    """Return the number of an architecture.

    >>> _number_of("sm_90a")
    90
    """
    return int(re.sub(r"\D", "", arch))


@cache
def _made_by() -> str:
    """Return a fingerprint of the assemblers and of cutrace's own code behind the measurement."""
    files = ((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in assemblers())
    return repr((*files, source_digest([Path(__file__), Path(__file__).with_name("sass.py")])))


def _assemble(
    ptx: str, kernel: str, arch: str, options: tuple[str, ...]
) -> tuple[Resources, bytes] | None:
    """Return the assembler's report for one architecture, and the cubin; None if it refuses."""
    text = _retarget(ptx, arch)
    assembly = assemble(text, _with_suffix(text, arch), "-v", *options)
    if assembly.cubin is None:
        return None
    report = _report_of(assembly.report, kernel)
    registers = _USED.search(report)
    if not registers:
        return None
    frame = _FRAME.search(report)
    barriers = _BARRIERS.search(report)
    stack, stores, loads = map(int, frame.groups()) if frame else (0, 0, 0)
    kernel_resources = Resources(
        arch=arch,
        registers=int(registers[1]),
        shared_bytes=_number(_SHARED, report),
        local_bytes=max(stack, _number(_LOCAL, report)),
        constant_bytes=_constant_bytes(assembly.cubin, kernel),
        spill_stores=stores,
        spill_loads=loads,
        barriers=int(barriers[1]) if barriers else -1,
    )
    return kernel_resources, assembly.cubin


def assemble_for(ptx: str, arch: str, options: Sequence[str] = ()) -> bytes:
    """Return the cubin of a text for an architecture; CutraceError if the assembler refuses it."""
    text = _retarget(ptx, arch)
    assembly = assemble(text, _with_suffix(text, arch), *options)
    if assembly.cubin is None:
        raise CutraceError(f"NVIDIA's assembler refuses this PTX for {arch}: {assembly.report}")
    return assembly.cubin


def find_body(ptx: str, kernel: str) -> tuple[int, int]:
    """Return where the body of a kernel begins and ends, its braces included."""
    match = next(each for each in _ENTRY.finditer(ptx) if each[1] == kernel)
    return ptx.index("{", match.end()), _end_of_body(ptx, match.end())


def single_kernel(ptx: str, kernel: str) -> str:
    """Return the text without the other kernels, to save the assembler time.

    Empty lines replace them, so that line numbers stay the same.
    """
    fragments, at = [], 0
    for match in _ENTRY.finditer(ptx):
        end = _end_of_body(ptx, match.end())
        if match[1] == kernel:
            fragments.append(ptx[at:end])
        else:
            fragments += ptx[at : match.start()], "\n" * ptx.count("\n", match.start(), end)
        at = end
    return "".join((*fragments, ptx[at:]))


def _end_of_body(ptx: str, at: int) -> int:
    """Return the end of the body that starts after `at`; inline assembly contains braces."""
    depth = 0
    for brace in _BRACE.finditer(ptx, at):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    return len(ptx)


def _retarget(ptx: str, arch: str) -> str:
    """Write an older `arch` into the `.target` line; for a newer one keep the text."""
    number = _number_of(arch)

    def older(match: re.Match[str]) -> str:
        return f"{match[1]}sm_{number}" if number < int(match[2]) else match[0]

    return _TARGET.sub(older, ptx, count=1)


def _with_suffix(ptx: str, arch: str) -> str:
    """Return `sm_90a` for `sm_90` if the text targets it: no other architecture accepts it."""
    target = _TARGET.search(ptx)
    return f"sm_{target[2]}{target[3]}" if target and arch == f"sm_{target[2]}" else arch


def _report_of(report: str, kernel: str) -> str:
    """Return the report on one kernel: `Compiling entry function 'K'` to the next such line."""
    _, separator, tail = report.partition(f"Compiling entry function '{kernel}'")
    return tail.partition("Compiling entry function")[0] if separator else ""


def _number(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def _constant_bytes(cubin: bytes, kernel: str) -> int:
    """Return the bytes of all constant banks: the kernel's own, and bank 3 of `__constant__`."""
    own = re.compile(rf"\.nv\.constant\d+(\.{re.escape(kernel)})?$")
    return sum(each.size for each in sections(cubin) if own.match(each.name))


_SOURCE = re.compile(r"\s*\.(?:loc|file)\s")
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_WHOLE = (";", "{", "}", ":")
"""Tokens that end a statement or separate two."""
FILE = '\n\t.file 1 "kernel.ptx"\n'


def mark_lines(ptx: str) -> str:
    """Return PTX with its own line numbers as `.loc` before each statement of a function.

    The line information of the original source is dropped.
    """
    marked: list[str] = []
    depth, begins = 0, True
    for number, line in enumerate(ptx.split("\n"), 1):
        if _SOURCE.match(line):
            continue
        statement = _COMMENT.sub("", line).strip()
        if depth and begins and _is_statement(statement):
            marked.append(f"\t.loc 1 {number} 0")
        marked.append(line)
        if statement:
            begins = statement.endswith(_WHOLE)
            depth += statement.count("{") - statement.count("}")
    return "\n".join(marked) + FILE


def _is_statement(statement: str) -> bool:
    """Return True if a line starts with an instruction, also after an opening brace."""
    word = statement.lstrip("{ \t")
    return bool(word) and (word[0] == "@" or word[0].islower())


TIMEOUT = 60.0
"""Maximum assembly time per kernel in seconds."""

NEWEST = (8, 8)
"""Newest PTX version that the assembler of 12.9 accepts."""

LEAST_OF_13 = 75
"""Oldest architecture that the assembler of 13 supports."""

_VERSION = re.compile(r"^(\s*\.version\s+)(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Assembled:
    """Result of ptxas: `cubin` is None if it refused; `report` is its output."""

    cubin: bytes | None
    report: str


def assemblers() -> tuple[Path, ...]:
    """Return the installed assemblers: none on macOS, for which NVIDIA publishes none."""
    paths = (find_file(name) for name in ("ptxas", "ptxas 13"))
    return tuple(path for path in paths if path)


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
        report, status = _run(command, arch)
        return Assembled(None if status else cubin.read_bytes(), report)


def _choose(ptx: str, arch: str) -> tuple[str, str]:
    """Return the assembler for a text and an architecture, and the text in a form it accepts."""
    match = _VERSION.search(ptx)
    if not match or (int(match[2]), int(match[3])) <= NEWEST:
        return "ptxas", ptx
    if _number_of(arch) >= LEAST_OF_13 and find_file("ptxas 13"):
        return "ptxas 13", ptx
    older = ".".join(map(str, NEWEST))
    return "ptxas", _VERSION.sub(lambda each: f"{each[1]}{older}", ptx, count=1)


def _run(command: list[str], arch: str) -> tuple[str, int]:
    """Return a command's output and its status: 0 for success, 1 to 255 for a refusal."""
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT,
            start_new_session=True,  # Ctrl-C is for the parent
        )
    except subprocess.TimeoutExpired:
        raise CutraceError(f"NVIDIA's assembler did not finish this PTX, for {arch}") from None
    if not 0 <= answer.returncode < 256:  # a signal; on Windows the number of an exception
        raise CutraceError(f"NVIDIA's assembler crashed over this PTX, for {arch}")
    return answer.stdout.decode(errors="replace"), answer.returncode
