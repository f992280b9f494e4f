"""Accel-Sim: `kernelslist.g` and `kernel-N.traceg`, also compressed, of tracer versions 1 to 5.

Each line is an executed instruction, below headers of thread block and warp, or prefixed by them:

    [line_num] PC mask dest_num [regs] opcode src_num [regs] mem_width [mode addresses] [immediate]

`mask` are active lanes whose predicate held. Addresses have one of three modes: 0, one per lane of
the mask; 1, base and stride; 2, base and the differences from lane to lane.

Source: util/tracer_nvbit/tracer_tool/tracer_tool.cu and gpu-simulator/trace-parser/trace_parser.cc
of github.com/accel-sim/accel-sim-framework. That parser reads one difference too many in mode 2;
the tracer writes one less than lanes, which is what this reader expects.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ...base.errors import CutraceError
from .gathered_rows import MOST_ADDRESS, Flags, lanes_of
from .reader_interface import Code, Copy, Event, Fields, Head, Ints, Rows, Words, number_rows
from .text import Chunk, chunks, start_of

NAME = "accel-sim"
VERSIONS = range(1, 6)
LACKS = ("names of arrays and arguments", "predicates apart from active lanes")

_HEADER = re.compile(r"-(.+?) = (.*?)\s*")
_TRIPLE = re.compile(r"\((\d+),(\d+),(\d+)\)")
_KERNEL = re.compile(r"-kernel name =", re.MULTILINE)
_LIST = re.compile(r"(MemcpyHtoD,|kernel-)")
_DIGITS = frozenset("0123456789abcdef")
_BLOCK = ("threadblock_x", "threadblock_y", "threadblock_z", "warpid_tb")
"""Leading columns of lines that have no warp headers."""
_IDLE = ("sm_id", "warpid_sm")
"""Columns with the SM and warp slot, which a trace does not store."""


def claims(path: Path) -> bool:
    """Return whether a file is a list of kernels, or one kernel's trace."""
    start = start_of(path)
    return bool(_LIST.match(start) or _KERNEL.match(start.lstrip()))


def read(path: Path) -> Iterator[Event]:
    """Yield the events of a trace, or of all traces of a list."""
    if not _LIST.match(start_of(path)):
        yield from _Kernel(path).read()
        return
    for chunk in chunks(path):
        for index, line in enumerate(chunk.lines):
            if line.startswith("MemcpyHtoD"):
                yield _copy(line, chunk.place(index))
            elif line.startswith("kernel"):
                yield from _Kernel(_sibling_file(path, line.strip(), chunk.place(index))).read()
            elif line.strip() and not line.startswith("Memcpy"):
                raise CutraceError(
                    f"{chunk.place(index)}: {line[:60]!r}; a list of kernels has lines "
                    "`MemcpyHtoD,ADDRESS,BYTES` and `kernel-N.traceg`"
                )


def _copy(line: str, place: str) -> Copy:
    try:
        _, address, size = line.split(",")
        copy = Copy(int(address, 16), int(size))
    except ValueError:
        raise CutraceError(f"{place}: {line[:60]!r}, expected MemcpyHtoD,ADDRESS,BYTES") from None
    if copy.address < 0 or copy.bytes < 0 or copy.address + copy.bytes > MOST_ADDRESS:
        raise CutraceError(f"{place}: {line[:60]!r}: more than a device has of memory")
    return copy


def _sibling_file(path: Path, name: str, place: str) -> Path:
    """Return the path of a kernel's file beside the list, perhaps compressed."""
    if "/" in name or "\\" in name:
        raise CutraceError(f"{place}: {name[:60]!r} leads out of the folder of the list; refused")
    for suffix in ("", ".xz", ".gz", ".zst"):
        sibling = path.parent / f"{name}{suffix}"
        if sibling.is_file():
            return sibling
    raise CutraceError(f"{place}: there is no {path.parent / name}, packed or not")


