"""Our counts by line against Nsight Compute's report of an NVIDIA H100, `report/h100.csv`.

The table is what `cutrace import` makes of the report that `ncu --set full --import-source yes`
(2025.3) collected of `report/scale.cu`, built with `nvcc -arch=sm_90 -lineinfo`: the metrics that
cutrace counts, of the first two launches.
"""

from pathlib import Path

import pytest

import cutrace
from cutrace.analyzer.comparison.comparison import Comparison
from cutrace.analyzer.comparison.measured_variant import compare_measured
from cutrace.analyzer.profilers.measured import read_measured

FOLDER = Path(__file__).parent / "report"
NEAR = {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 0.002}
"""A chip joins some sectors of stores of neighbouring warps."""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cutrace.record(
        FOLDER / "scale.cu", out=tmp_path_factory.mktemp("report") / "scale.cutrace"
    )


def beside(trace: Path, by: str) -> Comparison:
    chip = read_measured(FOLDER / "h100.csv")
    return compare_measured({"ours": cutrace.analyze(trace, "h100"), "chip": chip}, by=by)


def test_requests_and_sectors_of_a_line_are_the_chips(trace: Path) -> None:
    tables = beside(trace, "line").tables
    memory = {
        (table.launch, table.places[0], row.name): [cell.value for cell in row.cells]
        for table in tables
        for row in table.rows
        if "memory_" in row.name
    }
    assert [ours for ours, _ in memory.values()] == [chip for _, chip in memory.values()]
    sectors = "memory_l2_theoretical_sectors_global"
    # a warp is a column of 32 rows: every lane loads, and stores, a sector of its own
    assert memory[0, "scale.cu:8", sectors] == [2 * 32 * 32768] * 2
    # neighbours: 4 sectors a warp, 16 blocks of 8 warps
    assert memory[1, "scale.cu:15", sectors] == [4 * 16 * 8] * 2
    assert memory[1, "scale.cu:17", sectors] == [4 * 16 * 8] * 2
    assert len(memory) == 4 + 2 * 5


def test_what_a_line_of_the_chip_executes_stands_beside_it(trace: Path) -> None:
    tables = beside(trace, "line").tables
    assert {table.places for table in tables if table.launch == 0} == {
        (f"scale.cu:{line}",) * 2 for line in (6, 7, 8, 9)
    } | {("scale.cu:4", "scale.cu:4")}
    (last,) = (t for t in tables if t.places[0] == "scale.cu:16")
    assert last.text == "__syncthreads();"


def test_requests_and_sectors_of_a_launch_are_the_chips(trace: Path) -> None:
    for table in beside(trace, "launch").tables:
        for row in table.rows:
            ours, chip = (cell.value for cell in row.cells)
            name = row.name
            if ("mem_global" in name or name.startswith("memory_")) and "hit" not in name:
                assert ours == pytest.approx(chip, rel=NEAR.get(name, 0)), (table.launch, name)
