"""Budget file: upper and lower limits on the counters of kernels, read from TOML.

    devices = ["h200"]               # default devices; -d on the command line overrides them
    compiler = "nvrtc 12.9, ..."     # compiler behind these numbers

    [[budget]]                       # for a kernel, or one of its lines or arrays
    kernel = "transpose<32>"
    line = "transpose.cu:21"         # or a part of the line's text
    shared_conflicts = 0             # maximum
    "global_load_transactions / global_load_requests" = 4
    sector_efficiency = ">= 0.9"

Every launch of the kernel must satisfy the limits. A key is a counter or an expression over
counters in polars SQL; a number means "not more than", and `"<= 16M"` is a size in bytes.
"""

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from ...base.config import check_keys, read_size, read_toml
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...traces.schema import Manifest
from ..counting.vocabulary import heading, in_todays_names, vocabularies

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
WORDS = {"<=": "not more than", ">=": "not less than", "==": "exactly", "<": "under", ">": "over"}
PLACE = ("kernel", "line", "array", "device")
"""Keys of an entry that select what is measured; every other key is a limit."""
HEAD = ("devices", "compiler", "budget")
_NUMBER = r"[-+]?[\d_.]+(?:[eE][-+]?\d+)?|\d+(?:\.\d+)? ?(?i:[KMGT]i?B?)"
_LIMIT = re.compile(rf"\s*(<=|>=|==|<|>)\s*({_NUMBER})\s*")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit on an expression; `counters` are the names of the columns that it reads."""

    expression: str
    counters: tuple[str, ...]
    operator: str
    number: int | float

    def holds(self, value: int | float) -> bool:
        """Return whether a value satisfies the limit."""
        return OPERATORS[self.operator](value, self.number)


@dataclass(frozen=True, slots=True)
class Entry:
    """One `[[budget]]` table: its index in the file, from 0, and its limits; unset selectors are
    empty.
    """

    number: int
    limits: tuple[Limit, ...]
    kernel: str
    line: str = ""
    array: str = ""
    device: str = ""

    @property
    def place(self) -> str:
        """Return the kernel, line or array of the entry as text."""
        part = self.line or (f"array {self.array}" if self.array else "")
        return f"{part} of {self.kernel}" if part else self.kernel


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget file; `compiler` is empty if the file does not name one."""

    path: Path
    entries: tuple[Entry, ...]
    devices: tuple[str, ...] = ()
    compiler: str = ""

    def where(self, entry: Entry) -> str:
        """Return the file and the entry as the prefix of a message."""
        return f"{self.path}: budget {entry.number + 1} ({entry.place})"


def name_compiler(manifest: Manifest) -> str:
    """Return the compiler of a trace's PTX with its target and options.

    Macro definitions and include paths are left out: they belong to the program, not to the
    compiler.
    """
    words = []
    for compiler in manifest.compilers:
        options = (o for o in compiler.options if not o.startswith(("-D", "-I", "-lineinfo")))
        parts = (f"{compiler.name} {compiler.version}".strip(), compiler.target, *options)
        words.append(", ".join(part for part in parts if part))
    return "; ".join(dict.fromkeys(words))


def read_budget(path: Path) -> Budget:
    """Read a budget file; `CutraceError` names the entry and the key that is wrong."""
    if not path.is_file():
        raise CutraceError(f"{path}: no such budget; --update writes one from the present numbers")
    document = read_toml(path.read_bytes(), str(path))
    check_keys(document, HEAD, str(path))
    tables = document.get("budget", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise CutraceError(f"{path}: `budget` must be a list of tables, each `[[budget]]`")
    if not tables:
        raise CutraceError(f"{path}: no [[budget]] in it; --update writes the present numbers")
    devices = document.get("devices", [])
    if not isinstance(devices, list) or not all(isinstance(name, str) for name in devices):
        raise CutraceError(f"{path}: devices = {devices!r}; expected a list of names")
    entries = read_entries(tables, path)
    return Budget(path, entries, tuple(devices), str(document.get("compiler", "")))


def read_entries(tables: Iterable[Mapping[str, object]], path: Path) -> tuple[Entry, ...]:
    """Parse the tables of a budget; `path` is the prefix of error messages."""
    return tuple(_entry(number, table, path) for number, table in enumerate(tables))


def _entry(number: int, table: Mapping[str, object], path: Path) -> Entry:
    """Parse one table of a budget."""
    where = f"{path}: budget {number + 1}"
    place = {key: table[key] for key in PLACE if key in table}
    for key, value in place.items():
        if not isinstance(value, str) or not value:
            raise CutraceError(f"{where}: {key} = {value!r}; expected a text")
    words = {key: str(value) for key, value in place.items()}
    if "kernel" not in words:
        raise CutraceError(f"{where}: no `kernel`: name the one that it is for")
    if "line" in words and "array" in words:
        raise CutraceError(f"{where}: a line or an array, not both")
    limits = tuple(_limits({k: v for k, v in table.items() if k not in PLACE}, where))
    if not limits:
        raise CutraceError(f"{where}: no counter in it, say `shared_conflicts = 0`")
    return Entry(number, limits, **words)


def _limits(table: Mapping[str, object], where: str) -> Iterator[Limit]:
    for key, value in table.items():
        match = _LIMIT.fullmatch(value) if isinstance(value, str) else None
        if match:
            sign, number = match[1], _number(match[2])
        elif isinstance(value, int | float) and not isinstance(value, bool):
            sign, number = "<=", value
        else:
            raise CutraceError(
                f'{where}: {key} = {value!r}; expected a number, or a comparison such as ">= 0.9"'
            )
        text = in_todays_names(key)
        yield Limit(text, _counters(text, where), sign, number)


def _number(text: str) -> int | float:
    if isinstance(size := read_size(text), int):
        return size
    return float(text) if set(text) & set(".eE") else int(text)


def _counters(text: str, where: str) -> tuple[str, ...]:
    """Return the counters that an expression reads; `CutraceError` suggests the nearest name."""
    counters = [heading(c) for vocabulary in vocabularies() for c in vocabulary.counters]
    if text in counters:
        return (text,)
    try:
        names = tuple(dict.fromkeys(pl.sql_expr(text).meta.root_names()))
    except PolarsError as error:
        raise CutraceError(f"{where}: `{text}` is no expression over counters: {error}") from error
    for name in names:
        if name not in counters:
            raise CutraceError(
                f"{where}: no counter `{name}`{nearest(name, (*counters, *PLACE))}; `cutrace"
                " counters` lists all"
            )
    if not names:
        raise CutraceError(f"{where}: `{text}` reads no counter")
    return names