class _Kernel:
    """Parser of one kernel's file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._facts: dict[str, str] = {}
        self._names: tuple[str, ...] = ()
        self._head: Head | None = None
        self._block, self._warp = -1, -1
        self._left = 0  # instructions of the warp that are still expected
        self._opened = ""  # place of the open thread block's header

    def read(self) -> Iterator[Event]:
        """Yield the launch and its rows."""
        for chunk in chunks(self._path):
            yield from self._read_chunk(chunk)
        if self._head is None:
            raise CutraceError(f"{self._path}: no `#traces format` line: is the file whole?")
        if self._left or self._opened:
            lacks = f"{self._left} instructions of warp {self._warp}" if self._left else "#END_TB"
            raise CutraceError(
                f"{self._path}: cut off: the file ends before {lacks} of the thread block at "
                f"{self._opened}"
            )

    def _read_chunk(self, chunk: Chunk) -> Iterator[Event]:
        """Parse a chunk: headers one by one, all instruction lines at once."""
        rows: list[int] = []
        runs: list[tuple[int, int, int]] = []  # (end of the run of rows, its block, its warp)
        for index, line in enumerate(chunk.lines):
            if line[:1] in _DIGITS and line:
                rows.append(index)
                continue
            if not line or line.isspace():
                continue
            self._count(rows, runs, chunk)
            if line.startswith("-"):
                self._header(line, chunk.place(index))
            elif line.startswith("#traces format"):
                yield self._begin(line, chunk.place(index))
            else:
                self._mark(line, chunk.place(index))
        self._count(rows, runs, chunk)
        if rows:
            yield self._rows(rows, runs, chunk)

    def _count(self, rows: list[int], runs: list[tuple[int, int, int]], chunk: Chunk) -> None:
        """Record the block and warp of the rows since the last header."""
        new = len(rows) - (runs[-1][0] if runs else 0)
        if not new:
            return
        if self._head is None:
            raise CutraceError(
                f"{chunk.place(rows[-1])}: an instruction before the line `#traces format`"
            )
        if self._grouped:
            if new > self._left:
                at = chunk.place(rows[self._left - new])
                raise CutraceError(f"{at}: an instruction more than `insts` says, or of no warp")
            self._left -= new
        runs.append((len(rows), self._block, self._warp))

    @property
    def _grouped(self) -> bool:
        """Return whether lines are below warp headers; in a `.trace` file each line has block and
        warp.
        """
        return self._path.name.split(".")[1:2] != ["trace"]

    def _header(self, line: str, place: str) -> None:
        match = _HEADER.fullmatch(line)
        if not match:
            raise CutraceError(f"{place}: {line[:60]!r}, expected -NAME = VALUE")
        self._facts[match[1]] = match[2]

    def _begin(self, line: str, place: str) -> Head:
        """Return the launch once all its headers are read."""
        names = line.partition("=")[2].split()
        if "PC" not in names:
            raise CutraceError(f"{place}: {line[:60]!r}: a format without a column PC")
        self._names = tuple(n for n in names[: names.index("PC")] if not n.startswith("["))
        version = self._number("accelsim tracer version", place, 10, 1)
        if version not in VERSIONS:
            raise CutraceError(
                f"{place}: accelsim tracer version {version}; 1 to {VERSIONS[-1]} can be read"
            )
        if strange := [n for n in self._names if n not in (*_BLOCK, *_IDLE)]:
            raise CutraceError(f"{place}: unknown column {strange[0]!r}")
        binary = self._number("binary version", place)
        self._head = Head(
            kernel=self._text("kernel name", place),
            grid=self._extent("grid dim", place),
            block=self._extent("block dim", place),
            tool=f"Accel-Sim tracer {version}, NVBit {self._facts.get('nvbit version', '?')}",
            arch=f"sm_{binary}" if binary else "",
            registers=self._number("nregs", place),
            shared_bytes=self._number("shmem", place),
            shared_window=self._number("shmem base_addr", place, 16),
            local_window=self._number("local mem base_addr", place, 16),
            is_whole=True,
            lacks=LACKS,
        )
        return self._head

    @property
    def _has_lines(self) -> bool:
        return self._facts.get("enable lineinfo", "0") not in ("0", "")

    def _text(self, name: str, place: str) -> str:
        if not self._facts.get(name):
            raise CutraceError(f"{place}: no line `-{name} = ...` before it")
        return self._facts[name]

    def _number(self, name: str, place: str, radix: int = 10, default: int = 0) -> int:
        text = self._facts.get(name, "")
        try:
            number = int(text, radix) if text else default
        except ValueError:
            number = -1
        if not 0 <= number < MOST_ADDRESS:
            raise CutraceError(f"{place}: -{name} = {text[:40]!r} is no number that it can be")
        return number

    def _extent(self, name: str, place: str) -> tuple[int, int, int]:
        match = _TRIPLE.fullmatch(self._text(name, place))
        if not match:
            raise CutraceError(f"{place}: -{name} = {self._facts[name][:40]!r}, expected (x,y,z)")
        return int(match[1]), int(match[2]), int(match[3])

    def _mark(self, line: str, place: str) -> None:
        """Parse a header of a thread block or of a warp."""
        words = line.replace("=", " ").replace(",", " ").split()
        if words[0] not in ("#BEGIN_TB", "#END_TB", "thread", "warp", "insts"):
            if words[0].startswith("#"):
                return
            raise CutraceError(f"{place}: {line[:60]!r} is no line of a trace")
        if self._head is None:
            raise CutraceError(f"{place}: {line[:60]!r} before the line `#traces format`")
        if self._left and words[0] != "insts":
            lacks = f"{self._left} instructions of warp {self._warp}"
            raise CutraceError(f"{place}: {lacks} are missing before it")
        if words[0] == "#BEGIN_TB":
            if self._opened:
                raise CutraceError(f"{place}: #BEGIN_TB, but that of {self._opened} has no #END_TB")
            self._opened = place
        elif words[0] == "#END_TB":
            self._opened = ""
        else:
            self._number_of(words, line, place)

    def _number_of(self, words: list[str], line: str, place: str) -> None:
        try:
            numbers = [int(word) for word in words if word.isdecimal()]
            if words[0] == "warp":
                (self._warp,) = numbers
            elif words[0] == "insts":
                (self._left,) = numbers
            else:
                x, y, z = numbers
                self._block = self._linear(x, y, z)
        except ValueError:
            problem = f"{line[:60]!r}: not the numbers that belong there"
            raise CutraceError(f"{place}: {problem}") from None

    def _linear(self, x: Any, y: Any, z: Any) -> Any:
        assert self._head is not None
        grid = self._head.grid
        return x + grid[0] * (y + grid[1] * z)

    def _rows(self, rows: list[int], runs: list[tuple[int, int, int]], chunk: Chunk) -> Rows:
        """Return all instructions of a chunk."""
        lines = pl.Series([chunk.lines[row] for row in rows])
        fields = Fields(lines, lambda n: chunk.place(rows[n]))
        ends = np.array([run[0] for run in runs], np.int64)
        block, warp = (
            np.repeat(np.array([run[i] for run in runs], np.int64), np.diff(ends, prepend=0))
            for i in (1, 2)
        )
        at = np.zeros(len(rows), np.int64)
        if {*_BLOCK} <= {*self._names}:
            x, y, z, warp = (fields.integers(at + self._names.index(name)) for name in _BLOCK)
            block = self._linear(x, y, z)
        at += len(self._names)
        line = np.zeros(len(rows), np.int64)
        if self._has_lines:
            line, at = fields.integers(at), at + 1
        return _parse(fields, at, line, block, warp, chunk.place(rows[0]))


def _parse(fields: Fields, at: Ints, line: Ints, block: Ints, warp: Ints, place: str) -> Rows:
    """Parse instructions with the program counter in field `at`."""
    pc, mask = fields.integers(at, 16), fields.integers(at + 1, 16)
    results = fields.integers(at + 2)
    at = at + 3 + results
    operands = fields.integers(at + 1)
    codes, which = _codes(fields, pc, line, at, results, operands)
    at = at + 2 + operands
    memory = np.flatnonzero(fields.integers(at))
    addresses = _addresses(fields, memory, at[memory] + 1, mask[memory])
    return Rows(codes, which, block, warp, mask, memory, addresses, place)


def _codes(
    fields: Fields, pc: Ints, line: Ints, at: Ints, results: Ints, operands: Ints
) -> tuple[list[Code], Ints]:
    """Return the distinct instructions, and the index of each row's instruction."""
    opcode = fields.texts(at)
    which, first = number_rows(pl.DataFrame({"pc": pc, "line": line, "opcode": opcode}))
    codes = []
    for row in first.tolist():
        place, before, after = int(at[row]), int(results[row]), int(operands[row])
        registers = fields.between(row, place - before, before)
        registers += fields.between(row, place + 2, after)
        text = f"{opcode[row]} {', '.join(registers)}".strip()
        codes.append(Code(int(pc[row]), opcode[row], f"{text};", int(line[row])))
    return codes, which


