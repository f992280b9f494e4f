"""Reports of Nsight Compute through a stand-in for NVIDIA's package, which has what is read of it.

tests/validate/test_report.py has the counts of a real one.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hand_trace import Access, instruction, launch, write_rows
from warps import warp

from cutrace.analyzer.profilers.measured import read_measured
from cutrace.analyzer.profilers.measurement import Measured
from cutrace.analyzer.profilers.ncu_report_file import render_table
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.traces.schema import Argument
from cutrace.traces.writer import TraceWriter

Captured = pytest.CaptureFixture[str]
Value = float | str | None
SECTORS = "memory_l2_theoretical_sectors_global"
LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
PLACE = ("/home/me/app/k.cu", 1)
ADDRESS = 0x7F00


class Metric:
    """A metric, with values of instructions by address."""

    def __init__(self, value: Value, unit: str = "", instances: Mapping[int, Value] = {}) -> None:
        self.whole, self.printed, self.instances = value, unit, dict(instances)

    def unit(self) -> str:
        return self.printed

    def value(self, index: int | None = None) -> Value:
        return self.whole if index is None else [*self.instances.values()][index]

    def num_instances(self) -> int:
        return len(self.instances)

    def has_correlation_ids(self) -> bool:
        return bool(self.instances)

    def correlation_ids(self) -> "Metric":
        return Metric(None, "", dict(enumerate(self.instances)))

    def as_uint64(self, index: int) -> int:
        address = self.value(index)
        assert isinstance(address, int)
        return address


class SourceInfo:
    def __init__(self, place: tuple[str, int]) -> None:
        self.place = place

    def file_name(self) -> str:
        return self.place[0]

    def line(self) -> int:
        return self.place[1]


class Action:
    """A kernel, or a range of several."""

    NameBase_DEMANGLED = 1
    WorkloadType_KERNEL = 0

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        kernel: str = "k(float *, int)",
        kind: int = 0,
        places: Mapping[int, tuple[str, int]] = {},
    ) -> None:
        self.metrics, self.kernel, self.kind, self.places = metrics, kernel, kind, places

    def name(self, base: int = 0) -> str:
        return self.kernel if base == self.NameBase_DEMANGLED else self.kernel.partition("(")[0]

    def workload_type(self) -> int:
        return self.kind

    def metric_names(self) -> tuple[str, ...]:
        return tuple(self.metrics)

    def metric_by_name(self, name: str) -> Metric | None:
        return self.metrics.get(name)

    def source_info(self, address: int) -> SourceInfo | None:
        return SourceInfo(self.places[address]) if address in self.places else None

    def source_files(self) -> dict[str, str]:
        return {PLACE[0]: ""}


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("ncu_report")
    monkeypatch.setitem(sys.modules, "ncu_report", module)
    return module


def report(package: ModuleType, tmp_path: Path, *ranges: Sequence[Action]) -> Path:
    path = tmp_path / "chip.ncu-rep"
    path.write_bytes(b"NVR")
    vars(package)["load_report"] = lambda name: ranges
    return path


def kernel() -> Action:
    """Two instructions of a line, and one of no known line."""
    instances: dict[int, Value] = {ADDRESS: 4, ADDRESS + 16: 32, ADDRESS + 32: 1}
    return Action(
        {
            "device__attribute_compute_capability_major": Metric(9),
            "device__attribute_compute_capability_minor": Metric(0),
            "device__attribute_display_name": Metric("NVIDIA H100"),
            "dram__bytes_read.sum": Metric(1.5, "Kbyte"),
            LOADS: Metric(36, "sector"),
            "inst_executed": Metric(3, "inst", dict.fromkeys(instances, 1)),
            SECTORS: Metric(37, "sectors", instances),
        },
        places={ADDRESS: PLACE, ADDRESS + 16: PLACE},
    )


def test_a_report_has_the_metrics_of_its_kernels_and_lines(
    package: ModuleType, tmp_path: Path
) -> None:
    other = Action({LOADS: Metric(1)}, kind=1)
    path = report(package, tmp_path, [kernel(), other], [kernel()])
    read = read_measured(path)
    assert read.vocabulary == "ncu"
    first, second = read.launches
    assert first == second
    assert (first.kernel, first.capability) == ("k(float *, int)", "9.0")
    assert first.values[LOADS] == 36
    assert first.values["dram__bytes_read.sum"] == 1500
    assert "device__attribute_display_name" not in first.values
    assert first.lines == {PLACE: {"smsp__inst_executed.sum": 2, SECTORS: 4 + 32}}


def test_what_is_imported_is_read_back(package: ModuleType, tmp_path: Path) -> None:
    read = read_measured(report(package, tmp_path, [kernel(), kernel()]))
    table = tmp_path / "chip.csv"
    table.write_text(render_table(read), "utf-8")
    again = read_measured(table)
    assert [(m.kernel, m.capability, m.values, m.lines) for m in again.launches] == [
        (m.kernel, m.capability, m.values, m.lines) for m in read.launches
    ]


def test_a_report_stands_beside_a_trace_by_launch_and_by_line(
    package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    report(package, tmp_path, [kernel()])
    monkeypatch.chdir(tmp_path)
    arguments = (Argument("data", "float *", "data"), Argument("n", "int", 4))
    told = launch(kernel="_Z1kPfi", signature="k(float *data, int n)", arguments=arguments)
    with TraceWriter(Path("t.cutrace")) as trace, trace.launch(told) as rows:
        write_rows(rows, [Access(warp(stride=128))], [instruction(0)])
    words = ["compare", "t.cutrace", "chip.ncu-rep", "-d", "h100"]
    assert run(words) == 0
    printed = capsys.readouterr().out
    assert cells(printed, LOADS) == ["32", "36"]
    assert run([*words, "--by", "line"]) == 0
    printed = capsys.readouterr().out
    assert "t: k.cu:1" in printed
    assert "chip: k.cu:1" in printed
    assert cells(printed, SECTORS) == ["32", "36"]
    assert run(["import", "chip.ncu-rep"]) == 0
    printed = capsys.readouterr().out
    assert "launches: 1" in printed
    assert "source lines: 1" in printed
    assert "next: cutrace compare TRACE chip.csv --by line" in printed
    assert run(["compare", "t.cutrace", "chip.csv", "-d", "h100", "--by", "line"]) == 0
    assert cells(capsys.readouterr().out, SECTORS) == ["32", "36"]
    assert run(["import", "chip.ncu-rep"]) == 2
    assert "chip.csv is there already" in capsys.readouterr().err


def cells(printed: str, counter: str) -> list[str]:
    """The first two values of a counter's row."""
    (row,) = (line.split() for line in printed.splitlines() if line.split()[:1] == [counter])
    return row[1:3]


