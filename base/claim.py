"""Folders that live as long as a process, and the removal of those of killed processes.

A claim is such a folder. Its mark is a file in it that says in words whose it is, and is locked by
its process; the operating system releases the lock when the process ends, however it ends. The next
process that looks removes a folder if all of this holds: its name has the 128 random bits of a
claim's, it is this user's, the mark in it names this folder, user and machine, and its lock is
free. Whatever else has such a name is somebody else's, and is left alone.

The mark lies beside the folder before the folder is made and while it is removed: at no moment is
there a folder without it. Where files cannot be locked there are no marks, and nothing is removed
but by the process that made it.
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
    """Knows the process that made it."""

    __slots__ = ("process",)

    def __init__(self) -> None:
        self.process = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is that process, and no child that was forked from it."""
        return self.process == os.getpid()

    def require(self, what: str) -> None:
        """Raise CutraceError in a forked child."""
        if not self.is_here:
            raise CutraceError(
                f"{what} belongs to process {self.process}, of which this one is a forked child: "
                "only that process can use it; open a session of its own here"
            )


def in_child(call: Callable[[], object]) -> None:
    """Have something done first of all in each forked child."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(after_in_child=call)


class Lock:
    """A lock between threads. A forked child finds it free: its holder is not there."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _LOCKS.add(self)

    def renew(self) -> None:
        """Forget who holds it."""
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
except ImportError:  # not a system that has it
    fcntl = None  # type: ignore[assignment]

LOCKS = fcntl is not None
"""Whether files can be locked on this system."""

MARK = ".cutrace-claim"
BESIDE = ".claim"
"""The end of a mark's name while it lies beside its folder, whose name comes before."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors after which there is no folder: it would stay if its process is killed."""

OFTEN = 60.0
"""Seconds after which a process looks again for what was left."""

_NAME = re.compile(rf"(\.?cutrace-[0-9a-f]{{32}}(?:\.partial)?)(?:{re.escape(BESIDE)})?")
_TEXT = "cutrace removes the folder {} when process {} of user {} on {} has ended.\n"
_WORDS = re.compile(
    _TEXT.format(r"(?P<folder>\S+)", r"\d+", r"(?P<user>\d+)", r"(?P<host>.*)")
    + r'(?:Its target is (?P<target>".*")\.\n)?'
)
_MARK_BYTES = 1 << 12

_OPEN: "set[finalize[[Path, int | None, Owner], Claim]]" = set()
"""What removes the folders of this process."""


class Claim:
    """A new folder in `parent`; it goes with `release`, with this object, or with the process.

    With a `target`, a name beside it, it is a hidden one in which `new` is made to get that name;
    meanwhile `old` may be what had it. `name` is that of another process's claim on another
    machine. OSError where it cannot be made.
    """

    def __init__(self, parent: Path, target: str = "", name: str = "") -> None:
        number = os.urandom(16).hex()
        parent = Path(os.path.abspath(parent))  # the current folder may change
        name = name or (f".cutrace-{number}.partial" if target else f"cutrace-{number}")
        self.folder = parent / name
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
        """Remove the folder; nothing in a forked child, which has not made it."""
        self._release()
        _OPEN.discard(self._release)


def claim_scratch() -> Claim:
    """Make a folder for a moment, and remove those of processes that were killed."""
    sweep_scratch()
    return Claim(Path(tempfile.gettempdir()))


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for as long as the body runs."""
    claim = claim_scratch()
    try:
        yield claim.folder
    finally:
        claim.release()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write the file `path`, which it becomes, whole, if the body ends well.

    It replaces a file, and goes through a link to one; what is there and is no file, such as a
    terminal or a pipe, is written to as it is.
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


def release_all() -> None:
    """Remove the folders that this process made: a signal ends it."""
    for release in list(_OPEN):
        release()


def sweep_scratch() -> None:
    """Remove folders for a moment whose process was killed; a process looks once a minute."""
    _sweep_scratch(tempfile.gettempdir(), int(time.monotonic() / OFTEN))


@lru_cache(maxsize=1)
def _sweep_scratch(place: str, when: int) -> None:
    """Look through a folder, once for each time: of many who live each one's lock is tried."""
    sweep(Path(place))


def sweep(place: Path) -> None:
    """Remove the claims in a folder whose process was killed.

    One that was killed while its `new` took the place of another leaves that other, or its own.
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
    """Remove a claim if it is one, and its lock is free."""
    for mark in (folder / MARK, _beside(folder)):
        if (mark_entry := _open_mark(mark, folder)) is None:
            continue
        lock, words = mark_entry
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(lock), os.lstat(mark)):
                continue  # another process was first
            if words["target"]:
                _give_back(folder, folder.with_name(json.loads(words["target"])))
            if mark.parent == folder:
                _empty(folder)
            _remove_empty(folder, lock)
        finally:
            os.close(lock)


def _open_mark(mark: Path, folder: Path) -> "tuple[int, re.Match[str]] | None":
    """Return a folder's mark, opened, and what it says; None if there is none that is right."""
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
    """Whether a mark speaks of this folder, user and machine."""
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
    """Return where a folder's mark is, while it is not in it."""
    return folder.with_name(folder.name + BESIDE)


def _make_mark(folder: Path, target: str) -> int | None:
    """Make a folder's mark beside it, locked from its first moment on; None where none can be."""
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
    """Write a mark that has its name when it is whole; OSError on file systems that cannot.

    With the descriptors of folders, Python links what the link in /proc leads to.
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
    """Write a mark that has its name from the beginning."""
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
    """Finish the exchange of an old thing for a new one, where it was broken off in the middle."""
    old, new = folder / "old", folder / "new"
    if old.is_dir() and not os.path.lexists(target):
        os.rename(new if new.is_dir() else old, target)


def _release(folder: Path, lock: int | None, owner: Owner) -> None:
    """Remove a folder, which nobody has put another in the place of, where it was made."""
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
    """Remove all but the mark: who is killed meanwhile leaves a claim."""
    with os.scandir(folder) as entries:
        members = [entry for entry in entries if entry.name != MARK]
    for entry in members:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(entry.path)


def _remove_empty(folder: Path, lock: int) -> None:
    """Remove a folder with nothing in it but its mark, if that, and then the mark."""
    mark, sibling = folder / MARK, _beside(folder)
    is_inside = os.path.lexists(mark)
    if is_inside:
        os.rename(mark, sibling)
    try:
        folder.rmdir()
    except FileNotFoundError:
        pass
    except OSError:  # there is something that cannot be removed
        if is_inside:
            os.rename(sibling, mark)
        raise
    if os.path.samestat(os.fstat(lock), os.lstat(sibling)):
        sibling.unlink()
