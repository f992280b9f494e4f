"""What people read is short: equal rows, structures, cells of a notebook, exports of a choice."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cutrace.analyzer.text.launch_text import launch_text
from cutrace.commands._main import run
from cutrace.commands.running.recording_here import USAGE, _with_cells, load
from cutrace.traces.schema import Argument, Launch

SOURCE = """\
// cutrace: strided<<<1, 32>>>(out:f32[4096])
// cutrace: wide<<<1, 32>>>(o2:f32[64], i2:f32[64])
__global__ void strided(float *out) { out[threadIdx.x * 64] = 1; }
__global__ void wide(float *out, const float *in)
{
    __shared__ float tile[128];
    for (int k = 0; k < 4; k++)
        tile[threadIdx.x + 32 * k] = in[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 32; k++)
        sum += tile[k] * tile[32 + k];
    out[threadIdx.x] = sum;
}
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> str:
    """A trace of two kernels."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    (tmp_path / "both.cu").write_text(SOURCE)
    assert run(["record", "both.cu"]) == 0
    capsys.readouterr()
    return "both.cutrace"


def test_a_stride_is_drawn_by_its_first_and_last_rows(trace: str, capsys: Captured) -> None:
    assert run(["why", trace, "both.cu:3", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("address")) :][:5]
    assert [line.split()[0] for line in table] == ["address", "out+0", "out+256", "...", "out+7936"]
    # 32 rows but the two before and the one after
    assert table[3] == "...  29 more alike, each 256 bytes on"
    assert table[4].split()[-1] == "31"


def test_a_structure_is_shown_by_its_type_and_size() -> None:
    data = (0x700200000).to_bytes(8, "little") + b"".join(
        word.to_bytes(8, "little") for word in (3075, 4, 0, 9)
    )
    arguments = (Argument("in", "CArray", data.hex()), Argument("n", "int", 3075))
    one = Launch("sum", "", (79, 1, 1), (512, 1, 1), 0, 0, 0, arguments)
    assert launch_text(one, 80) == "sum<<<79, 512>>>(in={CArray, 40 bytes}, n=3075)"
    assert data.hex() in launch_text(one)  # formats for programs have all of it


def test_an_export_of_chosen_launches_lists_those_alone(trace: str, capsys: Captured) -> None:
    assert run(["export", trace, "--to", "accel-sim", "-o", "out", "--launch", "1"]) == 0
    said = capsys.readouterr().out
    listed = Path("out/kernelslist.g").read_text()
    assert "kernel-2.traceg" in listed
    assert "kernel-1.traceg" not in listed
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "kernel-2.traceg",
        "kernelslist.g",
    ]
    # ptxas joins neighbouring loads of `tile`
    assert "an import counts what --code ptx does" in said
    assert run(["export", trace, "--to", "accel-sim", "-o", "plain", "--launch", "0"]) == 0
    assert "--code ptx" not in capsys.readouterr().out


class Shell:
    """What the magic uses of IPython."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.magic: Any = None
        self.compile = SimpleNamespace(_filename_map={"/tmp/ipykernel_9/77.py": 4})

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magic = function

    def run_cell(self, code: str) -> Any:
        self.ran.append(code)
        return SimpleNamespace(success=True)


def test_the_magic_explains_itself_and_runs_nothing_on_a_wrong_device(capsys: Captured) -> None:
    shell = Shell()
    load(shell)
    assert USAGE in shell.magic.__doc__
    for line in ("-d nosuch", "--by", "-d h100 --nosuch"):
        shell.magic(line, "kernel()")
        assert capsys.readouterr().err.startswith("cutrace: ")
    assert shell.ran == []


def test_cells_have_the_numbers_that_a_notebook_shows() -> None:
    text = "<ipython-input-1-5cb807911971>:3 and /tmp/ipykernel_9/77.py:2"
    assert _with_cells(text, Shell()) == "In[1]:3 and In[4]:2"