def test_without_lines_a_report_says_how_to_collect_them(
    package: ModuleType, tmp_path: Path, capsys: Captured
) -> None:
    path = report(package, tmp_path, [Action({LOADS: Metric(1)})])
    told = launch(kernel="_Z1kPfi", signature="k(float *data, int n)")
    with TraceWriter(tmp_path / "t.cutrace") as trace, trace.launch(told) as rows:
        write_rows(rows, [Access(warp(stride=4))], [instruction(0)])
    assert run(["compare", str(tmp_path / "t.cutrace"), str(path), "--by", "line"]) == 2
    assert "chip has launches only, so no --by line" in capsys.readouterr().err


def test_a_report_that_cannot_be_read_is_answered(
    package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = report(package, tmp_path)
    with pytest.raises(CutraceError, match=r"chip.ncu-rep: no kernel in it"):
        read_measured(path)

    def raised(error: Exception) -> str:
        def load(name: str) -> Measured:
            raise error

        vars(package)["load_report"] = load
        with pytest.raises(CutraceError) as caught:
            read_measured(path)
        return str(caught.value)

    assert "there is no such file" in raised(FileNotFoundError("Could not load report file"))
    assert "Permission denied" in raised(PermissionError(13, "Permission denied"))
    assert "ncu-report cannot read it: bad magic" in raised(RuntimeError("bad magic"))
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(CutraceError, match=r'pip install "cutrace\[ncu\]"; or compare what `ncu'):
        read_measured(path)
