"""printf against an H200 (CUDA 13): 640 random formats, by scripts/capture/printf_formats.py."""

import runpy
from pathlib import Path

from program_run import cutrace

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "scripts" / "capture" / "printf_formats.py"


def test_every_format_is_printed_as_on_a_chip(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(runpy.run_path(str(SCRIPT))["program"]())
    done = cutrace(tmp_path, "record", "app.cu", "-d", "h200", "--only-launches", "99", "--")
    lines = done.out.splitlines()
    expected = (HERE / "printf.txt").read_text().splitlines()
    assert len(expected) > 1280, "each format's text, and how many arguments it had"
    assert lines[: len(expected)] == expected, done.err
