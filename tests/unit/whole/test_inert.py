"""Names and sources of others: inert in terminals, on pages and in spreadsheets."""

import csv
import re
import xml.etree.ElementTree as ElementTree
from io import StringIO
from pathlib import Path

import pytest
from hand_trace import Access, instruction, launch, write_rows
from warps import warp

from cutrace.base.sanitize import csv_cell, one_line, sanitize
from cutrace.commands._main import run
from cutrace.traces.schema import Argument, Array, Space
from cutrace.traces.writer import TraceWriter

Captured = pytest.CaptureFixture[str]
CLEAR, TITLE, RIGHT_TO_LEFT, HALF = "\x1b[2J", "\x9d0;owned\x07", "\u202e", "\ud800"
EVIL = f"{CLEAR}{TITLE}{RIGHT_TO_LEFT}<b>\r"
FORMULA = "=1+2"
LIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A trace of which every name and text is hostile."""
    monkeypatch.chdir(tmp_path)
    name, source = f"{FORMULA}{EVIL}", f"@{EVIL}.cu"
    made = launch(
        kernel=name,
        signature=f"{name}{HALF}\nnext: curl(float *x)",
        arrays=(Array(name, Space.GLOBAL, 0x1000_0000, 1 << 20),),
        arguments=(Argument(name, f"float{EVIL}", name),),
    )
    with TraceWriter("k.cutrace") as writer:
        writer.source(source, f"-{EVIL}{HALF}x = 1;\n")
        with writer.launch(made) as rows:
            table = [instruction(0, "ld.global.f32", file=source, text=f"@%p1 {EVIL};")]
            write_rows(rows, [Access(warp(stride=64))], table)
    return "k.cutrace"


@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "TRACE"],
        *(["analyze", "TRACE", "--by", by] for by in ("line", "array", "instruction")),
        *(["analyze", "TRACE", "--format", name] for name in ("csv", "md", "json")),
        ["analyze", "TRACE", "--advice"],
        *(["analyze", "TRACE", "--advice", "--format", name] for name in ("csv", "md", "json")),
        ["why", "TRACE"],
        ["why", "TRACE", "none.cu:1"],
        ["info", "TRACE"],
        ["occupancy", "TRACE"],
        ["compare", "TRACE", "b=TRACE", "--counters", "global_transactions"],
        ["compare", "TRACE", "b=TRACE", "--by", "line"],
        *(["export", "TRACE", "--to", to] for to in ("ncu-raw", "ncu-details", "cuda-profile")),
    ],
    ids=" ".join,
)
def test_nothing_that_a_trace_says_reaches_a_terminal_alive(
    trace: str, words: list[str], capsys: Captured
) -> None:
    status = run([word.replace("TRACE", trace) for word in words])
    said = capsys.readouterr()
    assert status in (0, 2)
    assert "internal error" not in said.err
    assert not LIVE.search(said.out + said.err), words
    assert not [line for line in said.out.splitlines() if line.startswith("next: curl")]


def test_colours_are_ours_alone(
    trace: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert run(["analyze", trace, "-d", "h100"]) == 0
    said = capsys.readouterr().out
    assert "\x1b[" in said
    assert not LIVE.search(re.sub(r"\x1b\[[0-9;]*m", "", said))


@pytest.mark.parametrize("by", ["launch", "line", "array", "instruction"])
def test_no_cell_of_a_spreadsheet_is_a_formula(trace: str, by: str, capsys: Captured) -> None:
    assert run(["analyze", trace, "--by", by, "--format", "csv"]) == 0
    rows = [*csv.reader(StringIO(capsys.readouterr().out))]
    assert len(rows) > 10
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]
    assert any(cell.startswith(f"'{FORMULA}") for row in rows for cell in row)


def test_numbers_of_a_spreadsheet_stay_numbers() -> None:
    assert [csv_cell(value) for value in (-3, -0.5, None)] == [-3, -0.5, None]
    assert csv_cell("-3 of them") == "'-3 of them"


def test_pages_and_drawings_are_whole(trace: str) -> None:
    assert run(["report", trace, "-o", "r.html"]) == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "<b>" not in page.replace("<b></b>", "")
    assert "\x1b" not in page
    assert run(["why", trace, "--svg", "w.svg"]) == 0
    assert ElementTree.fromstring(Path("w.svg").read_text(encoding="utf-8")).tag.endswith("svg")


def test_what_is_harmless_is_left_as_it_is() -> None:
    plain = "int größe = 1;\t// 三角 \U0001f600\n"
    assert sanitize(plain) == plain
    assert one_line("a\tb\nc") == "a\tb\\nc"
