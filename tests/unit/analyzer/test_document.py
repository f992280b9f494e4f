"""A document written by hand: every format writes every block of it."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from cutrace.analyzer.report import ci_formats, formats, render
from cutrace.analyzer.report.document import (
    Document,
    Excerpt,
    Figure,
    Finding,
    Heading,
    Item,
    Next,
    Note,
    Section,
    Table,
    TableSet,
    listing,
    row,
)
from cutrace.analyzer.report.view import View
from cutrace.base.errors import CutraceError

LIMITS = Table(("room",), (row("war_ps", "8|9"), row("<b>", "7", is_bad=True)), corner="limit")
SECTIONS: tuple[Section, ...] = (
    [Heading("k<<<1, 32>>>()", "h100")],
    [Note("a sentence of some words"), Note("k.cu:1  x = 1;", is_code=True)],
    [Item((("k.cu:1", "bad"),), (("seen", "much"),))],
    [Excerpt(("costs most: k.cu:1",)), listing(["as it is"])],
    [LIMITS],
    [TableSet(("gtx580", "h100"), (replace(LIMITS, columns=("a", "b"), rows=()),), ("no", ""))],
    [Figure(lambda: "<svg/>", (Note("drawn in words"),))],
    [Next("cutrace why k.cutrace")],
)
FINDING = Finding(
    "races", "races", "k.cu", "races", "a race", "a race, at length", False, "k.cu", 3
)
DOCUMENT = Document(
    View(),
    lambda: SECTIONS,
    lambda: (("launch", "kernel"), [(0, "=k"), (1, None)]),
    name="verb",
    findings=(FINDING, replace(FINDING, claim="it holds", holds=True)),
)


def test_a_terminal_gets_sections_between_blank_lines() -> None:
    assert render(DOCUMENT, "table") == (
        "h100  k<<<1, 32>>>()\n\na sentence of some words\nk.cu:1  x = 1;\n\n"
        "- k.cu:1: bad\n  seen: much\n\ncosts most: k.cu:1\nas it is\n\n"
        "limit   room\nwar_ps   8|9\n<b>        7\n\n"
        "counter  gtx580  h100\nlaunch       no  runs\n\n"
        "drawn in words\n\nnext: cutrace why k.cutrace\n"
    )


def test_markdown_marks_code_and_escapes_the_rest() -> None:
    assert render(DOCUMENT, "md") == (
        "## h100 `k<<<1, 32>>>()`\n\na sentence of some words\n\n`k.cu:1  x = 1;`  \n\n"
        "- `k.cu:1`: bad\n  - seen: much\n\n```\ncosts most: k.cu:1\n```\n\n```\nas it is\n```\n\n"
        "| limit | room |\n| --- | ---: |\n| war_ps | 8\\|9 |\n| **\\<b\\>** | 7 |\n\n"
        "|  | gtx580 | h100 |\n| --- | ---: | ---: |\n| launch | no | runs |\n\n"
        "drawn in words\n\nNext: `cutrace why k.cutrace`\n"
    )


def test_a_page_has_the_drawing_and_no_text_of_a_trace_acts() -> None:
    page = render(DOCUMENT, "html")
    assert "<p><b>h100 k&lt;&lt;&lt;1, 32&gt;&gt;&gt;()</b></p>" in page
    assert "<ul><li><code>k.cu:1</code> <b>bad</b><br>seen: much</li></ul>" in page
    assert '<th scope="row">&lt;b&gt;</th><td>7</td>' in page
    assert "<svg/>" in page
    assert "drawn in words" not in page


def test_programs_get_the_rows() -> None:
    assert render(DOCUMENT, "csv") == "launch,kernel\n0,'=k\n1,\n"
    assert json.loads(render(DOCUMENT, "json")) == {
        "format": "cutrace-verb-1",
        "rows": [{"launch": 0, "kernel": "=k"}, {"launch": 1, "kernel": None}],
    }


def test_ci_gets_the_findings_with_their_places() -> None:
    assert render(DOCUMENT, "github") == (
        "::error file=k.cu,line=3,title=cutrace races::a race, at length"
    )
    suite = ElementTree.fromstring(render(DOCUMENT, "junit"))
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["2", "1", "0"]
    (failure,) = suite.findall("testcase/failure")
    assert failure.text == "k.cu:3\na race, at length"
    assert [each["severity"] for each in json.loads(render(DOCUMENT, "gitlab"))] == ["critical"]
    (run,) = json.loads(render(DOCUMENT, "sarif"))["runs"]
    assert [each["message"]["text"] for each in run["results"]] == ["a race, at length"]


def test_an_answer_without_findings_has_no_format_of_ci() -> None:
    assert {"github", "junit"} <= {*ci_formats()}
    assert not {*ci_formats()} & {*formats()}
    with pytest.raises(CutraceError, match="no format 'junit'"):
        render(replace(DOCUMENT, findings=None), "junit")
