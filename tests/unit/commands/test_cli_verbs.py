"""The verbs as one types them, on a small kernel: what they print, and with which exit status."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutrace.commands._main import run
from cutrace.tracer.front.toolkit import find_file

KERNEL = """\
// cutrace: reverse<<<8, 64>>>(out:i32[512], in:i32[512]=arange)
__global__ void reverse(int *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[gridDim.x * blockDim.x - 1 - i] = in[i];
}
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a source in it and no device or profiler in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("CUTRACE_DEVICE", "CUDA_PROFILE", "COMPUTE_PROFILE", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "reverse.cu").write_text(KERNEL)
    return tmp_path


@pytest.fixture
def trace(folder: Path, capsys: Captured) -> Path:
    """A trace of the source."""
    assert run(["record", "reverse.cu"]) == 0
    assert capsys.readouterr().out == "reverse.cutrace\nnext: cutrace analyze reverse.cutrace\n"
    return folder / "reverse.cutrace"


@pytest.mark.skipif(find_file("nvdisasm") is None, reason="nvidia-cuda-nvdisasm is missing")
def test_of_machine_code_the_next_command_names_a_device(folder: Path, capsys: Captured) -> None:
    assert run(["record", "reverse.cu", "--code", "sm_89"]) == 0
    assert capsys.readouterr().out.endswith("next: cutrace analyze reverse.cutrace -d sm_89\n")
    assert run(["analyze", "reverse.cutrace", "-d", "sm_89"]) == 0
    capsys.readouterr()
    named = "next: cutrace analyze reverse.cutrace -d sm_89\n"
    assert printed(capsys, "info", "reverse.cutrace").endswith(named)
    packed = printed(capsys, "export", "reverse.cutrace", "--to", "zip")
    assert packed.endswith("next: cutrace analyze reverse.cutrace.zip -d sm_89\n")
    refusal = "as in -d sm_89, or record the PTX, without --code\n"
    for verb in ("analyze", "why", "advise", "export --to requests", "analyze --by reuse"):
        name, *options = verb.split()
        assert run([name, "reverse.cutrace", *options, "-d", "h100"]) == 2, verb
        assert capsys.readouterr().err.endswith(refusal)
        assert run([name, "reverse.cutrace", *options, "-d", "sm_89"]) == 0, verb
        capsys.readouterr()


@pytest.mark.skipif(find_file("nvdisasm") is None, reason="nvidia-cuda-nvdisasm is missing")
def test_a_source_is_analyzed_by_its_machine_code_on_a_device_of_it(
    folder: Path, capsys: Captured
) -> None:
    machine = printed(capsys, "analyze", "reverse.cu", "--code", "sm_89", "--by", "instruction")
    assert "STG" in machine
    assert "st.global" not in machine
    assert machine == printed(
        capsys, "analyze", "reverse.cu", "--code=sm_89", "-dsm_89", "--by", "instruction"
    )


@pytest.mark.parametrize("subject", ["reverse.cu", "reverse.cutrace"])
def test_loads_of_the_assembled_code_are_the_default(
    trace: Path, capsys: Captured, subject: str
) -> None:
    assert printed(capsys, "analyze", subject, "--code", "assembled") == printed(
        capsys, "analyze", subject
    )


def test_one_launch_is_singular(trace: Path, capsys: Captured) -> None:
    text = printed(capsys, "analyze", "reverse.cutrace", "--by", "range")
    assert "1 launch of 1 kernel, the costliest first" in text


def test_a_code_that_does_not_exist_is_refused(folder: Path, capsys: Captured) -> None:
    assert run(["analyze", "reverse.cu", "--code", "sm_999"]) == 2
    assert "--code sm_999: expected one of assembled, ptx, sm_75" in capsys.readouterr().err
    assert run(["analyze", "--help-all"]) == 0
    assert "--code assembled|ptx|sm_NN" in capsys.readouterr().out


