"""What a user meant: answered where it is clear, else with what there is to choose from."""

from pathlib import Path

import pytest

from cutrace.commands._main import run

KERNEL = "__global__ void scale(float *out) { out[threadIdx.x] = 1; }\n"
LAUNCH = "scale<<<1, 32>>>(out:f32[32])"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a source that is recorded at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    (tmp_path / "scale.cu").write_text(f"// cutrace: {LAUNCH}\n{KERNEL}")
    return tmp_path


@pytest.mark.parametrize(
    "comment",
    [
        f"// cutrace {LAUNCH}",
        f"/* cutrace: {LAUNCH} */",
        f"/* cutrace {LAUNCH} */ // a launch",
        "// cutrace: scale<<<1, 32>>>(\n//     out:f32[32])",
    ],
)
def test_a_launch_comment_is_recognised_as_it_is_written(
    comment: str, folder: Path, capsys: Captured
) -> None:
    (folder / "a.cu").write_text(f"{comment}\n{KERNEL}")
    assert run(["analyze", "a.cu", "-q", "--counters", "global_store_transactions"]) == 0
    # 32 floats are 4 sectors of 32 bytes
    assert "global_store_transactions     4\n" in capsys.readouterr().out


def test_a_comment_without_a_launch_is_none(folder: Path, capsys: Captured) -> None:
    (folder / "a.cu").write_text(f"// cutrace shows this one\n// scale<<<2, 8>>>(x)\n{KERNEL}")
    assert run(["analyze", "a.cu"]) == 2
    err = capsys.readouterr().err
    assert "does not say which kernel to launch" in err
    assert "launches so" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scale.cu"], "a verb comes first, as in cutrace analyze scale.cu"),
        (["old.cutrace"], "a verb comes first, as in cutrace analyze old.cutrace"),
        (["analyze", "A.CU"], "a source must end in .cu: rename it to A.cu"),
        (["analyze", "b.cpp"], "cutrace nvcc -x cu b.cpp"),
        (["analyze", "b.cuh"], "neither a trace nor a .cu, .ptx or .py file"),
        (["info", "scale.cu"], "a source, not a trace; `cutrace record scale.cu`"),
        (["analyze", "scale.cu", "--counters", ""], "--counters names none"),
        (["compare", "scale.cu"], "one launch of scale; choose two, or give two traces"),
        (
            ["compare", "a=scale.cu", "b=scale.cu", "--baseline", "c"],
            "no variant 'c'; there are a, b",
        ),
        (["analyze", "scale.cu", "--pad", "tile=1"], "no array `tile` to change; there are out"),
    ],
)
def test_a_message_says_what_there_is(
    words: list[str], message: str, folder: Path, capsys: Captured
) -> None:
    for name in ("A.CU", "b.cpp", "b.cuh"):
        (folder / name).write_text(KERNEL)
    assert run(words) == 2
    assert message in capsys.readouterr().err


def test_a_file_with_an_equals_sign_is_a_file(folder: Path, capsys: Captured) -> None:
    (folder / "we=ird.cu").write_text((folder / "scale.cu").read_text())
    for word in ("we=ird.cu", "./we=ird.cu", "name=we=ird.cu"):
        assert run(["report", word, "-o", "page.html"]) == 0, capsys.readouterr().err
        assert run(["compare", "scale.cu", word, "--counters", "occupancy"]) == 0


def test_a_line_alone_is_one_of_the_only_source(capsys: Captured) -> None:
    assert run(["why", "scale.cu", "2", "-q"]) == 0
    assert capsys.readouterr().out.startswith("scale.cu:2  __global__")


@pytest.mark.parametrize("verb", ["analyze", "why", "report", "advise"])
def test_quiet_leaves_the_device_out_everywhere(verb: str, capsys: Captured) -> None:
    assert run([verb, "scale.cu"]) == 0
    assert "device: h100" in capsys.readouterr().out
    assert run([verb, "scale.cu", "-q"]) == 0
    assert "device: h100" not in capsys.readouterr().out


def test_a_block_that_no_device_launches_fails(capsys: Captured) -> None:
    assert run(["occupancy", "--threads", "2000"]) == 1
    out, err = capsys.readouterr()
    assert "cannot launch: 1024 threads a block at most" in out
    assert err == "cutrace: no block of 2000 threads fits on h100\n"
    assert run(["occupancy", "--threads", "1024"]) == 0


def test_help_shows_a_verbs_own_options_and_help_all_the_shared_ones(capsys: Captured) -> None:
    assert run(["analyze", "--help"]) == 0
    short = capsys.readouterr().out
    assert run(["analyze", "--help-all"]) == 0
    whole = capsys.readouterr().out
    for text in ("--by ", "--launch ", "--kernels ", "--device, -d ", "-D NAME"):
        assert text in short
        assert text in whole
    for text in ("--jobs ", "--code ", "--only-warps ", "--max-threads "):
        assert text not in short
        assert text in whole
    assert len(short.splitlines()) < len(whole.splitlines()) / 1.5
    assert "cutrace analyze --help-all shows" in short
    assert run(["occupancy", "--help"]) == 0
    assert "--registers " in capsys.readouterr().out
