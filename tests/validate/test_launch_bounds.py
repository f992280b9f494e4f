"""Launch bounds against an H200 (CUDA 13), by scripts/capture/launch_bounds.py."""

import sys
from pathlib import Path

from program_run import cutrace

HERE = Path(__file__).parent
PROGRAM = HERE.parents[1] / "scripts" / "capture" / "launch_bounds.py"


def test_attributes_and_launches_are_as_the_driver_says(tmp_path: Path) -> None:
    head, *rows = (HERE / "launch_bounds.csv").read_text().splitlines()
    expected = [head, *rows[::3]]  # each spelling once, and a few of them twice
    (tmp_path / "kernels.csv").write_text("\n".join(expected))
    program = [sys.executable, str(PROGRAM), "kernels.csv", "out.csv"]
    options = ("-d", "h200", "--only-launches", "0")
    done = cutrace(tmp_path, "record", *options, "-o", "app.cutrace", "--", *program)
    assert done.status == 0, done.err
    assert (tmp_path / "out.csv").read_text().splitlines() == expected
