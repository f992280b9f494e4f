"""The content-addressed cache of results and compiled code in `~/.cache/cutrace`.

(Or below `$XDG_CACHE_HOME`.) The key of an entry is a hash of all its inputs; a checksum detects a
damaged entry, which counts as a miss. Of the processes that need the same absent entry, one makes
it and the others wait. If the folder cannot be written or is full, results are
computed again each time. Such errors are reported once per process: they cost time only.
"""

import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from errno import EEXIST
from functools import cache
from opcode import opmap
from pathlib import Path
from types import CodeType
from typing import Generic, TypeVar
from zlib import crc32

from .claim import LOCK, Claim, sole_maker, sweep
from .dataclass import dataclass
from .errors import CutraceError

Value = TypeVar("Value")

_HASH = hashlib.sha256
_SIZE = _HASH().digest_size
_KEY = re.compile(rf"[0-9a-f]{{32}}(?:{re.escape(LOCK)})?")
"""The name of an entry, or of the lock that a killed process left."""
_SELDOM, _SMALL = 16, 256
"""Eviction frequency for small entries.

An entry below a 256th of the byte limit triggers eviction with probability 1 in 16: scanning tens
of thousands of files takes longer than computing most entries.
"""


def key_of(*parts: str | bytes) -> str:
    """Return the cache key of a result with these inputs."""
    digest = _HASH()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]


def source_digest(paths: Iterable[Path]) -> bytes:
    """Return a hash of the code of Python files, without comments, positions and docstrings.

    The digest of these bytes is cached, since compiling a stage takes a fifth of a second. Where
    nothing can be cached, it is a hash of the bytes.
    """
    texts = [path.read_bytes() for path in paths]
    key = key_of(sys.version, *texts)
    if (data := load(_SOURCES, key)) is not None:
        return data
    if not _is_writable(_SOURCES):
        return key.encode()
    digest = key_of(*map(_dump_code, texts)).encode()
    keep(_SOURCES, key, digest, _SOURCES_BYTES)
    return digest


@cache
def package_digest(*folders: str) -> bytes:
    """Return the digest of all modules in these folders of cutrace."""
    root = Path(__file__).parents[1]
    return source_digest(sorted(p for name in folders for p in (root / name).rglob("*.py")))


_SOURCES, _SOURCES_BYTES = "sources", 1 << 20


def _dump_code(text: bytes) -> str:
    """Return a module's code without positions, docstrings and assertions."""
    return repr(_dump(compile(text, "", "exec", dont_inherit=True, optimize=2)))


def _dump(constant: object) -> object:
    if isinstance(constant, frozenset):  # in the order of hashes, which differs by process
        return sorted(map(repr, constant))
    if not isinstance(constant, CodeType):
        return constant
    parts = [n for n in dir(constant) if n.startswith("co_") and n not in _POSITIONS]
    code = constant.co_code
    if _NOP in code[::2]:  # in place of a string that is a statement
        code = bytes(b for at, b in enumerate(code) if code[at & ~1] != _NOP)
    return [code, *(getattr(constant, name) for name in parts), *map(_dump, constant.co_consts)]


_NOP = opmap["NOP"]
_POSITIONS = {
    *("co_code", "co_consts", "co_filename", "co_firstlineno", "co_linetable", "co_lnotab"),
    *("co_lines", "co_positions", "co_branches", "co_stacksize"),
}
"""Attributes of code that say where it was written, or that are no values, and those apart."""


def _is_writable(kind: str) -> bool:
    try:
        return os.access(made_folder(kind), os.W_OK)
    except RuntimeError:  # no home directory
        return False


def load(kind: str, key: str) -> bytes | None:
    """Return the data of a key; None if it is absent or damaged."""
    try:
        path = folder_of(kind) / key
        data = path.read_bytes()
    except (OSError, RuntimeError):
        return None
    payload = data[_SIZE:]
    if _HASH(payload).digest() != data[:_SIZE]:
        _report_once(f"{path}: broken; its content is made again")
        return None
    # LRU: eviction goes by modification time, and a hit renews it.
    with suppress(OSError):
        os.utime(path)
    return payload


