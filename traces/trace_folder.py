"""The folder of a trace: built in a hidden sibling folder, renamed when complete.

The workshop is that sibling: `new` is the unfinished trace. A replaced trace is exchanged with it
atomically, or becomes `old` until it is deleted if the file system cannot exchange two folders. The
workshop is always removed; after a killed process, when the next trace is written to the same
folder.
"""

import ctypes
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

from ..base.claim import Claim, sweep
from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .archive import PackedPath, is_archive, pack
from .schema import TABLES

MANIFEST = "manifest.json"
_HERE, _EXCHANGE = -100, 2
"""`AT_FDCWD` and `RENAME_EXCHANGE` of Linux."""
_TABLE_FILES = frozenset(f"{name}.arrow" for name in TABLES)


class Workshop:
    """The hidden sibling folder of `target` for building a trace; `folder` is the trace itself.

    A relative target is resolved at once, so a later change of the current folder has no effect.
    Raises CutraceError if something other than a trace has that name, or nothing can be written.
    """

    def __init__(self, target: Path) -> None:
        self._target = Path(os.path.abspath(target))
        self._claim: Claim | None = None
        try:
            check_target(target)
            sweep(self._target.parent)
            self._claim = Claim(self._target.parent, self._target.name)
            self.folder = self._claim.folder / "new"
            self.folder.mkdir()
        except OSError as error:
            self.discard()
            raise CutraceError(f"{target}: cannot write a trace here: {reason(error)}") from error

    def publish(self) -> None:
        """Rename the trace to its final name, replacing an earlier trace."""
        try:
            check_target(self._target)
            self._exchange()
        except OSError as error:
            raise CutraceError(f"{self._target}: cannot write it: {reason(error)}") from error
        finally:
            self.discard()

    def _exchange(self) -> None:
        if is_archive(self._target):
            packed = self.folder.parent / "packed"
            pack(self.folder, packed)
            os.replace(packed, self._target)
            return
        if _swap(self.folder, self._target):
            try:
                _check_trace(self.folder, self._target)  # it may have been replaced since
            except CutraceError:
                _swap(self.folder, self._target)
                raise
            return
        # Fallback without an atomic exchange: move the old trace away, then the new one in. Retry,
        # since another writer may publish between the two renames; on failure restore the old
        # trace.
        old = self.folder.parent / "old"
        try:
            while True:
                with suppress(FileNotFoundError):  # absent, or being replaced by another writer
                    os.rename(self._target, old)
                    _check_trace(old, self._target)  # as above
                try:
                    os.rename(self.folder, self._target)
                    return
                except OSError:
                    if not self._target.is_dir():
                        raise
                    shutil.rmtree(old, ignore_errors=True)  # another writer may have removed it
        except BaseException:
            if old.exists() and not os.path.lexists(self._target):
                os.rename(old, self._target)
            raise

    def discard(self) -> None:
        """Remove the unfinished trace."""
        if self._claim:
            self._claim.release()


