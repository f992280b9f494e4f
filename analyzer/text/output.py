"""A report into a file, with an error that names the file."""

from pathlib import Path

from ...claim import whole_file
from ...errors import CutraceError


def write_report(path: Path, text: str) -> None:
    """Write `text`, whole or not at all; CutraceError if the disk is full, and so on."""
    try:
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CutraceError(f"{path}: cannot write it: {error.strerror or error}") from error
