"""Destinations of a sweep's table, and storage for the finished jobs of an interrupted sweep.

On this machine a destination is a file, `NAME.parquet` or `NAME.csv`. At an address (`s3://...`,
through fsspec) it is a file of these kinds or, without a suffix, a folder: a Parquet dataset with a
file per variant. Finished jobs are files in `NAME.parts` until the sweep is complete.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Protocol
from weakref import finalize

import polars as pl

from ...base.claim import sweep, whole_file
from ...base.errors import CutraceError
from ...base.sanitize import csv_cell
from ...traces.address import url_of
from ...traces.remote import open_store, telling
from .suite import COLUMNS

try:
    import fcntl
except ImportError:  # a system without it
    fcntl = None  # type: ignore[assignment]

FORMATS = (".parquet", ".csv")
MARK = "begun"
"""Marker file of a folder with finished jobs of a sweep."""
MARK_TEXT = b"Finished jobs of a sweep of cutrace, which removes them when all are done.\n"
_PART = re.compile(r"[0-9a-f]{24}\.parquet")
_OTHER = "there is something else of that name: not a sweep's table"
_TEXT = pl.col(pl.String).map_elements(csv_cell, return_dtype=pl.String)


class Destination(Protocol):
    """Stores jobs by name, and replaces them by the table of all."""

    def begin(self) -> set[str]:
        """Make room for jobs; return the names of stored ones."""

    def keep(self, name: str, job: pl.DataFrame) -> None:
        """Store a finished job atomically."""

    def read(self, names: Sequence[str]) -> list[pl.DataFrame]:
        """Return stored jobs."""

    def write(self, table: pl.DataFrame) -> None:
        """Write the table, and delete the stored jobs."""

    def close(self) -> None:
        """Let other sweeps write here."""


def find_destination(out: Path) -> Destination:
    """Return the destination of a path or an address.

    `CutraceError` for an unknown suffix, an unreachable place, and an existing file that is not a
    sweep's.
    """
    if url := url_of(str(out)):
        return Elsewhere(url)
    return Here(out)


class Here:
    """A file on this machine."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in FORMATS:
            raise CutraceError(f"{path}: expected a name that ends in {' or '.join(FORMATS)}")
        if path.is_dir() or not path.parent.is_dir():
            raise CutraceError(f"{path}: cannot write it: no such folder, or a folder itself")
        if path.exists() and not path.is_file():
            raise CutraceError(f"{path}: exists and is no file; name another with -o")
        if path.exists() and not _is_table(path.suffix, path.read_bytes()):
            raise CutraceError(f"{path}: {_OTHER}")
        self._path, self._parts = path, path.with_name(f"{path.name}.parts")
        self._unlock: Callable[[], object] = lambda: None

    def begin(self) -> set[str]:
        """Create the folder, and lock it: the sweep that ends first would remove it."""
        if not os.path.lexists(self._parts):
            self._make_parts()
        self._check_parts()
        self._lock()
        return {path.stem for path in self._parts.glob("*.parquet")}

    def _make_parts(self) -> None:
        try:
            with _telling(self._parts), whole_file(self._parts) as new:
                new.mkdir()
                (new / MARK).write_bytes(MARK_TEXT)
        except CutraceError:
            if not self._parts.is_dir():  # else another sweep has made it
                raise

    def _check_parts(self) -> None:
        """Raise CutraceError unless the folder is a sweep's: it will be removed."""
        mark = self._parts / MARK
        is_ours = not self._parts.is_symlink() and mark.is_file() and not mark.is_symlink()
        if not is_ours or mark.read_bytes() != MARK_TEXT:
            raise CutraceError(_not_ours(self._parts))

    def _lock(self) -> None:
        """Raise CutraceError if another sweep has the folder; have it until the end of this one."""
        if fcntl is None:
            return
        mark = os.open(self._parts / MARK, os.O_RDONLY | os.O_CLOEXEC)
        self._unlock = finalize(self, os.close, mark)
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CutraceError(
                f"{self._path}: another sweep is writing it: wait, or name another with -o"
            ) from None
        except OSError:  # a file system without locks
            pass

    def keep(self, name: str, job: pl.DataFrame) -> None:
        """Write a temporary file, and rename it once it is complete."""
        with _telling(self._path), whole_file(self._parts / f"{name}.parquet") as unfinished:
            job.write_parquet(unfinished)

    def read(self, names: Sequence[str]) -> list[pl.DataFrame]:
        """Read the files of jobs."""
        return [pl.read_parquet(self._parts / f"{name}.parquet") for name in names]

    def write(self, table: pl.DataFrame) -> None:
        """Write the file in the format of its suffix, and remove the folder."""
        with _telling(self._path), whole_file(self._path) as part:
            part.write_bytes(_bytes(self._path.suffix, table))
        sweep(self._parts)
        for part in self._parts.iterdir():
            if _PART.fullmatch(part.name):
                part.unlink(missing_ok=True)
        # The mark is last: the folder of a process that is killed here is still known as a sweep's.
        (self._parts / MARK).unlink()
        with suppress(OSError):  # the folder may have got other files meanwhile
            self._parts.rmdir()

    def close(self) -> None:
        """Unlock the folder."""
        self._unlock()


