"""A trace as one file, `NAME.cutrace.zip`: a zip archive whose members are stored, not deflated.

Tables are compressed already, so a member has the bytes of the table: it is read in place and
nothing is unpacked. `PackedPath` is a path into such an archive and behaves like `Path` in a
folder. Links between launches are stored in Info-ZIP's convention; any program that reads zip
archives unpacks them.
"""

import io
import os
import stat
import zipfile
from collections.abc import Generator
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from ..base.dataclass import dataclass
from ..base.errors import CutraceError

SUFFIX = ".cutrace.zip"
LINK_BYTES = 1 << 10
HEADER = 30
"""Bytes of a member's local header, before its name."""
DATE = (1980, 1, 1, 0, 0, 0)
"""Date of every member: equal traces are equal bytes."""

if TYPE_CHECKING:
    _Native = Path
else:
    _Native = type(Path())


def is_archive(path: Path) -> bool:
    """Return whether a path names a trace in one file."""
    return path.name.endswith(SUFFIX)


@dataclass(frozen=True, slots=True)
class _Member:
    """Location of a member's bytes in the archive; `link` is the target of a symbolic link."""

    place: int
    size: int
    link: str = ""


class PackedPath(_Native):
    """A path in an archive, or the archive itself: the part of `Path` that trace readers use."""

    @property
    def _archive(self) -> Path:
        root = next((p for p in (self, *self.parents) if is_archive(p)), self)
        return Path(os.fspath(root))

    @property
    def _inside(self) -> str:
        """Return the path in the archive with all links resolved."""
        parts = Path(os.fspath(self)).relative_to(self._archive).parts
        if parts and (link := self._members.get(parts[0])) and link.link:
            parts = (link.link, *parts[1:])
        name = "/".join(parts)
        member = self._members.get(name)
        return os.path.normpath(f"{parts[0]}/{member.link}") if member and member.link else name

    @property
    def _members(self) -> dict[str, _Member]:
        archive = self._archive
        status = os.stat(archive)
        return _read_members(str(archive), status.st_ino, status.st_mtime_ns, status.st_size)

    @property
    def _children(self) -> list[str]:
        start = f"{self._inside}/" if self._inside not in ("", ".") else ""
        inside = (name.removeprefix(start) for name in self._members if name.startswith(start))
        return sorted({name.partition("/")[0] for name in inside})

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return size and kind of the member, and the time of the archive. The inode is unique per
        member of an archive, and differs between archives that had the same name in turn.
        """
        status, inside = os.stat(self._archive), self._inside
        member = self._members.get(inside)
        if member is None and inside not in ("", ".") and not self._children:
            raise FileNotFoundError(2, "no such member", str(self))
        mode = stat.S_IFDIR | 0o555 if member is None else stat.S_IFREG | 0o444
        size = 0 if member is None else member.size
        inode = status.st_ino if member is None else (status.st_ino << 64) + member.place
        plain = (mode, inode, status.st_dev, 1, 0, 0, size, *map(int, status[7:10]))
        return os.stat_result(plain, {"st_mtime_ns": status.st_mtime_ns})

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the member, or a member below it, exists."""
        try:
            self.stat()
        except OSError:
            return False
        return True

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the path is a member."""
        return self.exists() and stat.S_ISREG(self.stat().st_mode)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the path is the archive, or a folder in it."""
        return self.exists() and stat.S_ISDIR(self.stat().st_mode)

    def is_symlink(self) -> bool:
        """Return whether the member is a link to another one."""
        name = "/".join(Path(os.fspath(self)).relative_to(self._archive).parts)
        member = self._members.get(name)
        return member is not None and bool(member.link)

    def resolve(self, strict: bool = False) -> Self:
        """Return the path with all links resolved."""
        archive, inside = self._archive.resolve(strict), self._inside
        return type(self)(archive, inside) if inside else type(self)(archive)

    def iterdir(self) -> Generator[Self, None, None]:
        """Yield the members of a folder of the archive."""
        return (self / name for name in self._children)

    def rglob(self, pattern: str, **_: Any) -> Generator[Self, None, None]:
        """Yield all members below the path, whatever the pattern."""
        for path in self.iterdir():
            yield path
            if path.is_dir():
                yield from path.rglob(pattern)

    def open(self, mode: str = "r", *_: Any, **__: Any) -> IO[Any]:  # type: ignore[override]
        """Open a member for reading bytes."""
        member = self._members.get(self._inside)
        if member is None:
            raise FileNotFoundError(2, "no such member", str(self))
        if mode != "rb":
            raise PermissionError(13, "a packed trace is only read", str(self))
        return io.BufferedReader(_Window(self._archive, member))

    def read_bytes(self) -> bytes:
        """Return the bytes of a member."""
        with self.open("rb") as file:
            return cast(bytes, file.read())


