"""Bad input: one message with what, where and what to do, the exit status, never a traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutrace.commands._main import run

KERNEL = """\
__global__ void scale(float *out, const float *in, float k, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = k * in[i];
}
"""
LAUNCH = "scale<<<2, 32>>>(out:f32[64], in:f32[64]=arange, 2.0, 64)"
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a source that launches nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.cu").write_text(KERNEL)
    return tmp_path


@pytest.fixture
def trace(folder: Path, capsys: Captured) -> Path:
    """A sound trace."""
    assert run(["record", "scale.cu", "--launch", LAUNCH]) == 0
    capsys.readouterr()
    return folder / "scale.cutrace"


def refused(capsys: Captured, *arguments: str, status: int = 2) -> str:
    """The message of a command line that fails; nothing of a report came before it."""
    assert run(arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("cutrace: ")
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-d", "8800gtz"], "no device '8800gtz'; nearest: 8800gtx"),
        (["--counters", "gst_incohrent"], "nearest: gst_incoherent, gst_coherent, gld_incoherent"),
        (["--format", "xml"], "no format 'xml'"),
        (["--by", "lines"], "cannot count by 'lines'; nearest: line"),
        (["--by", "line", "--counters", "occupancy"], "occupancy belongs to the launch as a whole"),
        (["--dlcm", "cb"], "dlcm is 'cb'; expected ca or cg"),
        (["--schedule", "greedy"], "schedule is 'greedy'; expected round-robin"),
        (["--scope", "gpu"], "scope is 'gpu'; expected cluster or all"),
        (["--set", "coalescer"], "--set coalescer: expected STAGE.KEY=VALUE"),
        (["--set", "coalescer.lode=sector"], "lode"),
        (["--profiled-blocks", "0"], "profiled_blocks is 0; expected 1 or more"),
        (["--registers", "many"], "--registers"),
        (["--launch", LAUNCH], "need a source, not a trace; of a trace, --launch takes numbers"),
        (["--no-such"], "--no-such"),
    ],
)
def test_what_does_not_exist_is_named(
    trace: Path, capsys: Captured, arguments: list[str], message: str
) -> None:
    assert message in refused(capsys, "analyze", trace.name, *arguments)


def test_a_mistyped_path_or_verb_is_answered_with_the_nearest(
    trace: Path, capsys: Captured
) -> None:
    assert "scale.cutrac: no such trace; nearest: scale.cutrace" in refused(
        capsys, "analyze", "scale.cutrac"
    )
    assert "nearest: scale.cu" in refused(capsys, "analyze", "scalle.cu")
    assert "analyze" in refused(capsys, "analyse", "scale.cu")
    assert "nearest: reverse_array" in refused(capsys, "gallery", "reverse_aray")
    assert "nearest: cuda-profile" in refused(capsys, "export", trace.name, "--to", "cuda_profile")


def test_without_a_launch_the_kernels_are_listed_with_an_example(
    folder: Path, capsys: Captured
) -> None:
    told = refused(capsys, "analyze", "scale.cu")
    assert "scale(float *out, const float *in, float k, int n)" in told
    assert '--launch "scale<<<' in told


def test_a_foreign_or_truncated_trace_is_refused(trace: Path, capsys: Captured) -> None:
    foreign = Path("foreign.cutrace")
    foreign.mkdir()
    (foreign / "manifest.json").write_text('{"hello": 1}')
    assert "foreign.cutrace/manifest.json" in refused(capsys, "analyze", foreign.name)
    os.truncate(trace / "0" / "accesses.arrow", 500)
    assert "0/accesses.arrow: truncated" in refused(capsys, "analyze", trace.name)
    assert "0/accesses.arrow: truncated" in refused(capsys, "info", trace.name, "--verify")


def test_a_fault_of_the_kernel_is_status_1_and_leaves_no_trace(
    folder: Path, capsys: Captured
) -> None:
    short = LAUNCH.replace("out:f32[64]", "out:f32[32]")
    assert "scale.cu:4" in refused(capsys, "record", "scale.cu", "--launch", short, status=1)
    assert not Path("scale.cutrace").exists()


def test_an_unsound_trace_is_status_1(
    trace: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutrace.traces.verify.verify", lambda trace: ["steps fall in warp 3"])
    told = refused(capsys, "info", trace.name, "--verify", status=1)
    assert told == "cutrace: scale.cutrace is not valid:\n  steps fall in warp 3\n"


def test_an_unforeseen_error_is_one_line(
    trace: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("cutrace.analyzer.profile.count", fail)
    told = refused(capsys, "analyze", trace.name)
    assert told == "cutrace: internal error, please report it: ZeroDivisionError: by zero\n"


@pytest.mark.parametrize("words", [["analyze", "scale.cutrace"], ["--help"], ["devices", "--help"]])
def test_a_reader_that_goes_away_is_status_141(trace: Path, words: list[str]) -> None:
    command = [sys.executable, "-c", "from cutrace.commands._main import main; main()"]
    told, gone = os.pipe()
    os.close(told)
    found = subprocess.run([*command, *words], stdout=gone, stderr=subprocess.PIPE, check=False)
    os.close(gone)
    assert (found.returncode, found.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_said_with_the_name_of_the_file(trace: Path, capsys: Captured) -> None:
    words = ["export", trace.name, "--to", "cuda-profile", "-d", "8800gtx"]
    told = refused(capsys, *words, "-o", "/dev/full")
    assert told == "cutrace: /dev/full: cannot write it: No space left on device\n"


def test_ctrl_c_is_status_130_and_leaves_nothing(folder: Path) -> None:
    Path("long.cu").write_text(
        "__global__ void spin(int *out)\n"
        "{ for (int i = 0; i < 100000000; i++) out[threadIdx.x] += out[i & 31]; }\n"
    )
    listen = "import signal as s; s.signal(s.SIGINT, s.default_int_handler)"  # for jobs behind `&`
    run = f"{listen}; from cutrace.commands._main import main; main()"
    command = [sys.executable, "-c", run, "record", "long.cu"]
    recording = subprocess.Popen(
        [*command, "--launch", "spin<<<1, 32>>>(out:i32[32])"], stderr=subprocess.PIPE
    )
    before = set(folder.iterdir())
    while not list(folder.glob(".cutrace-*.partial/**/*.arrow")):  # until the kernel runs
        assert recording.poll() is None
        time.sleep(0.05)
    recording.send_signal(signal.SIGINT)
    assert recording.communicate(timeout=30)[1] == b"cutrace: interrupted\n"
    assert recording.returncode == 130
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("module", ["typer", "cutrace.commands.analyze", "numpy", "pyarrow"])
def test_ctrl_c_while_it_starts_is_one_line(trace: Path, module: str) -> None:
    press = f"""
import os, signal as s, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), s.SIGINT)
s.signal(s.SIGINT, s.default_int_handler)
sys.meta_path.insert(0, Press())
from cutrace.commands._main import main
main()
"""
    command = [sys.executable, "-c", press, "analyze", trace.name]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "cutrace: interrupted\n")


def test_an_unknown_option_says_where_those_of_a_script_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("print()\n")
    assert run(["record", str(tmp_path / "train.py"), "--epochs", "3"]) == 2
    err = capsys.readouterr().err
    assert "No such option: --epochs" in err
    assert "those of a script or program go behind `--`" in err
    assert run(["recrod"]) == 2
    assert "behind" not in capsys.readouterr().err
