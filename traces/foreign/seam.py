"""The interface of readers of foreign formats: launches, and rows of machine instructions.

A reader is a file `read_NAME.py` of this folder, or an entry point of the group `cutrace.importers`
that names such a module. It has three things:

    NAME: str                                       # what the format is called
    def claims(path: Path) -> bool                  # is this file of mine? by its name and start
    def read(path: Path) -> Iterator[Copy | Head | Rows]

Every `Head` begins a launch, and the `Rows` until the next are its own, in any number of chunks.
Rows of one warp come in the order in which it executed them; warps may be mixed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ...errors import CutraceError
from ...extension import IMPORTERS, extension_names, load_extension
from ...lazy_dataclass import dataclass
from .text import check_packing

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy from the host to the device, which tells where an array lies."""

    address: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Head:
    """A launch as the tool describes it; 0 and empty where it does not.

    `shared_window` and `local_window` are the generic addresses at which these spaces begin.
    `is_whole` says that every instruction of every warp has a row, not only those of memory.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    tool: str  # who traced, with its version
    arch: str = ""  # `sm_80`
    registers: int = 0
    shared_bytes: int = 0
    shared_dynamic: int = 0  # of these, asked for by the launch
    shared_window: int = 0
    local_window: int = 0
    is_whole: bool = False
    signature: str = ""
    lacks: tuple[str, ...] = ()  # what the format cannot tell, a phrase each


@dataclass(frozen=True, slots=True)
class Code:
    """One machine instruction: `pc` is its address in the code, -1 where it is not told.

    `text` is as a disassembler prints it, with its predicate, or what is known of it.
    """

    pc: int
    mnemonic: str  # `LDG.E.64`
    text: str
    line: int = 0
    predicate: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Some n executed instructions: thread `block` and `warp` (n,), `mask` (n,) of lanes on.

    `which` (n,) indexes `codes`. `memory` (m,) are the rows with `addresses` (m, 32), which count
    where the mask is set. `place` says where the rows stand, for messages.
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
        """Whether a file is of this format."""

    def read(self, path: Path) -> Iterator[Event]:
        """Yield what the file says; CutraceError, with file and line, where it is broken."""


def readers() -> dict[str, Reader]:
    """The readers there are, by name: those of this folder, then those of entry points."""
    package = __package__ or ""
    folder = import_module(package).__path__
    names = [m.name for m in iter_modules(folder) if m.name.startswith("read_")]
    found = [cast(Reader, import_module(f".{name}", package)) for name in names]
    own = extension_names(IMPORTERS)
    found += [cast(Reader, load_extension(IMPORTERS, name)) for name in own]
    return {reader.NAME: reader for reader in found}


def reader_of(path: Path, name: str = "") -> Reader:
    """Return the reader of a file: the one called `name`, else the first that claims it."""
    known = readers()
    if not path.is_file():
        raise CutraceError(f"{path}: no such file")
    if name and name not in known:
        raise CutraceError(f"no format is called {name!r}; there are {', '.join(known)}")
    for reader in (known[name],) if name else known.values():
        if name or reader.claims(path):
            return reader
    check_packing(path)
    raise CutraceError(
        f"{path}: of no format that can be imported ({', '.join(known)}); "
        "--format NAME reads it as that one"
    )