def _addresses(fields: Fields, rows: Ints, at: Ints, mask: Ints) -> Words:
    """Return the addresses (m, 32) of some rows with the address mode in field `at`."""
    addresses = np.zeros((len(rows), 32), np.uint64)
    mode, on = fields.integers(at, rows=rows), lanes_of(mask)
    count = on.sum(axis=1)
    if len(wrong := np.flatnonzero((mode < 0) | (mode > 2))):
        fields.refuse(int(rows[wrong[0]]), f"address mode {mode[wrong[0]]}, expected 0, 1 or 2")
    listed = np.flatnonzero((mode == 0) & (count > 0))
    addresses[listed] = _spread(
        fields.words(rows[listed], at[listed] + 1, count[listed]), on[listed]
    )
    for other in (1, 2):
        some = np.flatnonzero((mode == other) & (count > 0))
        base = fields.words(rows[some], at[some] + 1, np.ones(len(some), np.int64))
        steps = count[some] - 1
        if other == 1:
            stride = fields.integers(at[some] + 2, rows=rows[some])
            offsets = np.repeat(stride, steps)
        else:
            offsets = fields.differences(rows[some], at[some] + 2, steps)
        addresses[some] = _spread(_summed(base, offsets, steps), on[some])
    return addresses


def _summed(base: Words, steps: Ints, count: Ints) -> Words:
    """Return each base, followed by the prefix sums of its number of steps."""
    starts = np.cumsum(count + 1) - (count + 1)
    flat = np.zeros(int((count + 1).sum()), np.int64)
    is_base = np.zeros(len(flat), bool)
    is_base[starts] = True
    flat[~is_base] = steps
    total = np.cumsum(flat)
    total -= np.repeat(total[starts], count + 1)
    return np.repeat(base, count + 1) + total.view(np.uint64)


def _spread(values: Words, on: Flags) -> Words:
    """Scatter values to the active lanes, row by row, as (m, 32)."""
    grid = np.zeros(on.shape, np.uint64)
    grid[on] = values
    return grid
