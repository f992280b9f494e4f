"""A report into a file, with an error that names the file."""

from pathlib import Path

from ...errors import CutraceError


def write_report(path: Path, text: str) -> None:
    """Write `text`; CutraceError if the disk is full, the folder missing, and so on."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CutraceError(f"{path}: cannot write it: {error.strerror or error}") from error
