"""`--code` of every verb that records a source: the PTX or the machine code of a capability."""

from pathlib import Path

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.commands._main import run
from cutrace.tracer.front.toolkit import find_file

SOURCE = """// cutrace: scale<<<4, 256>>>(a:f32[1024]=arange, 2)
__global__ void scale(float *a, float k) { a[blockIdx.x * blockDim.x + threadIdx.x] *= k; }
"""
SUITE = '[[variant]]\nname = "one"\nsource = "one.cu"\n'
pytestmark = pytest.mark.skipif(
    find_file("nvdisasm") is None, reason="nvidia-cuda-nvdisasm is not installed"
)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("one.cu", "two.cu"):
        (tmp_path / name).write_text(SOURCE)
    (tmp_path / "suite.toml").write_text(SUITE)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [["compare", "one.cu", "two.cu"], ["sweep", "suite.toml"], ["analyze", "one.cu"]],
)
def test_a_verb_that_records_takes_the_code_that_runs(
    sources: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--code", "sm_89"]) == 0
    assert "sm_89" in capsys.readouterr().out  # the device, which the code chooses
    assert run([*words, "--code", "sm_91"]) == 2
    assert "--code sm_91: expected one of" in capsys.readouterr().err


def test_the_table_of_a_sweep_has_the_counts_of_the_code_that_ran(sources: Path) -> None:
    machine = cutrace.sweep("suite.toml", code="sm_89", device="sm_89", out="machine.csv")
    ptx = cutrace.sweep("suite.toml", device="sm_89", out="ptx.csv")
    counts = [
        table.filter(table["counter"] == "instructions")["value"].item() for table in (machine, ptx)
    ]
    assert counts[0] != counts[1]


def test_a_trace_keeps_its_code(sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = hand_trace(sources / "t.cutrace", [Access(warp(stride=4))]).path
    assert run(["compare", str(trace), "one.cu", "--code", "sm_89"]) == 2
    assert "the options of a recording need a source" in capsys.readouterr().err


def test_check_names_a_device_of_a_traces_code(
    sources: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["record", "one.cu", "--code", "sm_89", "-o", "one.cutrace"]) == 0
    capsys.readouterr()
    assert run(["check", "one.cutrace", "--races"]) == 0
    assert capsys.readouterr().out.endswith("next: cutrace analyze one.cutrace -d sm_89\n")
