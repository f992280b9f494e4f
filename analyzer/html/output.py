"""Writing the page: a report of cutrace is replaced, any other file is not."""

from pathlib import Path

from ...claim import whole_file
from ...errors import CutraceError
from .page import MARK

HEAD = 1000
"""Characters in which a page says what it is."""


def check_output(path: Path) -> None:
    """Raise `CutraceError` if nothing can or should be written there."""
    if path.is_dir():
        raise CutraceError(f"{path}: a folder; name a file, say {path / 'report.html'}")
    if not path.parent.is_dir():
        raise CutraceError(f"{path}: cannot write it: there is no folder {path.parent}")
    if not path.exists():
        return
    if not path.is_file():
        raise CutraceError(f"{path}: exists and is no file; name another with -o")
    with path.open(encoding="utf-8", errors="replace") as file:
        if f'content="{MARK.rpartition("-")[0]}' not in file.read(HEAD):
            raise CutraceError(
                f"{path}: exists and is no report of cutrace; remove it, or name another with -o"
            )


def write_page(path: Path, text: str) -> None:
    """Write the page whole or not at all."""
    try:
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
            check_output(path)  # it may be another than was looked at before
    except OSError as error:
        raise CutraceError(f"{path}: cannot write it: {error.strerror or error}") from error
