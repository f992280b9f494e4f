"""Special registers against an H200 (CUDA 13), by scripts/capture/special_registers.cu.

Of nine launches, what threads 0 and 37 and the last one of the first and the last block read. Not
kept: where a block ran (%smid, %warpid), clocks, and what the driver has for itself (%envreg).
"""

import csv
from pathlib import Path

from program_run import cutrace

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "scripts" / "capture" / "special_registers.cu"


def test_every_register_reads_as_on_a_chip(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(SOURCE.read_text())
    done = cutrace(tmp_path, "record", "app.cu", "-d", "h200", "--", "out.txt", "quick")
    assert done.status == 0, done.err
    found, launch = {}, ""
    for line in (tmp_path / "out.txt").read_text().splitlines():
        first, *values = line.split()
        if first == "launch":
            launch = values[0]
        found[launch, first] = " ".join(values)
    with (HERE / "special_registers.csv").open() as file:
        expected = {(r["launch"], r["register"]): r["values"] for r in csv.DictReader(file)}
    assert len(expected) > 500
    differing = {key: (value, found[key]) for key, value in expected.items() if found[key] != value}
    assert differing == {}