class Elsewhere:
    """A file or a folder at an address."""

    def __init__(self, url: str) -> None:
        self._url, self._suffix = url.rstrip("/"), PurePosixPath(url).suffix
        if self._suffix not in (*FORMATS, ""):
            endings = ", ".join(FORMATS)
            raise CutraceError(f"{url}: expected a name that ends in {endings}, or has no ending")
        with telling(self._url, "reach"):
            self._store, self._root = open_store(self._url)
            self._store.invalidate_cache()
            names = self._files(self._root)
            if not all(map(self._is_own, names)):
                raise CutraceError(f"{self._url}: {_OTHER}")
        self._parts = f"{self._root}.parts"

    def begin(self) -> set[str]:
        """Write an empty file, to report missing permissions before anything is recorded."""
        with telling(self._url, "write"):
            names = [*map(PurePosixPath, self._files(self._parts))]
            mark = f"{self._parts}/{MARK}"
            if names and not (self._store.exists(mark) and self._store.cat(mark) == MARK_TEXT):
                raise CutraceError(_not_ours(f"{self._url}.parts"))
            self._store.makedirs(self._parts, exist_ok=True)
            self._store.pipe_file(mark, MARK_TEXT)
            return {name.stem for name in names if name.suffix == ".parquet"}

    def keep(self, name: str, job: pl.DataFrame) -> None:
        """Write a file, atomically if the store can."""
        with telling(self._url, "write"), self._store.transaction:
            self._store.pipe_file(f"{self._parts}/{name}.parquet", _bytes(".parquet", job))

    def read(self, names: Sequence[str]) -> list[pl.DataFrame]:
        """Read files, concurrently if the store can."""
        paths = [f"{self._parts}/{name}.parquet" for name in names]
        with telling(self._url, "read"):
            contents = self._store.cat(paths)
        return [pl.read_parquet(BytesIO(contents[path])) for path in paths]

    def write(self, table: pl.DataFrame) -> None:
        """Write the file, or the files of the variants, replacing the earlier ones."""
        files = {self._root: table}
        if not self._suffix:
            each = table.partition_by("variant", maintain_order=True)
            files = {f"{self._root}/{number:04}.parquet": one for number, one in enumerate(each)}
        with telling(self._url, "write"):
            self._store.makedirs(str(PurePosixPath(next(iter(files))).parent), exist_ok=True)
            for path, one in files.items():
                self._store.pipe_file(path, _bytes(self._suffix, one))
            for path in {*self._files(self._root)} - {*files}:
                self._store.rm_file(path)
            parts = self._files(self._parts)
            names = {path: PurePosixPath(path).name for path in parts}
            own = [path for path, name in names.items() if name == MARK or _PART.fullmatch(name)]
            if own == parts:
                self._store.rm(self._parts, recursive=True)
            else:
                self._store.rm(own)

    def close(self) -> None:
        """Do nothing: other machines' sweeps are not seen."""

    def _files(self, root: str) -> list[str]:
        return sorted(self._store.find(root)) if self._store.exists(root) else []

    def _is_own(self, name: str) -> bool:
        """Return whether a sweep wrote this file."""
        if not self._suffix and not re.fullmatch(r"\d{4,}\.parquet", PurePosixPath(name).name):
            return False
        return _is_table(self._suffix, self._store.cat_file(name))


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Convert an error of the system into a CutraceError that names a path."""
    try:
        yield
    except OSError as error:
        raise CutraceError(f"{path}: cannot write it: {error.strerror or error}") from error


def _not_ours(parts: Path | str) -> str:
    return (
        f"{parts}: it is no sweep's, whose finished jobs are kept there: remove it, or name "
        "another table with -o"
    )


def _bytes(suffix: str, table: pl.DataFrame) -> bytes:
    """Return a table as CSV, or else as Parquet."""
    buffer = BytesIO()
    if suffix == ".csv":
        table.with_columns(_TEXT).write_csv(buffer)
    else:
        table.write_parquet(buffer)
    return buffer.getvalue()


def _is_table(suffix: str, data: bytes) -> bool:
    """Return whether a file has the columns of a sweep's table."""
    try:
        if suffix == ".csv":
            return {*COLUMNS} <= {*pl.read_csv(BytesIO(data), n_rows=0).columns}
        return {*COLUMNS} <= {*pl.read_parquet_schema(BytesIO(data))}
    except (pl.exceptions.PolarsError, OSError):
        return False
