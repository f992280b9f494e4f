"""`cutrace check --format`: a budget's limits as CI servers and editors read them."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace.analyzer.report import ci_formats
from cutrace.commands._main import run
from cutrace.commands.running.trace_check import REPORTS

BUDGET = """\
devices = ["h200"]
[[budget]]
kernel = "k"
global_load_transactions = 31
global_load_requests = 1
"""
CLAIM = "global_load_transactions of k on h200: 32, budget: not more than 31"
FORMATS = ("github", *REPORTS)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of one load of 32 sectors at k.cu:1, and a budget that it breaks by one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    hand_trace(tmp_path / "k.cutrace", [Access(warp(stride=128))])
    Path("broken.toml").write_text(BUDGET)
    Path("held.toml").write_text(BUDGET.replace("31", "32"))


def report(capsys: Captured, kind: str, name: str = "broken") -> str:
    """What is printed; the exit status says whether the budget holds."""
    status = run(["check", "k.cutrace", "--budget", f"{name}.toml", "--format", kind])
    said = capsys.readouterr()
    assert (status, CLAIM in said.err) == ((0, False) if name == "held" else (1, True))
    return said.out


def test_every_format_is_offered() -> None:
    assert {*FORMATS} == {*ci_formats(), "json", "markdown"}


def test_json_has_all_limits_and_their_numbers(capsys: Captured) -> None:
    told = json.loads(report(capsys, "json"))
    first, second = told["limits"]
    assert (first["expression"], first["value"], first["operator"], first["limit"]) == (
        *("global_load_transactions", 32, "<=", 31),
    )
    assert (first["holds"], first["place"], second["holds"]) == (False, "k.cu:1", True)
    assert (told["budget"], told["missing"]) == ("broken.toml", [])


def test_junit_has_a_test_case_for_each_limit(capsys: Captured) -> None:
    suite = ElementTree.fromstring(report(capsys, "junit"))
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "2", "1")
    failed, held = suite.findall("testcase")
    (failure,) = failed.findall("failure")
    assert failure.get("message") == CLAIM
    assert (failure.text or "").startswith("k.cu:1\n")
    assert held.findall("failure") == []
    assert held.get("name") == "global_load_requests on h200, launch 0"


def test_sarif_has_the_line(capsys: Captured) -> None:
    told = json.loads(report(capsys, "sarif"))
    (ran,) = told["runs"]
    (result,) = ran["results"]
    place = result["locations"][0]["physicalLocation"]
    assert told["version"] == "2.1.0"
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("k.cu", 1)
    assert result["message"]["text"].startswith(CLAIM)
    assert result["ruleId"] in [rule["id"] for rule in ran["tool"]["driver"]["rules"]]


def test_gitlab_has_one_finding_and_knows_it_again(capsys: Captured) -> None:
    (first,) = json.loads(report(capsys, "gitlab"))
    (again,) = json.loads(report(capsys, "gitlab"))
    assert first["location"] == {"path": "k.cu", "lines": {"begin": 1}}
    assert (first["description"], first["severity"]) == (CLAIM, "major")
    assert first["fingerprint"] == again["fingerprint"]


def test_markdown_has_what_is_broken_first(capsys: Captured) -> None:
    head, _, _, _, first, second = report(capsys, "markdown").splitlines()
    assert head == "**1 of 2 limits broken**"
    assert first == (
        "| **broken** | k | global_load_transactions | h200 | 0 | 32 | not more than 31 | k.cu:1 |"
    )
    assert second.startswith("| ok | k | global_load_requests | h200 | 0 | 1 |")


EMPTY: dict[str, Any] = {"gitlab": [], "sarif": []}


@pytest.mark.parametrize("kind", EMPTY)
def test_where_all_holds_the_report_is_there_and_empty(kind: str, capsys: Captured) -> None:
    told = json.loads(report(capsys, kind, "held"))
    assert (told["runs"][0]["results"] if kind == "sarif" else told) == EMPTY[kind]


def test_a_report_is_no_update_of_a_budget(capsys: Captured) -> None:
    words = ["check", "k.cutrace", "--format", "junit", "--budget", "held.toml", "--update"]
    assert run(words) == 2
    assert "--format junit: a report of checks; --update writes" in capsys.readouterr().err


BAD = "__global__ void k(float *x) {\n    x[0] = nowhere;\n}\n// cutrace: k<<<1, 32>>>(x:f32[32])\n"
UNABLE = {
    "a compile error": ("bad.cu --races", "bad.cu does not compile"),
    "a kernel that the trace lacks": ("k.cutrace --budget no_kernel.toml", "no such kernel"),
    "an unknown counter": ("k.cutrace --budget no_counter.toml", "no counter `loads`"),
    "no such trace": ("missing.cutrace --races", "missing.cutrace"),
    "an unknown option": ("k.cutrace --race", "--race"),
}
"""Command lines that cannot check anything, and what their messages contain."""


@pytest.fixture(params=UNABLE)
def unable(request: pytest.FixtureRequest) -> tuple[list[str], str]:
    """The words of a command line that cannot check anything, and a part of its message."""
    Path("bad.cu").write_text(BAD)
    Path("no_kernel.toml").write_text(BUDGET.replace('"k"', '"absent"'))
    Path("no_counter.toml").write_text(BUDGET.replace("global_load_requests", "loads"))
    line, message = UNABLE[request.param]
    return ["check", *line.split()], message


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_what_cannot_be_checked_is_an_error_in_every_format(
    unable: tuple[list[str], str], kind: str, capsys: Captured
) -> None:
    words, message = unable
    assert run([*words, "--format", kind]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert message in error_of(said.out, kind)


def error_of(text: str, kind: str) -> str:
    """Return the message of the only error of a report, and check the form around it."""
    if kind == "junit":
        suite = ElementTree.fromstring(text)
        assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
        (error,) = suite.findall("testcase/error")
        return error.text or ""
    if kind == "sarif":
        (ran,) = json.loads(text)["runs"]
        (invocation,) = ran["invocations"]
        assert (invocation["executionSuccessful"], ran["results"]) == (False, [])
        (notification,) = invocation["toolExecutionNotifications"]
        assert notification["level"] == "error"
        return str(notification["message"]["text"])
    if kind == "gitlab":
        (finding,) = json.loads(text)
        assert (finding["check_name"], finding["severity"]) == ("error", "blocker")
        assert finding["location"]["path"]
        return str(finding["description"])
    if kind == "json":
        document = json.loads(text)
        assert document["format"] == "cutrace-error-1"
        return str(document["error"]["message"])
    head = "**1 check could not run**\n" if kind == "markdown" else "::error "
    assert text.startswith(head)
    return text.replace("\\", "")


def test_a_compile_error_has_its_line_in_every_report(capsys: Captured) -> None:
    Path("bad.cu").write_text(BAD)
    lines = {}
    for kind in ("gitlab", "sarif", "github"):
        assert run(["check", "bad.cu", "--races", "--format", kind]) == 2
        lines[kind] = capsys.readouterr().out
    (finding,) = json.loads(lines["gitlab"])
    assert finding["location"] == {"path": "bad.cu", "lines": {"begin": 2}}
    (notification,) = json.loads(lines["sarif"])["runs"][0]["invocations"][0][
        "toolExecutionNotifications"
    ]
    region = notification["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] == 2
    assert lines["github"].startswith("::error file=bad.cu,line=2,title=cutrace error::")


def test_a_report_of_what_ran_says_so(capsys: Captured) -> None:
    (ran,) = json.loads(report(capsys, "sarif"))["runs"]
    assert ran["invocations"] == [{"executionSuccessful": True}]
    assert ElementTree.fromstring(report(capsys, "junit")).get("errors") == "0"


def test_a_check_without_limits_has_no_limits_in_its_reports(capsys: Captured) -> None:
    words = ["check", "k.cutrace", "--memory", "--format"]
    assert run([*words, "markdown"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == ["**0 of 1 check failed**", "", "|  | check | source | found | line |"]
    assert run([*words, "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["budget"], document["limits"]) == ("", [])