def keep(kind: str, key: str, data: bytes, most: int = 0) -> None:
    """Store data under a key, atomically.

    With `most`, the least recently stored or loaded entries of this kind are evicted until about
    that many bytes remain; data that alone exceeds it is not stored.
    """
    if most and len(data) > most:
        return
    try:
        folder = folder_of(kind)
        _write(folder, key, data)
        # The key is a hash, so its crc32 is a deterministic 1-in-16 choice without any state.
        if most and (len(data) * _SMALL > most or crc32(key.encode()) % _SELDOM == 0):
            _make_room(folder, most)
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        where = getattr(error, "filename", None) or "the cache"
        why = getattr(error, "strerror", None) or error
        _report_once(
            f"{where}: nothing can be kept between runs: {why}; it is made anew each time "
            "(XDG_CACHE_HOME names another folder)"
        )


@dataclass(frozen=True, slots=True)
class Cache(Generic[Value]):
    """The entries of one kind: `pack` makes bytes of a value, `unpack` the value again.

    What `pack` gives None for is not kept. `most` is the limit of bytes, 0 for none.
    """

    kind: str
    most: int
    pack: Callable[[Value], bytes | None]
    unpack: Callable[[bytes], Value]

    def get(self, key: str | None, make: Callable[[], Value]) -> Value:
        """Return the value of a key, or make and keep it; without a key, make it."""
        if key is None:
            return make()
        if (data := load(self.kind, key)) is not None:
            return self.unpack(data)
        with _sole_maker(self.kind, key):
            if (data := load(self.kind, key)) is not None:  # another process made it meanwhile
                return self.unpack(data)
            value = make()
            if (data := self.pack(value)) is not None:
                keep(self.kind, key, data, self.most)
        return value


def _sole_maker(kind: str, key: str) -> AbstractContextManager[None]:
    """Return a context in which no other process makes the entry of a key."""
    try:
        return sole_maker(folder_of(kind) / key)
    except RuntimeError:  # no home directory
        return nullcontext()


def _write(folder: Path, key: str, data: bytes) -> None:
    """Write a file atomically; an error names the folder."""
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
    """Return a temporary path in a folder that is removed with this process."""
    place = folder.parent, os.getpid()
    claim = _DRAFTS.get(place)
    if claim is None or not claim.folder.is_dir():
        sweep(folder.parent)
        claim = _DRAFTS[place] = Claim(folder.parent)
    return claim.folder / os.urandom(16).hex()


_REPORTED: set[str] = set()


def _report_once(what: str) -> None:
    """Report a cache error on stderr, once per process."""
    if not _REPORTED:
        print(f"cutrace: {what}", file=sys.stderr)
    _REPORTED.add(what)


def _make_room(folder: Path, most: int) -> None:
    """Evict the least recently written or touched entries; files with other names are kept."""
    candidates = []
    for entry in os.scandir(folder):
        with suppress(OSError):  # another process may have evicted it
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
    """Return the folder of this kind and key; on a miss `make` fills an empty one.

    The folder appears atomically, even if several processes make it at once. Raises CutraceError if
    it cannot be written.
    """
    folder = folder_of(kind) / key
    if not folder.is_dir():
        with sole_maker(folder):
            if not folder.is_dir():
                _make_folder(folder, make)
    return folder


def _make_folder(folder: Path, make: Callable[[Path], None]) -> None:
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
        # Another process may have won the race: its folder has the same key, so it is as good.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def made_folder(kind: str) -> Path:
    """Return the folder of one kind; create it if possible."""
    folder = folder_of(kind)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def folder_of(kind: str) -> Path:
    """Return the folder of one kind."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cutrace" / kind
