"""A trace without launches: every verb says so in one line, and every format stays valid."""

import json
from collections.abc import Sequence

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.text.launch_text import NO_LAUNCHES
from cutrace.commands._main import run


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("none") / "none.cutrace"
    with cutrace.Session(path) as gpu:
        gpu.to_device(np.zeros(4, np.float32), name="a")
    return str(path)


@pytest.mark.parametrize("format", ["table", "md", "html"])
@pytest.mark.parametrize(
    "words",
    [
        ["analyze"],
        ["analyze", "-d", "all"],
        ["analyze", "--all"],
        ["analyze", "--advice"],
        *(["analyze", "--by", by] for by in ("line", "array", "instruction", "range")),
        ["advise"],
        ["occupancy"],
    ],
    ids=" ".join,
)
def test_it_is_said_once_with_what_to_look_at(
    words: Sequence[str], format: str, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, trace, "--format", format]) == 0
    printed = capsys.readouterr()
    assert printed.out.count(NO_LAUNCHES) == 1
    assert "next:" not in printed.out.lower()
    assert printed.err == ""


@pytest.mark.parametrize("words", [["--races"], ["--memory"]], ids=" ".join)
def test_a_check_says_that_there_is_nothing_to_check(
    words: Sequence[str], trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", trace, *words]) == 0
    assert capsys.readouterr().out.startswith(NO_LAUNCHES)


@pytest.mark.parametrize("by", ["launch", "line", "range"])
def test_json_and_csv_have_no_rows(by: str, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", trace, "--by", by, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["launches"] == []
    assert run(["analyze", trace, "--by", by, "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["why", "{}"], "none.cutrace"),
        (["compare", "{}"], "none"),
        (["compare", "a={}", "b={}"], "a"),
    ],
    ids=["why", "compare one", "compare two"],
)
def test_what_needs_a_launch_is_refused(
    words: Sequence[str], name: str, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([word.format(trace) for word in words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("cutrace: ")
    assert printed.err.rstrip().endswith(f"{name}: {NO_LAUNCHES}")
    assert printed.err.count("\n") == 1


def test_a_notebook_says_it(trace: str) -> None:
    assert repr(cutrace.analyze(trace)) == "<profile of 0 launches on no device>"
    assert "no launches" in cutrace.analyze(trace)._repr_html_()
