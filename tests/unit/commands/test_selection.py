"""`--launch N` and `--kernels REGEX`: launches of a trace, in every verb that reads one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cutrace.commands._main import run

SOURCE = """\
// cutrace: scale<<<1, 32>>>(out:f32[32])
// cutrace: scale<<<2, 32>>>(b:f32[64])
// cutrace: shift<<<4, 32>>>(c:f32[128])
__global__ void scale(float *out) { out[blockIdx.x * 32 + threadIdx.x] = 1; }
__global__ void shift(float *out) { out[blockIdx.x * 32 + threadIdx.x] += 2; }
"""
READERS: Sequence[tuple[str, ...]] = (
    ("analyze", "--all"),
    ("advise",),
    ("why",),
    ("occupancy", "--format", "json"),
    ("export", "--to", "ncu-raw"),
    ("compare",),
    ("info",),
    ("check", "--races"),
    ("report", "-o", "page.html"),
)
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> str:
    """A trace of three launches of two kernels: grids of 1, 2 and 4 blocks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    (tmp_path / "both.cu").write_text(SOURCE)
    assert run(["record", "both.cu"]) == 0
    capsys.readouterr()
    return "both.cutrace"


def shown(capsys: Captured, verb: str, trace: str, *words: str) -> str:
    """What a verb prints of a trace, or the page that it writes."""
    assert run([verb, trace, *words]) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    return Path("page.html").read_text() if verb == "report" else out


@pytest.mark.parametrize("reader", [r for r in READERS if r[0] != "compare"], ids=lambda r: r[0])
def test_every_reader_shows_the_chosen_launches_alone(
    reader: tuple[str, ...], trace: str, capsys: Captured
) -> None:
    verb, *words = reader
    for chosen in (["--launch", "2"], ["--kernels", "^shi"], ["--kernels", "s", "--launch", "2"]):
        text = shown(capsys, verb, trace, *words, *chosen)
        body = text.partition("</head>")[2] if verb == "report" else text
        assert "scale<<<" not in body.replace("cutrace: scale<<<", "")
    every = shown(capsys, verb, trace, *words)
    assert every != text


def test_compare_sets_the_chosen_kernels_side_by_side(trace: str, capsys: Captured) -> None:
    text = shown(capsys, "compare", trace, "--counters", "global_store_transactions")
    assert "scale" in text
    assert "shift" in text
    words = ["--launch", "0,2", "--counters", "global_store_transactions"]
    # a warp stores 4 sectors of 32 bytes: 1 block of scale against 4 blocks of shift
    assert _numbers(shown(capsys, "compare", trace, *words)) == [4, 16]
    words = ["other=both.cutrace", "--kernels", "^scale$", *words[2:]]
    assert _numbers(shown(capsys, "compare", trace, *words)) == [4, 4]


def _numbers(table: str) -> list[int]:
    line = next(each for each in table.splitlines() if each.startswith("global_store_tr"))
    return [int(word) for word in line.replace("*", "").split()[1:3]]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader[0])
def test_a_choice_of_nothing_is_refused_with_what_there_is(
    reader: tuple[str, ...], trace: str, capsys: Captured
) -> None:
    verb, *words = reader
    for chosen, message in (
        (["--launch", "3"], "there is no launch 3: it has launches 0 to 2"),
        (["--launch", "1..2"], "numbers, as in 3 or 0-7"),
        (["--kernels", "scal$"], "no kernel's name matches; nearest: scale; it has scale, shift"),
        (["--kernels", "("], "--kernels (: not a regular expression"),
    ):
        assert run([verb, trace, *words, *chosen]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("verb", [*(reader[0] for reader in READERS), "serve"])
def test_the_help_of_every_reader_names_both_options(verb: str, capsys: Captured) -> None:
    assert run([verb, "--help"]) == 0
    own = capsys.readouterr().out.partition("\nOptions\n")[2].partition("\n\n")[0]
    assert "--launch N|N-M,...|KERNEL<<<GRID,BLOCK>>>(ARGS)" in own
    assert "--kernels REGEX" in own


def test_kernels_of_a_recorded_source_are_chosen_too(trace: str, capsys: Captured) -> None:
    text = shown(capsys, "analyze", "both.cu", "--kernels", "shift", "--by", "line")
    assert "both.cu:5" in text
    assert "both.cu:4" not in text
