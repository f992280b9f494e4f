"""Interface of trace readers: the events that they yield, and their registry.

`Copy`, `Head` and `Rows` are the events. `Fields` parses lines of blank-separated words as columns
of numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NoReturn, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.plugins import IMPORTERS, extension_names, load_extension
from .text import check_packing

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy from the host to the device, which reveals the address of an array."""

    address: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Head:
    """A launch as the tool describes it; 0 and empty where unknown.

    `shared_window` and `local_window` are the generic addresses at which these spaces begin.
    `is_whole` is set if every instruction of every warp has a row, not only memory accesses.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    tool: str  # the tracing tool with its version
    arch: str = ""  # `sm_80`
    registers: int = 0
    shared_bytes: int = 0
    shared_dynamic: int = 0  # of these, dynamic
    shared_window: int = 0
    local_window: int = 0
    is_whole: bool = False
    signature: str = ""
    lacks: tuple[str, ...] = ()  # what the format does not record, a phrase each


@dataclass(frozen=True, slots=True)
class Code:
    """One machine instruction: `pc` is its address in the code, -1 if unknown.

    `text` is the disassembly with its predicate, as far as known.
    """

    pc: int
    mnemonic: str  # `LDG.E.64`
    text: str
    line: int = 0
    predicate: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The next n executed instructions: thread `block` and `warp` (n,), `mask` (n,) of active
    lanes.

    `which` (n,) indexes `codes`. `memory` (m,) are the rows with `addresses` (m, 32), which are
    valid for lanes in the mask. `place` returns the location of a row, for messages.
    """

    codes: Sequence[Code]
    which: Ints
    block: Ints
    warp: Ints
    mask: Ints
    memory: Ints
    addresses: Words
    place: str = field(default="")


Event: TypeAlias = Copy | Head | Rows


class Reader(Protocol):
    """A module that reads one format."""

    NAME: str

    def claims(self, path: Path) -> bool:
        """Return whether a file has this format."""

    def read(self, path: Path) -> Iterator[Event]:
        """Yield the events of the file; CutraceError, with file and line, if it is broken."""


def readers() -> dict[str, Reader]:
    """Return the readers by name: those of this folder, then those of entry points."""
    package = __package__ or ""
    folder = import_module(package).__path__
    names = [m.name for m in iter_modules(folder) if m.name.startswith("read_")]
    modules = [cast(Reader, import_module(f".{name}", package)) for name in names]
    own = extension_names(IMPORTERS)
    modules += [cast(Reader, load_extension(IMPORTERS, name)) for name in own]
    return {reader.NAME: reader for reader in modules}


def reader_of(path: Path, name: str = "") -> Reader:
    """Return the reader of a file: the one called `name`, else the first that claims it."""
    by_name = readers()
    if not path.is_file():
        raise CutraceError(f"{path}: no such file")
    if name and name not in by_name:
        raise CutraceError(f"no format is called {name!r}; there are {', '.join(by_name)}")
    for reader in (by_name[name],) if name else by_name.values():
        if name or reader.claims(path):
            return reader
    check_packing(path)
    raise CutraceError(
        f"{path}: of no format that can be imported ({', '.join(by_name)}); "
        "--format NAME reads it as that one"
    )


def number_rows(table: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return the distinct row that equals each row, and the first position of each distinct row."""
    ranks = table.select(which=pl.struct(pl.all()).rank("dense"))["which"]
    which: Ints = ranks.to_numpy().astype(np.int64) - 1
    return which, np.unique(which, return_index=True)[1]


class Fields:
    """The words of n lines; `place` returns the location of a line. A word is addressed by its
    index in the line, from 0; CutraceError if a line is too short, or a word is not a number.
    """

    def __init__(self, lines: pl.Series, place: Callable[[int], str]) -> None:
        self._place = place
        words = lines.str.strip_chars().str.replace_all(r"\s\s+", " ").str.split(" ")
        self.counts: Ints = words.list.len().to_numpy().astype(np.int64)
        self._starts = np.cumsum(self.counts) - self.counts
        self._words = words.explode()

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.counts)

    def refuse(self, row: int, problem: str) -> NoReturn:
        """Raise an error that names the line."""
        raise CutraceError(f"{self._place(row)}: {problem}")

    def texts(self, at: Ints, rows: Ints | None = None) -> pl.Series:
        """Return the word at index `at` (m,) of each of `rows`, by default of all."""
        rows = np.arange(len(self)) if rows is None else rows
        short = np.flatnonzero((at >= self.counts[rows]) | (at < 0))
        if len(short):
            row = int(rows[short[0]])
            self.refuse(row, f"{self.counts[row]} words, expected more: is the line cut off?")
        return self._words.gather(self._starts[rows] + at)

    def integers(self, at: Ints, radix: int = 10, rows: Ints | None = None) -> Ints:
        """Return the same words as numbers."""
        return self._numbers(self.texts(at, rows), radix, rows)

    def lists(self, at: Ints, length: int) -> Ints:
        """Return the words at index `at` (n,) as `length` comma-separated numbers, (n, length)."""
        texts = self.texts(at)
        parts = texts.str.split(",")
        if len(short := np.flatnonzero(parts.list.len().to_numpy() != length)):
            row = int(short[0])
            self.refuse(row, f"{texts[row][:40]!r}, expected {length} numbers between commas")
        rows = np.repeat(np.arange(len(self)), length)
        return self._numbers(parts.explode(), 10, rows).reshape(-1, length)

    def words(self, rows: Ints, at: Ints, count: Ints) -> Words:
        """Return addresses `0x...`: for each row `count` of them from index `at` on."""
        owners = np.repeat(np.arange(len(rows)), count)
        texts = self._several(rows, at, count, owners)
        plain = texts.str.strip_prefix("0x")
        if (long := plain.str.len_bytes() > 16).any():
            self.refuse(int(rows[owners[long.arg_max() or 0]]), "an address of more than 64 bits")
        high = plain.str.head(-8).replace("", "0")  # Int64 cannot hold an unsigned 64-bit value
        low = plain.str.tail(8)
        both = [self._numbers(part, 16, rows[owners]).astype(np.uint64) for part in (high, low)]
        return both[0] << np.uint64(32) | both[1]

    def differences(self, rows: Ints, at: Ints, count: Ints) -> Ints:
        """Return signed decimal numbers: for each row `count` of them from index `at` on."""
        owners = np.repeat(np.arange(len(rows)), count)
        return self._numbers(self._several(rows, at, count, owners), 10, rows[owners])

    def between(self, row: int, at: int, count: int) -> list[str]:
        """Return some words of a line."""
        start = int(self._starts[row]) + at
        return self._words[start : start + count].to_list()

    def _several(self, rows: Ints, at: Ints, count: Ints, owners: Ints) -> pl.Series:
        first = np.cumsum(count) - count
        place = np.arange(len(owners)) - first[owners]
        return self.texts(at[owners] + place, rows[owners])

    def _numbers(self, texts: pl.Series, radix: int, rows: Ints | None) -> Ints:
        if radix == 10:
            numbers = texts.cast(pl.Int64, strict=False)
        else:
            plain = texts.str.strip_prefix("0x")
            numbers = plain.str.to_integer(base=radix, strict=False, dtype=pl.Int64)
        if numbers.null_count():
            wrong = int(numbers.is_null().arg_max() or 0)
            row = wrong if rows is None else int(rows[wrong])
            self.refuse(row, f"{texts[wrong][:40]!r} is no number; is the line whole?")
        return numbers.to_numpy()