class _Window(io.RawIOBase):
    """The bytes of one member as a stream."""

    def __init__(self, archive: Path, member: _Member) -> None:
        self._file = archive.open("rb", buffering=0)
        self._member, self._at = member, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Seek to a byte of the member."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._member.size}[whence]
        if start + offset < 0:
            raise OSError(22, "a place before the member's first byte")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer, up to the end of the member."""
        view = memoryview(buffer).cast("B")
        limit = max(0, min(len(view), self._member.size - self._at))
        self._file.seek(self._member.place + self._at)
        count: int = self._file.readinto(view[:limit]) or 0
        self._at += count
        return count

    def close(self) -> None:
        """Close the archive."""
        self._file.close()
        super().close()


@lru_cache(maxsize=16)
def _read_members(archive: str, _inode: int, _changed: int, length: int) -> dict[str, _Member]:
    """Read an archive's directory. CutraceError if it is no archive, or its members are
    compressed."""
    members: dict[str, _Member] = {}
    try:
        with zipfile.ZipFile(archive) as file, open(archive, "rb") as plain:
            for info in file.infolist():
                name = info.filename
                if name.endswith("/"):
                    continue
                if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                    raise CutraceError(
                        f"{archive}: {name[:60]} is deflated or encrypted, and cannot be read in "
                        "its place: unzip it and read the folder, or pack it by cutrace"
                    )
                if name in members or name.startswith("/") or ".." in name.split("/"):
                    raise CutraceError(f"{archive}: {name[:60]!r} twice, or outside of it; refused")
                members[name] = _member(archive, plain, info, length)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise CutraceError(f"{archive}: not a whole zip archive: {error}") from error
    return members


def _member(archive: str, plain: IO[bytes], info: zipfile.ZipInfo, length: int) -> _Member:
    plain.seek(info.header_offset)
    header = plain.read(HEADER)
    names = [int.from_bytes(header[at : at + 2], "little") for at in (26, 28)]
    place = info.header_offset + HEADER + sum(names)
    if len(header) < HEADER or place + info.file_size > length:
        raise CutraceError(f"{archive}: truncated: {info.filename[:60]} is not whole")
    if not stat.S_ISLNK(info.external_attr >> 16):
        return _Member(place, info.file_size)
    plain.seek(place)
    link = plain.read(min(info.file_size, LINK_BYTES)).decode("ascii", "replace")
    target = os.path.normpath(f"{os.path.dirname(info.filename)}/{link}".lstrip("/"))
    if not link or link.startswith("/") or target.startswith(".."):
        raise CutraceError(f"{archive}: {info.filename[:60]} leads out of the trace; refused")
    return _Member(place, info.file_size, link)


def pack(folder: Path, archive: Path) -> None:
    """Write the trace in `folder` as one file. Links remain links in the archive."""
    marks: dict[tuple[int, int], str] = {}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED, allowZip64=True) as file:
        for path in sorted(folder.iterdir(), key=_order):
            if path.is_dir() and not path.is_symlink():
                for table in sorted(path.iterdir()):
                    _add(file, table, f"{path.name}/{table.name}", marks)
            else:
                _add(file, path, path.name, marks)


def _order(path: Path) -> tuple[bool, int, str]:
    """Sort the manifest first, then launches in order."""
    return path.name.isdecimal(), int(path.name) if path.name.isdecimal() else 0, path.name


def _add(file: zipfile.ZipFile, path: Path, name: str, marks: dict[tuple[int, int], str]) -> None:
    info = zipfile.ZipInfo(name, DATE)
    info.create_system = 3  # Unix: attributes contain the file type
    if path.is_symlink():
        link = os.readlink(path)
    else:
        status = path.stat()
        mark = status.st_dev, status.st_ino
        first = marks.setdefault(mark, name) if status.st_ino else name
        link = "" if first == name else f"../{first}"
    if link:
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        file.writestr(info, link)
        return
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    info.file_size = path.stat().st_size
    large = info.file_size >= 1 << 31
    with path.open("rb") as source, file.open(info, "w", force_zip64=large) as to:
        while piece := source.read(1 << 20):
            to.write(piece)
