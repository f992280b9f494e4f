"""Deduplication: equal tables of a trace are one file, equal launches one folder.

A program launches the same kernel many times. A table equal to one of an earlier launch is a hard
link to its file, and a launch with equal tables throughout is a symbolic link to the earlier one's
folder. Readers see whole folders either way; a file system without links gets copies.
"""

import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from ..errors import CutraceError
from .folder.folder import reason
from .table.table_file import TableFile


class Shelf:
    """The launches of the trace in `folder`, `label` in messages, by what their tables hold."""

    def __init__(self, folder: Path, label: str) -> None:
        self._folder = folder
        self._label = label
        self._files: dict[bytes, int] = {}
        self._launches: dict[bytes, int] = {}

    def put(self, number: int, files: Mapping[str, TableFile]) -> None:
        """Write what the tables of a launch hold and nobody has, and link the rest."""
        marks = {name: _mark(name, file) for name, file in files.items()}
        whole = b"".join(mark or b"" for mark in marks.values())
        alike = self._launches.get(whole) if None not in marks.values() else None
        if alike is not None and _could(os.symlink, str(alike), self._folder / str(number)):
            return
        self._make_folder(number)
        for name, file in files.items():
            self._put_file(number, name, file, marks[name])
        if None not in marks.values():
            self._launches.setdefault(whole, number)

    def _put_file(self, number: int, name: str, file: TableFile, mark: bytes | None) -> None:
        if mark is None:
            file.close()
            return
        there = self._files.setdefault(mark, number)
        places = (os.path.join(self._folder, str(n), f"{name}.arrow") for n in (there, number))
        if there != number and not _could(os.link, *places):
            self._files[mark] = number  # it has as many names as the file system gives one
            there = number
        if there == number:
            file.close()

    def _make_folder(self, number: int) -> None:
        try:
            (self._folder / str(number)).mkdir(exist_ok=True)
        except OSError as error:
            raise CutraceError(
                f"{self._label}/{number}: cannot write it: {reason(error)}"
            ) from error


def _mark(name: str, file: TableFile) -> bytes | None:
    """The hash of a table's rows; None if it is on disk, in part, already.

    Processors have instructions for SHA-256: it takes half as long as BLAKE2.
    """
    held = file.held_bytes()
    if held is None:
        return None
    return name.encode() + sha256(held).digest()


def _could(link: Callable[..., None], *places: str | Path) -> bool:
    try:
        link(*places)
    except (OSError, NotImplementedError):
        return False
    return True
