"""Repeated launches: a digest by which advice on one launch is used for identical ones.

A program that calls its kernels in a loop launches them with the same arguments. If they execute
the same instructions and accesses, the tables of their traces are equal byte for byte.
"""

from hashlib import blake2b
from pathlib import Path

from ...traces.reader import LaunchTrace
from ...traces.schema import TABLES

CHUNK = 1 << 20


def digest(launch: LaunchTrace) -> bytes:
    """A hash of the launch and its tables: equal for launches with equal traces."""
    found = blake2b(repr((launch.launch, launch.supposed)).encode())
    for table in sorted(TABLES):
        _add(found, launch.folder / f"{table}.arrow")
    launch.check_unchanged()
    return found.digest()


def _add(found: blake2b, path: Path) -> None:
    """Add a file, in pieces; one that cannot be read is for whoever needs it to complain about."""
    found.update(path.name.encode())
    try:
        with path.open("rb") as file:
            while piece := file.read(CHUNK):
                found.update(piece)
    except OSError as error:
        found.update(repr(error).encode())
