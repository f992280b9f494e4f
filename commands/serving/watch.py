"""Watching files for changes, by modification time and size."""

from collections.abc import Iterable
from pathlib import Path

Stamp = tuple[tuple[str, int, int], ...]


def stamp(paths: Iterable[Path]) -> Stamp:
    """What tells a file from the same file later; one that is not there counts, too."""
    return tuple((str(path), *_of(path)) for path in sorted({*paths}))


def _of(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_mtime_ns, found.st_size
