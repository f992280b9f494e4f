"""Watching files for changes, by modification time and size."""

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[tuple[str, int, int], ...]


def stamp(paths: Iterable[Path]) -> Stamp:
    """The modification times and sizes of files, -1 for a missing one."""
    return tuple((str(path), *_of(path)) for path in sorted({*paths}))


def _of(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_size
