"""Project file `cutrace.toml`: which kernels are checked against which limits.

    devices = ["h200", "gtx580"]       # default of each check; -d overrides them
    baseline = "main"                  # a git ref, or a file that --write-baseline wrote
    tolerance = 5                      # permitted increase over the baseline, per cent
    counters = ["global_transactions"] # compared with the baseline; default: BASIC

    [[check]]
    source = "src/turn.cu"             # relative path: a kernel, a program or a trace
    launch = "turn<<<...>>>(...)"      # one or several; default: comments of the source
    define = ["PAD=1"]
    budget = "budget.toml"             # limits in a separate file
    races = true                       # check for shared-memory races, as --races
    memory = true                      # check for out-of-bounds accesses, as --memory
    [[check.limit]]                    # inline limits, in the form of [[budget]]
    kernel = "turn"
    shared_conflicts = 0

`program = ["1024"]` builds and runs the source as a program with these arguments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ...base.config import Where, check_keys, make, read_toml
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..counting.vocabulary import find_counters, today
from .budget import Entry, read_entries

NAME = "cutrace.toml"
HEAD = ("devices", "baseline", "tolerance", "counters", "check")
BASIC = (
    *("global_transactions", "global_bytes_transferred", "dram_bytes_read", "dram_bytes_written"),
    *("local_load_transactions", "local_store_transactions"),
    *("shared_wavefronts", "shared_conflicts", "constant_wavefronts", "texture_transactions"),
    *("divergent_branches", "instructions"),
)
"""Counters of which less is better: the default for a comparison with a baseline."""


@dataclass(frozen=True, slots=True)
class Check:
    """One `[[check]]` table: paths are relative to the file's folder, `program` is None if no
    program is run.
    """

    source: str
    launch: Sequence[str] = ()
    define: Sequence[str] = ()
    include: Sequence[str] = ()
    program: Sequence[str] | None = None
    devices: Sequence[str] = ()
    budget: str = ""
    limit: Sequence[object] = ()
    races: bool = False
    memory: bool = False

    @property
    def name(self) -> str:
        """Return the name of the check: its source and how it is run."""
        words = (*(f"-D{text}" for text in self.define), *self.launch, *(self.program or ()))
        return " ".join((self.source, *words))


@dataclass(frozen=True, slots=True)
class Project:
    """A project file; `limits` are the entries of each check."""

    path: Path
    checks: tuple[Check, ...]
    limits: tuple[tuple[Entry, ...], ...]
    devices: tuple[str, ...] = ()
    baseline: str = ""
    tolerance: float = 0.0
    counters: tuple[str, ...] = BASIC


@dataclass(frozen=True, slots=True)
class _Head:
    devices: Sequence[str] = ()
    baseline: str = ""
    tolerance: float = 0.0
    counters: Sequence[str] = field(default=BASIC)


def read_project(path: Path) -> Project:
    """Read a project file; `CutraceError` names the check and the key that is wrong."""
    document = read_toml(path.read_bytes(), str(path))
    check_keys(document, HEAD, str(path))
    tables = document.pop("check", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise CutraceError(f"{path}: `check` must be a list of tables, each `[[check]]`")
    if not tables:
        raise CutraceError(f"{path}: no [[check]] in it, so that there is nothing to check")
    head = make(_Head, document, Where("", str(path), str(path)))
    counters = tuple(map(today, head.counters))
    find_counters(counters)
    if head.tolerance < 0:
        raise CutraceError(f"{path}: tolerance = {head.tolerance:g}; expected 0 per cent or more")
    checks = tuple(_check(number, table, path) for number, table in enumerate(tables))
    limits = tuple(_limits(number, check, path) for number, check in enumerate(checks))
    for number, check in enumerate(checks):
        if not (check.budget or limits[number] or check.races or check.memory or head.baseline):
            raise CutraceError(
                f"{path}: check {number + 1} ({check.source}): nothing to check: give it a budget,"
                " a [[check.limit]], races or memory, or the file a baseline"
            )
    return Project(
        path,
        checks,
        limits,
        tuple(head.devices),
        head.baseline,
        head.tolerance,
        counters,
    )


def _check(number: int, table: Mapping[str, Any], path: Path) -> Check:
    launch = table.get("launch", [])
    read = {**table, "launch": [launch] if isinstance(launch, str) else launch}
    return make(Check, read, Where(f"check {number + 1}", str(path), str(path)))


def _limits(number: int, check: Check, path: Path) -> tuple[Entry, ...]:
    tables = [table for table in check.limit if isinstance(table, dict)]
    if len(tables) < len(check.limit):
        raise CutraceError(f"{path}: check {number + 1}: `limit` must be tables: [[check.limit]]")
    return read_entries(tables, path)
