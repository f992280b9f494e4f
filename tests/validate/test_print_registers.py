"""Registers of kernels that call the driver's functions: as an H100 had them."""

import io
import json
from pathlib import Path

import cutrace
from cutrace.tracer.session.source.record import record

FOLDER = Path(__file__).parent / "counters"


def test_kernels_that_print_assert_or_allocate_have_the_registers_of_the_driver(
    tmp_path: Path,
) -> None:
    told = json.loads((FOLDER / "h100_print.json").read_text())
    place = told["metrics"].index("launch__registers_per_thread")
    on_chip = {each["kernel"]: each["counters"][place] for each in told["launches"]}
    record(FOLDER / "print.cu", out=tmp_path / "t.cutrace", output=io.StringIO())
    found = {
        launch.launch.kernel: next(
            each.registers for each in launch.launch.resources if each.arch == "sm_90"
        )
        for launch in cutrace.read_trace(tmp_path / "t.cutrace").launches
    }
    assert found == on_chip
    assert sorted(on_chip.values()) == [32] * 6 + [46, 70]
