"""Watching files for changes, by modification time, size and inode."""

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[tuple[str, int, int, int], ...]


def stamp(paths: Iterable[Path]) -> Stamp:
    """The modification times, sizes and inodes of files, -1 for a missing one."""
    return tuple((str(path), *_of(path)) for path in sorted({*paths}))


def _of(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except (OSError, ValueError):  # ValueError: a name with a zero in it
        return -1, -1, -1
    return found.st_mtime_ns, found.st_size, found.st_ino
