"""File stamps: detect that a file was replaced, since a trace may be re-recorded while it is
read."""

from pathlib import Path
from typing import TypeAlias

from ..base.errors import CutraceError

Stamp: TypeAlias = tuple[int, ...]
"""A file's size, modification time and inode. The device is left out: machines that share a file
system number it differently. For a file that each machine downloads, the size alone."""
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