def printed(capsys: Captured, *arguments: str) -> str:
    """What a command line that succeeds prints on stdout."""
    assert run(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_a_source_is_analyzed_in_one_go_and_leaves_nothing(folder: Path, capsys: Captured) -> None:
    text = printed(capsys, "analyze", "reverse.cu", "-d", "8800gtx,gtx580", "-d", "h200", "--all")
    rows = [line.split() for line in text.splitlines()]
    assert ["counter", "8800gtx", "gtx580", "h200"] in rows
    # 16 warps: 32 half-warps of 16 lanes, or 16 lines of 128 bytes in sectors of 32
    assert ["global_store_transactions", "512", "64", "64"] in rows
    assert "costs most: reverse.cu:5  out[gridDim.x * blockDim.x - 1 - i] = in[i];\n" in text
    assert text.endswith("next: cutrace analyze reverse.cu -d 8800gtx,gtx580,h200 --by line\n")
    assert [path.name for path in folder.iterdir()] == ["reverse.cu"]


def test_profiled_blocks_choose_the_share_of_the_cluster(trace: Path, capsys: Captured) -> None:
    command = ["analyze", trace.name, "-d", "8800gtx", "--counters", "gld_coherent,gst_incoherent"]
    text = printed(capsys, *command, "--profiled-blocks", "3")
    # 3 blocks of 4 half-warps; 16 transactions each of which counts 2
    assert "gld_coherent         12\n" in text
    assert "gst_incoherent      384\n" in text
    assert "saw 3 of 8 blocks" in text
    whole = printed(capsys, *command, "--scope", "all")
    assert "gst_incoherent    1,024\n" in whole


def test_the_first_line_says_which_device_nobody_chose(
    trace: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = printed(capsys, "analyze", trace.name).splitlines()[0]
    assert first == "device: h100 (the default; -d chooses others, `cutrace devices` lists)"
    monkeypatch.setenv("CUTRACE_DEVICE", "gtx280")
    text = printed(capsys, "analyze", trace.name, "--all")
    assert text.splitlines()[0] == "device: gtx280 ($CUTRACE_DEVICE; -d chooses others)"
    assert "gst_64b" in text


def test_each_grouping_names_the_next_finer_one(trace: Path, capsys: Captured) -> None:
    for by, then in (("launch", "line"), ("line", "array"), ("array", "instruction")):
        last = printed(capsys, "analyze", trace.name, "-d", "t4", "--by", by).splitlines()[-1]
        assert last == f"next: cutrace analyze reverse.cutrace -d t4 --by {then}"


def test_json_on_a_pipe_is_json_and_nothing_else(trace: Path, capsys: Captured) -> None:
    text = printed(capsys, "analyze", trace.name, "--format", "json", "--counters", "occupancy")
    (launch,) = json.loads(text)["launches"]
    assert launch["counters"][0]["counter"] == "occupancy"


def test_launches_and_macros_of_the_command_line_are_in_what_comes_next(
    folder: Path, capsys: Captured
) -> None:
    line = "reverse<<<2, 32>>>(out:i32[64], in:i32[64]=arange)"
    text = printed(capsys, "analyze", "reverse.cu", "--launch", line, "-DN=4", "-d", "t4")
    assert text.startswith("reverse<<<2, 32>>>(out, in)\n")
    assert text.endswith(
        f'next: cutrace analyze reverse.cu --launch "{line}" -DN=4 -d t4 --by line\n'
    )


def test_the_profilers_log_comes_with_a_recording_that_the_environment_asks_for(
    folder: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("config").write_text("gld_coherent\ngst_incoherent\n")
    monkeypatch.setenv("CUDA_PROFILE", "1")
    monkeypatch.setenv("CUDA_PROFILE_CONFIG", "config")
    assert run(["record", "reverse.cu"]) == 0
    told = "cutrace: cuda_profile.log: the profiler's log for 8800gtx"
    assert capsys.readouterr().err.startswith(told)
    row = Path("cuda_profile.log").read_text().splitlines()[5]
    # one cluster of 8 got 1 block of 4 half-warps
    assert row.endswith("occupancy=[ 0.667 ] gld_coherent=[ 4 ] gst_incoherent=[ 128 ]")
    printed(capsys, "analyze", "reverse.cu", "-d", "8800gtx", "--profiled-blocks", "3")
    row = Path("cuda_profile.log").read_text().splitlines()[5]
    assert row.endswith("gld_coherent=[ 12 ] gst_incoherent=[ 384 ]")


def test_export_writes_the_log_of_a_trace(trace: Path, capsys: Captured) -> None:
    text = printed(capsys, "export", trace.name, "--to", "cuda-profile", "--profiled-blocks", "3")
    assert "# CUDA_DEVICE 0 GeForce 8800 GTX\n" in text
    assert "gld_coherent=[ 12 ] gst_incoherent=[ 384 ]" in text
    assert (
        printed(capsys, "export", trace.name, "--to", "cuda-profile-csv", "-o", "x.csv")
        == "x.csv\n"
    )
    assert "# CUDA_PROFILE_CSV 1\n" in Path("x.csv").read_text()


def test_a_header_that_was_left_out_is_in_the_trace_and_in_info(
    folder: Path, capsys: Captured
) -> None:
    source = folder / "reverse.cu"
    source.write_text("#include <opencv2/core.hpp>\n" + KERNEL)
    assert run(["record", source.name, "-o", "t.cutrace"]) == 0
    sentence = "reverse.cu(1): the header opencv2/core.hpp was not found and left out"
    assert sentence in capsys.readouterr().err
    manifest = json.loads(Path("t.cutrace/manifest.json").read_text())
    assert [compiler["missing"] for compiler in manifest["compilers"]] == [[sentence]]
    assert f"header    {sentence}\n" in printed(capsys, "info", "t.cutrace")


def test_info_tells_what_is_in_a_trace_and_verifies_it(trace: Path, capsys: Captured) -> None:
    text = printed(capsys, "info", trace.name, "--verify")
    for words in (
        "launch 0  reverse<<<8, 64>>>(out, in)\n",
        "array     out: 2048 bytes of global memory at ",
        "source    reverse.cu, 6 lines\n",
        "copy      2048 bytes HtoD in\n",
        "32 accesses",
        "valid     all format checks passed\n",
    ):
        assert words in text


@pytest.mark.document("003.6", "cutrace devices NAME")
def test_devices_and_counters_are_listed_and_explained(capsys: Captured) -> None:
    listed = [line.split("  ") for line in printed(capsys, "devices").splitlines()]
    facts = [[cell.strip() for cell in line if cell.strip()] for line in listed]
    assert ["8800gtx", "GeForce 8800 GTX", "1.0", "16", "86.4"] in facts
    some = printed(capsys, "devices", "h?00").splitlines()
    assert [line.split(" ")[0] for line in some] == ["name", "h100", "h200", "", "next:"]
    assert "warps_per_sm          24\n" in printed(capsys, "devices", "8800 GTX")
    files = printed(capsys, "devices", "8800 GTX", "--toml")
    assert files.index('base = "sm_10"') < files.index("[stage.coalescer]")
    assert "sms = 16  # SMs: CUDA C Programming Guide 4.2, table A-1\n" in files
    assert "gst_incoherent    1.0-1.3  2 a transaction\n" in printed(capsys, "counters")
    told = printed(capsys, "counters", "instructions")
    assert "instructions (cutrace)\n" in told
    assert "instructions (cuda-profiler)\n" in told
    assert "  formula  SUM(instructions)\n" in told


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("cutrace analyze x -d 8800gtx,h2", "8800gtx,h20\n8800gtx,h200"),
        ("cutrace devices gtx5", "gtx580"),
        ("cutrace counters gst_inc", "gst_incoherent"),
        ("cutrace record reverse.cu --launch rev", "reverse<<<"),
        ("cutrace gallery reverse", "reverse_array"),
        ("cutrace analyze x --format m", "md"),
    ],
)
def test_the_shell_completes_names(folder: Path, words: str, found: str) -> None:
    environment = {
        **os.environ,
        "_CUTRACE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    command = [sys.executable, "-c", "from cutrace.commands._main import main; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found


@pytest.mark.parametrize("columns", ["50", "79", "80"])
@pytest.mark.parametrize("verb", ["record", "analyze", "why", "sweep"])
def test_help_shows_the_names_of_options_whole_in_any_window(
    verb: str, columns: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run([verb, "--help-all"]) == 0
    said = capsys.readouterr().out
    assert "--help" in said
    assert "…" not in said
    longest = {"record": "--check-uninitialized", "sweep": "--jobs"}.get(verb, "--profiled-blocks")
    assert longest in said


def test_the_gallery_is_listed_explained_and_copied(folder: Path, capsys: Captured) -> None:
    assert "\nreverse_array  " in printed(capsys, "gallery")
    assert "gst_incoherent" in printed(capsys, "gallery", "reverse_array")
    text = printed(capsys, "gallery", "reverse_array", "--copy", ".")
    assert (folder / "reverse_array" / "reverse_global.cu").exists()
    assert text.endswith("next: cutrace analyze reverse_array/reverse_global.cu\n")
    text = printed(capsys, "gallery", "texture", "--copy", ".")
    assert text.endswith("next: cutrace analyze texture/address_modes.py\n")
    assert run(["gallery", "reverse_array", "--copy", "."]) == 2
    assert "reverse_array is there already" in capsys.readouterr().err


def test_a_part_of_names_lists_the_counters_that_have_it(capsys: Captured) -> None:
    assert run(["counters", "excess_transactions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:1]] == ["cutrace.global_excess_transactions"]
    assert run(["counters", "no_such_word"]) == 2
    told = capsys.readouterr().err.partition("nearest: ")[2].partition(";")[0].split(", ")
    assert len(told) == len(set(told)) == 3
