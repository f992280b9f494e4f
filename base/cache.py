"""The cache of results and compiled code, by content: in `~/.cache/cutrace`.

(Or below `$XDG_CACHE_HOME`.) A file is found by a hash of all that it was made of, and believed
only if it is whole; where nothing can be written it is made anew each time. A folder that cannot be
written or is full, and a file that is broken, are told once a process: nothing is lost but time.
"""

import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import EEXIST
from pathlib import Path
from zlib import crc32

from .claim import Claim, sweep
from .errors import CutraceError

_HASH = hashlib.sha256
_SIZE = _HASH().digest_size
_KEY = re.compile(r"[0-9a-f]{32}")
_SELDOM, _SMALL = 16, 256
"""What has less than a 256th of the bytes that are kept makes room one time in 16: going through
tens of thousands of files takes longer than making most of what is in them."""


def key_of(*parts: str | bytes) -> str:
    """A name for the result made of these."""
    digest = _HASH()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def load(kind: str, key: str) -> bytes | None:
    """The data of a key; None if there is none, or it is broken."""
    try:
        path = folder_of(kind) / key
        data = path.read_bytes()
    except (OSError, RuntimeError):
        return None
    payload = data[_SIZE:]
    if _HASH(payload).digest() != data[:_SIZE]:
        _report_once(f"{path}: broken; its content is made again")
        return None
    with suppress(OSError):
        os.utime(path)
    return payload


def keep(kind: str, key: str, data: bytes, most: int = 0) -> None:
    """Keep something under a key, whole or not at all.

    With `most`, what was kept or loaded longest ago makes room, until all of this kind has about so
    many bytes at most; what alone has more is not kept.
    """
    if most and len(data) > most:
        return
    try:
        folder = folder_of(kind)
        _write(folder, key, data)
        if most and (len(data) * _SMALL > most or crc32(key.encode()) % _SELDOM == 0):
            _make_room(folder, most)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        where = getattr(error, "filename", None) or "the cache"
        why = getattr(error, "strerror", None) or error
        _report_once(
            f"{where}: nothing can be kept between runs: {why}; it is made anew each time "
            "(XDG_CACHE_HOME names another folder)"
        )


def _write(folder: Path, key: str, data: bytes) -> None:
    """Write a file, whole or not at all; an error names the folder."""
    draft, target = None, folder / key
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            raise FileExistsError(EEXIST, "a symbolic link has its name")
        draft = _draft(folder)
        with draft.open("xb") as file:
            file.write(_HASH(data).digest() + data)
        os.replace(draft, target)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        error.filename = str(folder)
        raise


_DRAFTS: dict[tuple[Path, int], Claim] = {}


def _draft(folder: Path) -> Path:
    """A path for something in the making, in a folder that goes with this process."""
    place = folder.parent, os.getpid()
    claim = _DRAFTS.get(place)
    if claim is None or not claim.folder.is_dir():
        sweep(folder.parent)
        claim = _DRAFTS[place] = Claim(folder.parent)
    return claim.folder / os.urandom(16).hex()


_REPORTED: set[str] = set()


def _report_once(what: str) -> None:
    """Report an error of the cache on stderr, the first time in a process."""
    if not _REPORTED:
        print(f"cutrace: {what}", file=sys.stderr)
    _REPORTED.add(what)


def _make_room(folder: Path, most: int) -> None:
    """Remove the files of a folder that were written or touched longest ago, if they are ours."""
    candidates = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another process may have removed it
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and _KEY.fullmatch(entry.name):
                candidates.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in candidates)
    for _, size, path in sorted(candidates) if total > most else ():
        if total <= most:
            return
        Path(path).unlink(missing_ok=True)
        total -= size


def kept_folder(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder of this kind and key; `make` fills an empty one where it is not there yet.

    It appears whole or not at all, also where several processes make it at once. CutraceError where
    it cannot be written.
    """
    folder = folder_of(kind) / key
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = _draft(folder.parent)
        draft.mkdir()
    except OSError as error:
        raise CutraceError(f"{folder.parent}: cannot build a program here: {error}") from None
    try:
        make(draft)
        os.rename(draft, folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def made_folder(kind: str) -> Path:
    """Where all of one kind are; it is made if it is not there and can be."""
    folder = folder_of(kind)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def folder_of(kind: str) -> Path:
    """Where all of one kind are."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cutrace" / kind
