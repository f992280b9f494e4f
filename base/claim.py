"""Temporary folders that live as long as a process; removal of those of killed processes.

A claim is a temporary folder with a mark, a file that names the owner in words and that the owning
process keeps locked. The operating system releases the lock when the process ends, however it ends.
A later process removes a folder if all of this holds: its name has the 128 random bits of a claim's
name, it belongs to this user, its mark names this folder, user and machine, and the lock is free.
Any other folder with a matching name belongs to someone else and is left alone.

The mark is beside the folder before the folder is created and while it is removed, so that a folder
never exists without a mark. On a system without file locks there are no marks, and only the process
that made a folder removes it.

`sole_maker` locks a file, not a folder: a file that several processes would make at once.
"""

import errno
import json
import os
import re
import shutil
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from weakref import finalize

from .errors import CutraceError


class Owner:
    """The process that made this object."""

    __slots__ = ("process",)

    def __init__(self) -> None:
        self.process = os.getpid()

    @property
    def is_here(self) -> bool:
        """True in that process, False in a child forked from it."""
        return self.process == os.getpid()

    def require(self, what: str) -> None:
        """Raise CutraceError in a forked child."""
        if not self.is_here:
            raise CutraceError(
                f"{what} belongs to process {self.process}, of which this one is a forked child: "
                "only that process can use it; open a session of its own here"
            )


def in_child(call: Callable[[], object]) -> None:
    """Run a function in each forked child, before anything else."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=call)


class Lock:
    """A lock between threads. It is free in a forked child, because its holder does not exist
    there.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Forget the holder."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._lock.release()


_LOCKS: "weakref.WeakSet[Lock]" = weakref.WeakSet()


def _renew_locks() -> None:
    for lock in _LOCKS:
        lock.renew()


in_child(_renew_locks)


try:
    import fcntl
except ImportError:  # a system without it
    fcntl = None  # type: ignore[assignment]

LOCKS = fcntl is not None
"""True if this system can lock files."""

MARK = ".cutrace-claim"
BESIDE = ".claim"
"""Suffix of a mark beside its folder; the folder's name precedes it."""

LOCK = ".lock"
"""Suffix of the file that is locked while a file is made."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors after which no folder is made: without a mark it would outlive a killed process."""

OFTEN = 60.0
"""Seconds between two sweeps of one process."""

_NAME = re.compile(rf"(\.?cutrace-[0-9a-f]{{32}}(?:\.partial)?)(?:{re.escape(BESIDE)})?")
_TEXT = "cutrace removes the folder {} when process {} of user {} on {} has ended.\n"
_WORDS = re.compile(
    _TEXT.format(r"(?P<folder>\S+)", r"\d+", r"(?P<user>\d+)", r"(?P<host>.*)")
    + r'(?:Its target is (?P<target>".*")\.\n)?'
)
_MARK_BYTES = 1 << 12

_OPEN: "set[finalize[[Path, int | None, Owner], Claim]]" = set()
"""The finalizers of this process's folders."""


class Claim:
    """A new folder in `parent`; removed by `release`, with this object, or with the process.

    With a `target`, a sibling name, the folder is hidden and `new` in it is made to be renamed to
    the target; meanwhile `old` may hold the previous target. `name` is the name of another
    process's claim on another machine. Raises OSError if it cannot be made.
    """

    def __init__(self, parent: Path, target: str = "", name: str = "") -> None:
        number = os.urandom(16).hex()
        parent = Path(os.path.abspath(parent))  # the working directory may change
        name = name or (f".cutrace-{number}.partial" if target else f"cutrace-{number}")
        self.folder = parent / name
        # Mark first, then the folder, then the mark moves in: a process killed between any two of
        # these steps leaves a mark that a later sweep finds.
        lock = _make_mark(self.folder, target)
        sibling = _beside(self.folder)
        is_new = False
        try:
            self.folder.mkdir(0o700)
            is_new = True
            if lock is not None:
                os.rename(sibling, self.folder / MARK)
        except BaseException:
            with suppress(OSError):
                if is_new:
                    self.folder.rmdir()
            if lock is not None:
                with suppress(OSError):
                    sibling.unlink()
                os.close(lock)
            raise
        self._release = finalize(self, _release, self.folder, lock, Owner())
        _OPEN.add(self._release)

    def release(self) -> None:
        """Remove the folder; does nothing in a forked child, which does not own it."""
        self._release()
        _OPEN.discard(self._release)