def _swap(one: Path, other: Path) -> bool:
    """Exchange two paths atomically; return whether the system supports it."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # other system, or old C library
        return False
    status: int = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return status == 0


def check_target(target: Path) -> None:
    """Raise CutraceError unless `target` is free, or a trace and nothing but a trace."""
    if not target.parent.is_dir():
        raise CutraceError(f"{target}: there is no folder {target.parent}; make it first")
    if os.path.lexists(target):
        _check_trace(target, target)


def _check_trace(place: Path, target: Path) -> None:
    """Raise CutraceError unless `place` is a trace and nothing but a trace."""
    if problem := next(_strange(place), ""):
        raise CutraceError(
            f"{target}: {problem}; only an existing trace is replaced:"
            " choose another name, or remove it yourself"
        )


def _strange(target: Path) -> Iterator[str]:
    """Yield files at `target` that do not belong to a trace."""
    if target.is_symlink():
        yield "a symbolic link has this name"
    if is_archive(target) and target.is_file():
        if not _has_manifest(PackedPath(target)):
            yield "a file that is no packed trace has this name"
        return
    if not target.is_dir():
        yield "a file has this name"
    if not _has_manifest(target):
        yield "a folder that is not a trace has this name"
    with os.scandir(target) as entries:
        for entry in sorted(entries, key=attrgetter("name")):
            if entry.name.isdecimal() and entry.is_dir():
                for name in sorted({*os.listdir(entry)} - _TABLE_FILES):
                    yield f"{os.path.join(entry, name)} is no part of a trace"
            elif entry.name != MANIFEST:
                yield f"{entry.path} is no part of a trace"


def _has_manifest(folder: Path) -> bool:
    try:
        file = folder / MANIFEST
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would block
            return False
        return _is_manifest(file, (status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, ValueError, CutraceError):
        return False


@lru_cache(maxsize=1)
def _is_manifest(file: Path, _: tuple[int, int, int]) -> bool:
    """Return whether a file is a manifest; the result is cached until the file changes."""
    return is_manifest(file.read_bytes())


def is_manifest(data: bytes) -> bool:
    """Return whether these are the bytes of a manifest."""
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(manifest, dict)
        and isinstance(manifest.get("format_version"), int)
        and isinstance(manifest.get("launches"), list)
    )


def write_file(path: str, data: bytes | memoryview) -> None:
    """Write a file without the three extra system calls of `open`, which would take half as long
    again.
    """
    binary = getattr(os, "O_BINARY", 0)  # on Windows
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | binary, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove a folder recursively."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise CutraceError(f"{folder}: cannot remove it: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Return the first line of an operating system or Arrow error."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).splitlines()[0]


MANIFEST_BYTES = 64
"""Approximate manifest bytes of a launch that equals another."""


@dataclass(slots=True)
class SizeLimit:
    """The size limit of a trace called `label`, in bytes; 0: no limit.

    `where` names the launch being written, `written` and `blocks` are its progress. With `spares`,
    launches beyond the limit are left out of the trace: `full_at` is the first such launch.
    """

    label: str
    limit: int = 0
    used: int = 0
    where: str = ""
    before: int = 0
    written: int = 0
    blocks: int = 0
    spares: bool = False
    number: int = 0
    full_at: int | None = None

    def begin(self, number: int, where: str, blocks: int) -> None:
        """Begin a launch, with its number of thread blocks."""
        self.number, self.where, self.written, self.blocks = number, where, 0, blocks
        self.before = self.used
        if self.spares:
            self.take(MANIFEST_BYTES)

    def forget(self) -> None:
        """Forget the last launch."""
        self.used = self.before
        if self.full_at == self.number:
            self.full_at = None

    def reach(self, block: int) -> None:
        """Record the highest thread block so far."""
        self.written = max(self.written, block + 1)

    def take(self, size: int) -> None:
        """Add written bytes; CutraceError if the trace exceeds the limit."""
        self.used += size
        if self.limit and self.used > self.limit:
            if not self.spares:
                raise CutraceError(self._message())
            if self.full_at is None:
                self.full_at = self.number

    def _message(self) -> str:
        where = f" in {self.where}" if self.where else ""
        if self.written:
            where += f", when block {self.written - 1} of {self.blocks} was recorded"
        return (
            f"{self.label}: no trace is written, for it would be larger than the {self.limit} bytes"
            f" that were allowed: it had {self.used}{where}; raise --max-trace-size, sample"
            f" blocks (--sample-blocks {self._percent()}% would fit), or record less"
            " (--no-control, --only-kernels, --only-lines, --only-spaces, ...)"
        )

    def _percent(self) -> str:
        """Return the share of this launch's blocks that would fit, with a margin of a fifth."""
        written = self.used - self.before
        budget = max(self.limit - self.before, 0)
        fits = 80 * budget * max(self.written, 1) / max(written * self.blocks, 1)
        return f"{max(min(fits, 50.0), 0.01):.2g}"


Stamp: TypeAlias = tuple[int, ...]
"""A file's size, modification time and inode: a trace may be re-recorded while it is read.

The device is left out: machines that share a file system number it differently. For a file that
each machine downloads, the size alone.
"""
MISSING: Stamp = (-1,)


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of a file; MISSING if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return MISSING
    return status.st_size, status.st_mtime_ns, status.st_ino


def check_same(path: Path, stamp: Stamp) -> None:
    """Raise CutraceError if a file does not match a stamp."""
    if (status := stamp_of(path))[: len(stamp)] != stamp:
        fate = "removed" if status == MISSING else "replaced"
        raise CutraceError(
            f"{path}: {fate} meanwhile: it was another file when the trace was opened;"
            " open the trace again"
        )
