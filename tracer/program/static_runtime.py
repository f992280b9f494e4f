"""NVIDIA's static runtime in libraries that are stripped of its names: where its functions are.

Every copy of `libcudart_static.a` of a version has the same text, byte for byte but for what the
linker fills in, so one place in a library says where all functions are. `static_runtimes.csv` has
for each text of NVIDIA's packages the offsets of its functions, and probes: pieces that the linker
does not change, by offset, size, first eight bytes and hash. driver/embedded.c searches for the
first probe at every 16th byte of a library, and believes it if all others are in place.
`scripts/write/static_runtimes.py` writes the table from the packages.
"""

import csv
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError

TABLE = Path(__file__).with_name("static_runtimes.csv")
_PROBES = 16
_PROBE_BYTES = 256
_STEP = 16
"""Alignment of functions, and so of an archive's text in a library."""

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOLS, _FUNCTION = 2, 2
_WIDE = 1
"""R_X86_64_64: eight bytes; all other relocations of text have four."""

_RELAXED = (9, 41, 42)
"""R_X86_64_GOTPCREL and its forms: the linker may change the instruction before the bytes."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A piece of text without relocations: its offset, size, first eight bytes and hash."""

    offset: int
    size: int
    word: int
    hash: int


@dataclass(frozen=True, slots=True)
class StaticRuntime:
    """The text of a runtime's version: its size, its probes, and its functions' offsets."""

    version: str
    size: int
    probes: tuple[Probe, ...]
    functions: Mapping[str, int]

    @property
    def major(self) -> int:
        """The version of CUDA by which its names are understood."""
        return int(self.version.partition(".")[0])


def hash_of(data: bytes) -> int:
    """Return the hash that driver/embedded.c computes: FNV-1a of 64 bits, over words of eight.

    >>> hex(hash_of(bytes(8)))
    '0xaf63bd4c8601b7df'
    """
    value = 0xCBF29CE484222325
    for (word,) in struct.iter_unpack("<Q", data):
        value = (value ^ word) * 0x100000001B3 & (1 << 64) - 1
    return value


def read_archive(path: Path, version: str) -> StaticRuntime:
    """Return what a `libcudart_static.a` says; raise CutraceError if it is another kind of file."""
    sections, data = _sections(_member(path.read_bytes(), path))
    number = next(n for n, each in enumerate(sections) if each.name == ".text")
    text = sections[number].bytes(data)
    fixed = _fixed_bytes(sections, data, len(text))
    return StaticRuntime(
        version, len(text), tuple(_probes(text, fixed)), dict(_functions(sections, data, number))
    )


def _member(archive: bytes, path: Path) -> bytes:
    at = 8
    while archive.startswith(b"!<arch>\n") and at < len(archive):
        size = int(archive[at + 48 : at + 58])
        if archive[at : at + 6] == b"cudart":
            return archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise CutraceError(f"{path} is not NVIDIA's static runtime")


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int

    def bytes(self, data: bytes) -> bytes:
        return data[self.offset : self.offset + self.size]


def _sections(data: bytes) -> tuple[Sequence[_Section], bytes]:
    (place,) = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    heads = [_SECTION.unpack_from(data, place + n * _SECTION.size) for n in range(count)]
    start = heads[names][4]
    sections = [
        _Section(_text(data, start + name), kind, offset, size, link)
        for name, kind, _, _, offset, size, link, *_ in heads
    ]
    return sections, data


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(0, at)].decode()


def _fixed_bytes(sections: Sequence[_Section], data: bytes, size: int) -> NDArray[np.bool_]:
    """Return which bytes of the text the linker leaves as they are."""
    fixed = np.ones(size, bool)
    relocations = next(each for each in sections if each.name == ".rela.text").bytes(data)
    for offset, info, _ in _RELOCATION.iter_unpack(relocations):
        kind = info & 0xFFFFFFFF
        before = 3 if kind in _RELAXED else 0
        fixed[max(offset - before, 0) : offset + (8 if kind == _WIDE else 4)] = False
    return fixed


def _functions(sections: Sequence[_Section], data: bytes, number: int) -> Iterator[tuple[str, int]]:
    """Yield the functions of the runtime's interface, by offset in the text."""
    table = next(each for each in sections if each.kind == _SYMBOLS)
    names = sections[table.link].offset
    for name, info, _, section, value, _ in _SYMBOL.iter_unpack(table.bytes(data)):
        if info & 15 == _FUNCTION and section == number:
            text = _text(data, names + name)
            if text.startswith(("cuda", "__cuda")) and not text.startswith("cudart"):
                yield text, value


def _probes(text: bytes, fixed: NDArray[np.bool_]) -> Iterator[Probe]:
    """Yield the longest piece, which is searched for, and the longest of each part of the text."""
    breaks = np.flatnonzero(~np.concatenate(([False], fixed, [False])))
    starts, sizes = breaks[:-1], np.diff(breaks) - 1
    starts, sizes = starts + -starts % _STEP, sizes - -starts % _STEP
    part = len(text) // (_PROBES - 1) + 1
    bins = [np.flatnonzero(starts // part == n) for n in range(_PROBES - 1)]
    for each in (np.arange(len(starts)), *bins):
        best = each[sizes[each].argmax()]
        start, size = int(starts[best]), min(int(sizes[best]) // 8 * 8, _PROBE_BYTES)
        piece = text[start : start + size]
        yield Probe(start, size, int.from_bytes(piece[:8], "little"), hash_of(piece))


def read_table() -> list[StaticRuntime]:
    """Return the runtimes of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        (_, *versions), *rows = csv.reader(file)
    cells = {name: values for name, *values in rows}
    sizes = cells.pop("size")
    pieces = [cells.pop(f"probe {n}") for n in range(_PROBES)]
    return [
        StaticRuntime(
            version,
            int(sizes[n], 16),
            tuple(Probe(*(int(word, 16) for word in each[n].split(":"))) for each in pieces),
            {name: int(values[n], 16) for name, values in cells.items() if values[n]},
        )
        for n, version in enumerate(versions)
    ]


def write_table(runtimes: Sequence[StaticRuntime]) -> None:
    """Write the table of these runtimes; of equal texts the newest version is named."""
    kept = list({each.probes: each for each in runtimes}.values())
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", *(each.version for each in kept)])
        writer.writerow(["size", *(f"{each.size:x}" for each in kept)])
        for n in range(_PROBES):
            probes = (each.probes[n] for each in kept)
            words = (f"{p.offset:x}:{p.size:x}:{p.word:x}:{p.hash:x}" for p in probes)
            writer.writerow([f"probe {n}", *words])
        for name in sorted({name for each in kept for name in each.functions}):
            offsets = (each.functions.get(name) for each in kept)
            writer.writerow([name, *("" if each is None else f"{each:x}" for each in offsets)])


def write_header(runtimes: Iterable[StaticRuntime]) -> str:
    """Return C: RUNTIME, PROBE and PLACE lines of the runtimes, which driver/embedded.c reads."""
    lines: list[str] = []
    for each in runtimes:
        lines.append(f'RUNTIME("{each.version}", {each.major}, {each.size})')
        lines += (f"PROBE({p.offset}, {p.size}, {p.word:#x}u, {p.hash:#x}u)" for p in each.probes)
        lines += (f"PLACE({name}, {offset})" for name, offset in each.functions.items())
        lines.append("END")
    return "\n".join((*lines, ""))
