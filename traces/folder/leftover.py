"""Scratch folders that live as long as a process, and the removal of those of killed processes.

A scratch folder has a lock file, locked by its process; the operating system releases the lock when
the process ends, however it ends. A folder whose lock is free is removed by the next process that
finds it. Folders of running processes and of other users are not touched. On file systems without
locks there are no lock files, and nothing is removed.

While a process creates a folder and its lock, it holds a shared lock on the parent folder. An
exclusive lock on the parent therefore proves that an empty folder was left by a killed process.
"""

import os
import re
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a system that has it
    fcntl = None  # type: ignore[assignment]

LOCKS = fcntl is not None
"""Whether files can be locked on this system."""

LOCK = ".lock"
DRAFT = ".lock.new"
"""The lock file until its lock is held."""
SCRATCH = "cutrace-"
"""How the names of folders for a moment begin, in the system's own folder for such."""

OFTEN = 60.0
"""Seconds after which a process looks again for what was left."""
PATIENCE = 1.0
"""Seconds that a new folder waits for others that look for leftovers beside it."""

_SCRATCH = re.compile(rf"{SCRATCH}[a-z0-9_]{{8}}")
_PARTIAL = re.compile(r"\.(?P<target>.+)\.[0-9a-f]{8}\.partial", re.DOTALL)


class Claim:
    """A new folder in `parent`; it goes with `release`, with this object, or with the process.

    `make` makes the folder and returns it; what it raises comes through.
    """

    def __init__(self, parent: Path, make: Callable[[], Path]) -> None:
        with _shared(parent):
            self.folder = make()
            lock = _hold(self.folder / LOCK)
        self._release = weakref.finalize(self, _remove, self.folder, lock)

    def release(self) -> None:
        """Remove the folder."""
        self._release()


def claim_scratch() -> Claim:
    """Make a folder for a moment, and remove those of processes that were killed."""
    sweep_scratch()
    return Claim(Path(tempfile.gettempdir()), lambda: Path(tempfile.mkdtemp(prefix=SCRATCH)))


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for as long as the body runs."""
    claim = claim_scratch()
    try:
        yield claim.folder
    finally:
        claim.release()


def sweep_scratch() -> None:
    """Remove folders for a moment whose process was killed; a process looks once a minute."""
    _sweep_scratch(tempfile.gettempdir(), int(time.monotonic() / OFTEN))


@lru_cache(maxsize=1)
def _sweep_scratch(place: str, when: int) -> None:
    """Look through a folder, once for each time: of many who live each one's lock is tried."""
    for folder in _own_folders(Path(place)):
        if _SCRATCH.fullmatch(folder.name):
            _sweep(folder)


def sweep_partial(beside: Path) -> None:
    """Remove traces in the making in a folder whose process was killed.

    One that was killed while its trace took the place of another leaves that other, or its own.
    """
    for folder in _own_folders(beside):
        if found := _PARTIAL.fullmatch(folder.name):
            _sweep(folder, beside / found["target"])


def _own_folders(place: Path) -> Iterator[Path]:
    """Yield this user's folders in a folder, no links to some."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            with suppress(OSError):
                named = entry.name.startswith((".", SCRATCH))
                if named and entry.is_dir(follow_symlinks=False) and _is_own(entry):
                    yield Path(entry.path)


def _is_own(entry: "os.DirEntry[str]") -> bool:
    return entry.stat(follow_symlinks=False).st_uid == os.getuid()


def _sweep(folder: Path, target: Path | None = None) -> None:
    """Remove a folder if its lock is free, after restoring the former `target`."""
    lock = _lock(folder / LOCK)
    if lock is None:
        _sweep_unlocked(folder)
        return
    if target is not None:
        _give_back(folder, target)
    _remove(folder, lock)


def _sweep_unlocked(folder: Path) -> None:
    """Remove a folder whose process was killed before it had its lock: nothing else is in it."""
    parent = _open_folder(folder.parent)
    if parent is None:
        return
    with suppress(OSError):
        fcntl.flock(parent, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.listdir(folder) == [DRAFT] and (lock := _lock(folder / DRAFT)) is not None:
            os.unlink(folder / DRAFT)
            os.close(lock)
        os.rmdir(folder)
    os.close(parent)


@contextmanager
def _shared(parent: Path) -> Iterator[None]:
    """Share the lock on a folder while the body runs, if it can be had in good time."""
    lock = _open_folder(parent)
    end = time.monotonic() + PATIENCE
    while lock is not None and time.monotonic() < end:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            break
        except OSError:
            time.sleep(0.001)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _open_folder(folder: Path) -> int | None:
    """Return a folder's descriptor; None where it, or a lock, is not to be had."""
    if fcntl is None:
        return None
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _give_back(folder: Path, target: Path) -> None:
    """Finish the exchange of an old trace for a new one, where it was broken off in the middle."""
    old, new = folder / "old", folder / "new"
    with suppress(OSError):
        if old.is_dir() and not os.path.lexists(target):
            os.rename(new if new.is_dir() else old, target)


def _hold(file: Path) -> int | None:
    """Make a lock file that is locked from its first moment on; None where none can be."""
    draft = file.with_name(DRAFT)
    lock = _lock(draft, os.O_CREAT | os.O_EXCL)
    with suppress(OSError):
        if lock is None:
            draft.unlink()
        else:
            os.rename(draft, file)
    return lock


def _lock(file: Path, flags: int = 0) -> int | None:
    """Return a file's descriptor if nobody else holds its lock, None if somebody does."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(folder: Path, lock: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)
