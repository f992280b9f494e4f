"""Launches that did nothing say so, and a fault says what size would fit."""

from pathlib import Path

import pytest
from hand_trace import Access, hand_trace, instruction
from warps import warp

from cutrace.analyzer.counting.instruction_mix import NOT_KEPT, NOTHING
from cutrace.commands._main import run
from cutrace.traces.schema import Space

KERNEL = """
__global__ void k(float *o, int n, int step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        o[step * i] = 1;
}
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(KERNEL)


def told(launch: str, capsys: Captured, *options: str) -> str:
    assert run(["analyze", "k.cu", "--launch", launch, "-d", "h200", *options]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_launch_of_which_no_thread_passed_the_bounds_check_says_so(capsys: Captured) -> None:
    idle, busy = (f"k<<<4, 32>>>(o:f32[128], {n}, 1)" for n in (0, 128))
    assert NOTHING in told(idle, capsys)
    assert f"nothing to advise: {NOTHING}" in told(idle, capsys, "--advice")
    assert NOTHING not in told(busy, capsys)
    assert "nothing to advise:" not in told(busy, capsys, "--advice")


@pytest.mark.parametrize(
    ("mnemonic", "space", "keeps"),
    [
        ("ld.global.f32", Space.GLOBAL, False),
        ("st.shared.f32", Space.SHARED, False),
        ("st.global.f32", Space.GLOBAL, True),
        ("atom.global.add.u32", Space.GLOBAL, True),
    ],
)
def test_a_launch_that_stores_nothing_says_so_instead_of_good_advice(
    mnemonic: str, space: Space, keeps: bool, capsys: Captured
) -> None:
    lanes = warp(base=0) if space == Space.SHARED else warp()
    hand_trace(
        Path("t.cutrace"), [Access(lanes, space=space)], instructions=[instruction(0, mnemonic)]
    )
    assert run(["analyze", "t.cutrace", "-d", "h200", "--advice"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (NOT_KEPT in said) == (not keeps and "nothing to advise" in said)
    assert NOTHING not in said


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize(
    ("launch", "fits"),
    [
        # thread 1024 stores element 1024, and there are 8 x 256
        ("k<<<8, 256>>>(o:f32[1024], 2048, 1)", "2048 elements of 4 bytes would fit all 2048"),
        # thread 512 stores element 1024
        ("k<<<4, 256>>>(o:f32[1024], 1024, 2)", "it needs 1025 elements of 4 bytes at least"),
    ],
)
def test_a_fault_past_an_array_names_the_size_that_would_fit(
    launch: str, fits: str, engine: str, capsys: Captured
) -> None:
    assert run(["record", "k.cu", "--launch", launch, "--engine", engine]) == 1
    assert fits in capsys.readouterr().err
