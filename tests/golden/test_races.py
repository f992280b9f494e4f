from importlib.resources import files
from pathlib import Path

import pytest

import cutrace
from cutrace.commands._main import run
from cutrace.models.analyses.race import find_races
from cutrace.tracer.session.source.launch_line import find_launch_comments
from cutrace.tracer.session.source.record import record

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
SOURCES = [s for s in sorted(GALLERY.glob("*/*.cu")) if find_launch_comments(s.read_text())]
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_gallery_kernel_races(source: Path, tmp_path: Path) -> None:
    trace = cutrace.read_trace(record(source, out=tmp_path / "a.cutrace"))
    assert [find_races(launch).races for launch in trace.launches] == [()] * len(trace.launches)


BARRIER = "        __syncthreads();\n"


def without(number: int) -> str:
    """The tiled product without the first (0) or the second (1) of its two barriers."""
    source = (GALLERY / "matrix_product" / "product_tiled.cu").read_text()
    before, between, after = source.split(BARRIER)
    first, second = ("", BARRIER) if number == 0 else (BARRIER, "")
    return before + first + between + second + after


@pytest.mark.document("002.6", "without either barrier the tiled product races")
@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_barrier_in_the_tiled_product_is_a_race(
    number: int, tmp_path: Path, capsys: Captured
) -> None:
    source = tmp_path / "product.cu"
    source.write_text(without(number))
    assert run(["check", str(source), "--races"]) == 1
    assert "tileA" in capsys.readouterr().err