def claim_scratch() -> Claim:
    """Make a temporary folder, and remove those of killed processes."""
    sweep_scratch()
    return Claim(Path(tempfile.gettempdir()))


def is_scratch(folder: Path) -> bool:
    """Whether a folder has the name of a temporary one."""
    return _NAME.fullmatch(folder.name) is not None


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a temporary folder that exists while the body runs."""
    claim = claim_scratch()
    try:
        yield claim.folder
    finally:
        claim.release()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces the file `path` atomically if the body succeeds.

    A link is followed to its file. An existing path that is no regular file, a terminal or a pipe
    for example, is opened and written directly.
    """
    path = path.resolve() if path.is_symlink() else path
    if os.path.lexists(path) and not path.is_file():
        yield path
        return
    claim = Claim(path.parent, path.name)
    try:
        new = claim.folder / "new"
        yield new
        with suppress(OSError):
            shutil.copymode(path, new)
        os.replace(new, path)
    finally:
        claim.release()


PATIENCE = 60.0
"""Seconds that a process waits for another one to make a file; that one may be stopped."""


@contextmanager
def sole_maker(path: Path) -> Iterator[None]:
    """Run the body while no other process or thread runs one for this path, to which it writes.

    Wait at most `PATIENCE` seconds; then, or without file locks, run it at once. The lock saves
    time only: the body has to write atomically. The lock's file is `path` with a suffix. Its owner
    removes it; the system releases the lock of a killed one.
    """
    lock_file = path.with_name(path.name + LOCK)
    lock, end = None, time.monotonic() + PATIENCE
    try:
        with suppress(OSError):  # the folder is read-only, or its file system has no locks
            lock_file.parent.mkdir(parents=True, exist_ok=True)
            while LOCKS and (lock := _try_lock(lock_file)) is None and time.monotonic() < end:
                time.sleep(0.01)
        yield
    finally:
        if lock is not None:
            with suppress(OSError):
                lock_file.unlink()
            # Closing is not enough: a child forked meanwhile has the same open file.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)


def _try_lock(path: Path) -> int | None:
    """Return a descriptor that locks a file, which is made if absent; None if another has it.

    Raises OSError if it cannot be locked.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    is_locked = False
    try:
        is_locked = _lock(lock, path)
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if not is_locked:
            os.close(lock)
    return lock if is_locked else None


def _lock(lock: int, path: Path) -> bool:
    """Lock an open file; return False if `path`, by which it was opened, is no longer that file.

    Raises OSError if another process has locked it, or if it is gone.
    """
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Between open and flock its owner may have removed it, and another one made a file of the same
    # name: the lock counts only if the path still is this inode.
    return os.path.samestat(os.fstat(lock), os.lstat(path))


def release_all() -> None:
    """Remove this process's folders; called when a signal ends it."""
    for release in list(_OPEN):
        release()


def sweep_scratch() -> None:
    """Remove temporary folders of killed processes; at most once a minute per process."""
    _sweep_scratch(tempfile.gettempdir(), int(time.monotonic() / OFTEN))


@lru_cache(maxsize=1)
def _sweep_scratch(place: str, when: int) -> None:
    """Sweep a folder, once per value of `when`: each sweep tries the lock of every live claim."""
    sweep(Path(place))


def sweep(place: Path) -> None:
    """Remove the claims of killed processes from a folder.

    If a process was killed while it replaced its target by `new`, either the old or the new one
    stays.
    """
    if fcntl is None:
        return
    folders: set[str] = set()
    with suppress(OSError), os.scandir(place) as entries:
        folders.update(name[1] for entry in entries if (name := _NAME.fullmatch(entry.name)))
    for each in folders:
        with suppress(OSError):
            _sweep_one(place / each)


def _sweep_one(folder: Path) -> None:
    """Remove a folder if it is a claim and its lock is free."""
    # The mark is beside the folder while the folder is made or removed, in it otherwise.
    for mark in (folder / MARK, _beside(folder)):
        if (mark_entry := _open_mark(mark, folder)) is None:
            continue
        lock, words = mark_entry
        try:
            if not _lock(lock, mark):
                continue  # another process removed it first
            if words["target"]:
                _give_back(folder, folder.with_name(json.loads(words["target"])))
            if mark.parent == folder:
                _empty(folder)
            _remove_empty(folder, lock)
        finally:
            os.close(lock)


