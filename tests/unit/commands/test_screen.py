"""The screen: widths, colours, links, and how little may be said."""

from pathlib import Path

import pytest

from cutrace.analyzer.text.launch_text import source_links
from cutrace.commands._main import run
from cutrace.commands.terminal.screen import without_next
from cutrace.tracer.session.source.record import record

SCALE = """// cutrace: scale<<<2, 64>>>(out:f32[2048], in:f32[2048]=arange)

__global__ void scale(float *out, const float *in)
{
    int i = 16 * (blockIdx.x * blockDim.x + threadIdx.x);
    out[i] = 2 * in[i];
}
"""
MANY = "8800gtx,gtx580,k20,gtx980,p100,v100,a100,rtx4090,h100,h200,rtx5090"


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("screen")
    (folder / "scale.cu").write_text(SCALE)
    return record(folder / "scale.cu", out=folder / "scale.cutrace")


@pytest.fixture
def folder(traced: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(traced.parent)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return traced.parent


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run([*words]) == 0
    return capsys.readouterr().out


def test_many_devices_stand_in_rows_where_they_have_no_room_in_columns(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    counters = "memory_requests,global_transactions"
    asked = ["analyze", "scale.cutrace", "--no-caches", "-d", MANY, "--counters", counters]
    lines = printed(capsys, *asked).splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("device  "))
    head += next(n for n, line in enumerate(lines[head:]) if line.endswith("transactions"))
    assert lines[head].split() == ["device", *counters.split(",")]
    rows = {line.split()[0]: line.split()[1:] for line in lines[head + 1 : head + 12]}
    assert set(rows) == set(MANY.split(","))
    # 4 warps load once and store once: 8; each of 128 lanes touches 64 bytes of its own: a sector
    # for each lane to load and one to store
    assert rows["h100"] == ["8", "256"]


def test_of_many_devices_a_table_says_what_limits_the_launch(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, "analyze", "scale.cutrace", "-d", MANY).splitlines()
    assert lines[1].split()[:2] == ["device", "time"]
    rows = dict(line.split(maxsplit=1) for line in lines[2 : 2 + MANY.count(",") + 1])
    assert [*rows] == MANY.split(",")
    # 128 lanes load and store in 32 bytes of memory each: 8192 bytes at 86.4 GB/s, 94.8 ns
    assert rows["8800gtx"].split("  ")[0] == "no estimate"
    assert "94.8 ns (DRAM)" in rows["8800gtx"]
    assert rows["h100"].startswith("about ")


@pytest.mark.parametrize(
    "words",
    [
        ("counters",),
        ("counters", "bytes"),
        ("counters", "sector_efficiency"),
        ("info", "scale.cutrace"),
        ("gallery", "transpose"),
        ("analyze", "scale.cutrace", "-d", "h100", "--all"),
        ("compare", "a=scale.cutrace", "b=scale.cutrace", "--counters", "l1_hit_rate"),
    ],
)
def test_tables_and_texts_fit_80_columns(
    words: tuple[str, ...],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = printed(capsys, *words)
    monkeypatch.setenv("COLUMNS", "80")
    fits = printed(capsys, *words)
    lines = [line for line in fits.splitlines() if not line.startswith(("|", "next: "))]
    assert max(map(len, lines)) <= 80
    assert {*fits.split()} <= {*whole.split()}


def test_devices_that_have_no_room_follow_below(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(capsys, "analyze", "scale.cutrace", "--no-caches", "--all", "-d", MANY)
    table, *_ = text.partition("0 on every device")
    assert max(len(line) for line in table.splitlines()) <= 80
    heads = [line.split()[1:] for line in table.splitlines() if line.startswith("counter ")]
    assert [device for head in heads for device in head] == MANY.split(",")
    assert 1 < len(heads) < 11


def test_a_source_page_fits_80_columns_by_leaving_columns_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(capsys, "analyze", "scale.cutrace", "--by", "line", "-q")
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < 40
    assert "no room at this width for global_bytes_transferred, instructions," in text


def test_quiet_leaves_notes_and_the_next_command_out(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loud = printed(capsys, "analyze", "scale.cutrace", "--all")
    quiet = printed(capsys, "analyze", "scale.cutrace", "--all", "--quiet")
    assert "\nnext: " in loud
    for words in ("\nnext: ", "device: h100", "0 on every device", "PTX is not SASS"):
        assert words not in quiet
    assert "global_load_requests" in quiet
    assert "\nnext: " not in printed(capsys, "-q", "why", "scale.cutrace")


def test_colours_are_printed_where_they_are_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["analyze", "scale.cutrace", "--by", "line"]
    assert "\x1b[" not in printed(capsys, *asked)
    assert "\x1b[31m" in printed(capsys, *asked, "--color", "always")  # the line that costs: red
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31m" in printed(capsys, *asked)
    assert "\x1b[" not in printed(capsys, *asked, "--color=never")
    assert run([*asked, "--color", "sometimes"]) == 2
    assert "expected auto, always, never" in capsys.readouterr().err


def test_a_place_in_a_file_that_is_here_is_a_link(folder: Path) -> None:
    text = "100 % of the bytes moved: scale.cu:6  out; gone.cu:7"
    address = f"{(folder / 'scale.cu').as_uri()}#L6"
    assert [*source_links(text)] == [(text.index("scale.cu"), text.index("  out"), address)]


def test_only_a_last_line_says_what_is_next() -> None:
    assert without_next("a.cutrace\nnext: cutrace analyze a.cutrace") == "a.cutrace"
    assert without_next("next: is a word\nof a table\n") == "next: is a word\nof a table\n"
