"""Paths as users give them: sources named or written out, and files that are not there."""

import re
from pathlib import Path

from ...errors import CutraceError, nearest
from ...traces.address import as_given
from ..front.source import decode_source

_CODE = re.compile(r"[{;]")
"""What every kernel has in CUDA C++ and in PTX, and no sensible file name."""


def missing_file(path: Path) -> CutraceError:
    """An error that names the three files of the folder whose names are nearest."""
    folder = path.parent
    if not folder.is_dir():
        return CutraceError(f"{as_given(path)}: there is no folder {as_given(folder)}")
    names = sorted(entry.name for entry in folder.iterdir())
    return CutraceError(f"{path}: there is no such file{nearest(path.name, names)}")


def read_text(path: Path) -> str:
    """Return a file's text; CutraceError says what is wrong with it."""
    if not path.exists():
        raise missing_file(path)
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise CutraceError(f"{path}: {problem.strerror}") from None
    if b"\0" in raw:
        raise CutraceError(f"{path} is not text: expected a .cu or .ptx source")
    return decode_source(raw)


def is_path(given: str | Path) -> bool:
    """Whether it names a file: a Path, or a string of one line that is no code.

    >>> is_path("reverse.cu"), is_path("__global__ void k(float *o) { *o = 1; }")
    (True, False)
    """
    if not isinstance(given, Path | str):
        kind = type(given).__name__
        raise CutraceError(f"expected a path or the text of a source, got {kind} {given!r}")
    if isinstance(given, Path):
        return True
    return "\n" not in given and not _CODE.search(given)
