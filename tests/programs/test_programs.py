"""Programs as people write them compute what NumPy computes: NAME.cu with NAME.py beside it."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from engines import assert_same_under_both
from program import Program

import cutrace

HERE = Path(__file__).parent


@pytest.mark.parametrize("source", sorted(HERE.glob("*.cu")), ids=lambda path: path.stem)
def test_a_program_computes_what_numpy_computes_under_both_engines(
    source: Path, tmp_path: Path
) -> None:
    said = runpy.run_path(str(source.with_suffix(".py")))

    def run(gpu: cutrace.Session) -> list[Any]:
        module = gpu.compile(
            source,
            said.get("ARCH", "compute_75"),
            said.get("OPTIONS", ()),
            said.get("TEMPLATES", ()),
        )
        program = Program(gpu, module)
        said["run"](program)
        return program.results

    assert_same_under_both(tmp_path, run, "auto")


def test_every_program_has_its_two_files() -> None:
    sources = {path.stem for path in HERE.glob("*.cu")}
    scripts = {path.stem for path in HERE.glob("*.py")} - {Path(__file__).stem}
    assert sources == scripts