def _open_mark(mark: Path, folder: Path) -> "tuple[int, re.Match[str]] | None":
    """Open and parse a folder's mark; return None if there is no valid one."""
    try:
        if mark.parent == folder and not _is_own_folder(folder):
            return None
        lock = os.open(mark, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    words = _read_mark(lock)
    if words is None or not _is_right(words, folder):
        os.close(lock)
        return None
    return lock, words


def _is_own_folder(folder: Path) -> bool:
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _read_mark(lock: int) -> "re.Match[str] | None":
    status = os.fstat(lock)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_nlink != 1:
        return None
    return _WORDS.fullmatch(os.pread(lock, _MARK_BYTES, 0).decode("ascii", "replace"))


def _is_right(words: "re.Match[str]", folder: Path) -> bool:
    """Return whether a mark names this folder, user and machine."""
    named = words["folder"] == folder.name and words["host"] == _host()
    if not named or int(words["user"]) != os.getuid():
        return False
    try:
        target = json.loads(words["target"] or '""')
    except ValueError:
        return False
    return bool(target == os.path.basename(target))


def _host() -> str:
    return os.uname().nodename.encode("ascii", "replace").decode()


def _beside(folder: Path) -> Path:
    """Return the path of a folder's mark beside it."""
    return folder.with_name(folder.name + BESIDE)


def _make_mark(folder: Path, target: str) -> int | None:
    """Make a locked mark beside a folder; return None if the system has no locks."""
    if fcntl is None:
        return None
    text = _TEXT.format(folder.name, os.getpid(), os.getuid(), _host())
    if target:
        text += f"Its target is {json.dumps(target)}.\n"
    for write in (_write_nameless, _write_named):
        try:
            return write(_beside(folder), text.encode("ascii"))
        except OSError as error:
            if error.errno in FULL:
                raise OSError(error.errno, os.strerror(error.errno), str(folder)) from None
    return None


def _write_nameless(mark: Path, text: bytes) -> int:
    """Write the mark without a name, then link it: it is never visible incomplete or unlocked.

    Raises OSError on file systems without O_TMPFILE. With directory descriptors, os.link follows
    the symbolic link in /proc.
    """
    nameless = getattr(os, "O_TMPFILE", 0)
    if not nameless:
        raise OSError
    lock = os.open(mark.parent, os.O_RDWR | os.O_CLOEXEC | nameless, 0o600)
    try:
        _write_locked(lock, text)
        root = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.link(f"/proc/self/fd/{lock}", mark, src_dir_fd=root, dst_dir_fd=root)
        finally:
            os.close(root)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _write_named(mark: Path, text: bytes) -> int:
    """Write a mark under its name from the start."""
    lock = os.open(mark, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _write_locked(lock, text)
    except BaseException:
        os.close(lock)
        mark.unlink()
        raise
    return lock


def _write_locked(lock: int, text: bytes) -> None:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(lock, text)


def _give_back(folder: Path, target: Path) -> None:
    """Complete or undo the replacement of a target that was interrupted."""
    old, new = folder / "old", folder / "new"
    if old.is_dir() and not os.path.lexists(target):
        os.rename(new if new.is_dir() else old, target)


def _release(folder: Path, lock: int | None, owner: Owner) -> None:
    """Remove a folder in the process that made it, unless it has been replaced."""
    if not owner.is_here:
        return
    with suppress(OSError):
        if lock is None:
            shutil.rmtree(folder, ignore_errors=True)
        elif os.path.samestat(os.fstat(lock), os.lstat(folder / MARK)):
            _empty(folder)
            _remove_empty(folder, lock)
    if lock is not None:
        os.close(lock)


def _empty(folder: Path) -> None:
    """Remove all but the mark, so that a process killed meanwhile leaves a valid claim."""
    with os.scandir(folder) as entries:
        members = [entry for entry in entries if entry.name != MARK]
    for entry in members:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(entry.path)


def _remove_empty(folder: Path, lock: int) -> None:
    """Remove a folder that holds at most its mark, then the mark."""
    mark, sibling = folder / MARK, _beside(folder)
    is_inside = os.path.lexists(mark)
    if is_inside:
        os.rename(mark, sibling)
    try:
        folder.rmdir()
    except FileNotFoundError:
        pass
    except OSError:  # something in it cannot be removed
        if is_inside:
            os.rename(sibling, mark)
        raise
    if os.path.samestat(os.fstat(lock), os.lstat(sibling)):
        sibling.unlink()
