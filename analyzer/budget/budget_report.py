"""Render the result of a budget check for terminals, CI servers and code-scanning tools.

Sources: the schema of SARIF 2.1.0 (OASIS); GitLab's documentation of Code Quality reports; the
JUnit schema of Jenkins' xUnit plugin; GitHub's documentation of workflow commands.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from hashlib import blake2b
from typing import Any
from xml.etree import ElementTree

from ..counting.evaluate import Value
from ..text.launch_text import launch_text
from ..text.layout import align
from ..why.place import Place
from .budget import WORDS, Limit
from .budget_check import Change, Checked, Trial, Verdict

BROKEN = "**broken**"
ERROR_CELL = "**error**"
_MARKUP = re.compile(r"[|<>&`*\[\]\\]|(?<!\w)_|_(?!\w)")
SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


def render_github(checked: Checked) -> str:
    """Return GitHub workflow commands: an error annotation at the line of each broken limit."""
    lines = []
    if checked.other_compiler and checked.broken:
        lines.append(f"::notice title=cutrace budget::{_escape(other_compiler(checked))}")
    annotations = [("budget", verdict.place, _verdict_text(verdict)) for verdict in checked.broken]
    unmet = (*checked.failed, *checked.errors)
    annotations += [(trial.kind, trial.place, trial.report) for trial in unmet]
    lines += [
        f"::error {_at(at)}title=cutrace {kind}::{_escape(message)}"
        for kind, at, message in annotations
    ]
    return "\n".join(lines)


def render_json(checked: Checked) -> str:
    """Return all limits with the value of each launch; `value` is null if the divisor is 0."""
    limits = [
        {
            **{key: value for key, value in asdict(verdict.entry).items() if key != "limits"},
            "device": verdict.launch.device,
            "launch": verdict.launch.number,
            "expression": verdict.limit.expression,
            "operator": verdict.limit.operator,
            "limit": verdict.limit.number,
            "value": verdict.value,
            "holds": verdict.holds,
            "place": str(verdict.place or ""),
            "why": verdict.why,
        }
        for verdict in checked.verdicts
    ]
    document = {
        "format": "cutrace-check-1",
        "budget": str(checked.budget.path) if checked.budget.entries else "",
        "compiler": checked.compiler,
    }
    checks = [
        {
            **{"check": trial.kind, "source": trial.source, "holds": trial.holds},
            **{"place": str(trial.place or ""), "report": trial.report},
        }
        for trial in checked.trials
    ]
    lists = {"missing": checked.missing, "limits": limits, "checks": checks}
    return json.dumps({**document, **lists}, indent=1)


def render_junit(checked: Checked) -> str:
    """Return JUnit XML: a test case per limit and launch, as CI servers list them."""
    tests, failures = _counted(checked)
    words = {"name": _xml(f"cutrace {checked.budget.path}"), "tests": str(tests)}
    words |= {"failures": str(failures), "errors": str(len(checked.errors))}
    suite = ElementTree.Element("testsuite", words)
    for verdict in checked.verdicts:
        launch = verdict.launch
        name = f"{verdict.limit.expression} on {launch.device}, launch {launch.number}"
        names = {"classname": verdict.entry.place, "name": name}
        case = ElementTree.SubElement(suite, "testcase", {k: _xml(v) for k, v in names.items()})
        if not verdict.holds:
            failure = ElementTree.SubElement(case, "failure", {"message": _xml(claim(verdict))})
            failure.text = _xml(
                "\n".join((str(verdict.place or ""), _verdict_text(verdict))).strip()
            )
    for trial in checked.trials:
        names = {"classname": _xml(trial.source), "name": trial.kind}
        case = ElementTree.SubElement(suite, "testcase", names)
        if not trial.holds:
            message = {"message": _xml(_first_line(trial))}
            tag = "error" if trial.is_error else "failure"
            ElementTree.SubElement(case, tag, message).text = _xml(trial.report)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True)


def render_sarif(checked: Checked) -> str:
    """Return SARIF results for GitHub code scanning and editors."""
    broken = (verdict.limit.expression for verdict in checked.broken)
    failed = (trial.kind for trial in checked.failed)
    rules = [{"id": name} for name in dict.fromkeys((*broken, *failed))]
    results = [
        {
            "ruleId": verdict.limit.expression,
            "level": "error",
            "message": {"text": _verdict_text(verdict)},
            "locations": [*_sarif_place(verdict.place)],
        }
        for verdict in checked.broken
    ]
    results += [
        {
            "ruleId": trial.kind,
            "level": "error",
            "message": {"text": trial.report},
            "locations": [*_sarif_place(trial.place)],
        }
        for trial in checked.failed
    ]
    invocation: dict[str, Any] = {"executionSuccessful": not checked.errors}
    if checked.errors:
        invocation["toolExecutionNotifications"] = [
            {
                "level": "error",
                "message": {"text": trial.report},
                "locations": [*_sarif_place(trial.place)],
            }
            for trial in checked.errors
        ]
    run = {
        "tool": {"driver": {"name": "cutrace", "rules": rules}},
        "invocations": [invocation],
        "results": results,
    }
    return json.dumps({"$schema": SARIF, "version": "2.1.0", "runs": [run]}, indent=1)


def render_gitlab(checked: Checked) -> str:
    """Return a GitLab Code Quality report: a limit broken by several launches is one finding."""
    findings: dict[str, dict[str, Any]] = {}
    for verdict in checked.broken:
        entry, limit, place = verdict.entry, verdict.limit, verdict.place
        words = (entry.kernel, entry.line, entry.array, limit.expression, verdict.launch.device)
        fingerprint = blake2b("\0".join(words).encode(), digest_size=16).hexdigest()
        finding = {
            "description": claim(verdict),
            "check_name": verdict.limit.expression,
            "fingerprint": fingerprint,
            "severity": "major",
            "location": {
                "path": place.file if place else str(checked.budget.path),
                "lines": {"begin": place.line if place else 1},
            },
        }
        findings.setdefault(fingerprint, finding)
    for trial in (*checked.failed, *checked.errors):
        mark = "\0".join((trial.kind, trial.source, str(trial.place or "")))
        fingerprint = blake2b(mark.encode(), digest_size=16).hexdigest()
        findings[fingerprint] = {
            "description": _first_line(trial),
            "check_name": trial.kind,
            "fingerprint": fingerprint,
            "severity": "blocker" if trial.is_error else "critical",
            "location": {
                "path": trial.place.file if trial.place else trial.source,
                "lines": {"begin": trial.place.line if trial.place else 1},
            },
        }
    return json.dumps([*findings.values()], indent=1)


def render_markdown(checked: Checked) -> str:
    """Return a Markdown table for a comment or a job summary, broken limits first."""
    lines = [f"**{', '.join(_totals(checked)) or 'nothing checked'}**"]
    if checked.verdicts:
        columns = "| | kernel | counter | device | launch | value | may be | line |"
        lines += ["", columns, "|" + "---|" * 8]
    for verdict in sorted(checked.verdicts, key=lambda each: each.holds):
        launch = verdict.launch
        cells = (
            *("ok" if verdict.holds else BROKEN, verdict.entry.place),
            *(verdict.limit.expression, launch.device, str(launch.number)),
            *(number_text(verdict.value), limit_words(verdict.limit), str(verdict.place or "")),
        )
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    if checked.trials:
        lines += ["", "| | check | source | found | line |", "|" + "---|" * 5]
    for trial in sorted(checked.trials, key=lambda each: each.holds):
        state = "ok" if trial.holds else ERROR_CELL if trial.is_error else BROKEN
        row = (state, trial.kind, trial.source, _first_line(trial), str(trial.place or ""))
        lines.append(f"| {' | '.join(map(_cell, row))} |")
    for trial in checked.errors:
        lines += ["", *(f"    {line}" for line in trial.report.splitlines())]
    return "\n".join(lines)


def _totals(checked: Checked) -> Iterator[str]:
    """Yield the numbers of broken limits, failed checks and checks that could not run."""
    if checked.verdicts:
        yield f"{len(checked.broken)} of {len(checked.verdicts)} limits broken"
    if count := len(checked.trials) - len(checked.errors):
        other = "other " * bool(checked.verdicts)
        yield f"{len(checked.failed)} of {count} {other}check{'s' * (count != 1)} failed"
    if count := len(checked.errors):
        yield f"{count} check{'s' * (count != 1)} could not run"


FORMATS: Mapping[str, Callable[[Checked], str]] = {
    "github": render_github,
    "json": render_json,
    "junit": render_junit,
    "sarif": render_sarif,
    "gitlab": render_gitlab,
    "markdown": render_markdown,
}
"""Values of `--format` other than `text`."""


def _verdict_text(verdict: Verdict) -> str:
    return "\n".join(part for part in (claim(verdict), verdict.why) if part)


def _counted(checked: Checked) -> tuple[int, int]:
    """Return the number of limits and checks, and the number of failed ones."""
    tests = len(checked.verdicts) + len(checked.trials)
    return tests, len(checked.broken) + len(checked.failed)


def _first_line(trial: Trial) -> str:
    return trial.report.strip().partition("\n")[0]


def _at(place: Place | None) -> str:
    """Return the file and line properties of a workflow command."""
    return f"file={_escape(place.file, True)},line={place.line}," if place else ""


def _sarif_place(place: Place | None) -> Iterator[dict[str, Any]]:
    if place:
        where = {"artifactLocation": {"uri": place.file}, "region": {"startLine": place.line}}
        yield {"physicalLocation": where}


def _cell(text: str) -> str:
    r"""Return a Markdown table cell with the markup characters of a kernel name escaped.

    >>> print(_cell("a|b<i>"), _cell("_Z1k_l"))
    a\|b\<i\> \_Z1k_l
    """
    if text in (BROKEN, ERROR_CELL):
        return text
    return _MARKUP.sub(r"\\\g<0>", text.replace("\n", " "))


def _xml(text: str) -> str:
    """Return text without the characters that XML forbids (XML 1.0, 2.2)."""
    return "".join(c if c in "\t\n" or " " <= c <= "\ud7ff" or c >= "\ue000" else "?" for c in text)


def _escape(text: str, is_property: bool = False) -> str:
    """Escape text for GitHub's runner: in a property, `:` and `,` are escaped as well.

    >>> _escape("100 %\\nof a,b"), _escape("C:a,b", True)
    ('100 %25%0Aof a,b', 'C%3Aa%2Cb')
    """
    for raw, escaped in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(raw, escaped)
    if is_property:
        text = text.replace(":", "%3A").replace(",", "%2C")
    return text


def render_held(checked: Checked) -> str:
    """Return a row per limit: place, counter, value and limit."""
    rows = [("budget", "counter", "device", "launch", "value", "may be")]
    for verdict in checked.verdicts:
        launch = verdict.launch
        limit = verdict.limit
        rows.append(
            (
                verdict.entry.place,
                limit.expression,
                launch.device,
                str(launch.number),
                number_text(verdict.value),
                limit_words(limit),
            )
        )
    return "\n".join((*align(rows), *_missing(checked)))


def render_broken(checked: Checked) -> str:
    """Return the broken limits, preceded by a warning if the budget is of another compiler."""
    parts = [_headline(checked)]
    if checked.other_compiler:
        parts.insert(0, other_compiler(checked))
    parts += ["\n".join(_verdict(verdict)) for verdict in checked.broken]
    return "\n\n".join((*parts, *_missing(checked)))


def _headline(checked: Checked) -> str:
    broken, every = len(checked.broken), len(checked.verdicts)
    return f"{checked.budget.path}: {broken} of {every} limits broken"


def other_compiler(checked: Checked) -> str:
    """Return the warning that numbers may differ because of the compiler."""
    return (
        f"the budget's numbers are from {checked.budget.compiler}, the trace is from"
        f" {checked.compiler}: they may differ for that alone (--update writes the present ones)"
    )


def _verdict(verdict: Verdict) -> Iterator[str]:
    if verdict.place:
        yield f"{verdict.place}  {verdict.text}".rstrip()
    yield f"  {claim(verdict)}"
    yield f"  in launch {verdict.launch.number}, {launch_text(verdict.launch.launch)}"
    if verdict.why:
        yield f"  {verdict.why}"


def claim(verdict: Verdict) -> str:
    """Return `shared_conflicts of transpose on h200: 7936, budget: not more than 0`."""
    entry, limit = verdict.entry, verdict.limit
    part = f" in array {entry.array}" if entry.array else " on this line" if entry.line else ""
    return (
        f"{limit.expression} of {entry.kernel}{part} on {verdict.launch.device}:"
        f" {number_text(verdict.value)}, budget: {limit_words(limit)}"
    )


def change_text(change: Change) -> str:
    """Return `turn: global_load_transactions 4,096 -> 18,432`."""
    entry, limit = change.entry, change.limit
    device = f" on {entry.device}" if entry.device else ""
    sign = "" if limit.operator == "<=" else f"{limit.operator} "
    before, after = _grouped(limit.number), _grouped(change.number)
    return f"{entry.place}{device}: {limit.expression} {sign}{before} -> {sign}{after}"


def _grouped(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else number_text(value)


def limit_words(limit: Limit) -> str:
    """Return a limit in words: `not more than 0`."""
    return f"{WORDS[limit.operator]} {number_text(limit.number)}"


def _missing(checked: Checked) -> Iterator[str]:
    for kernel in checked.missing:
        yield f"not in the trace, left out: {kernel}"


def number_text(value: Value) -> str:
    """Format integers in full, other numbers with six significant digits.

    >>> number_text(1234567), number_text(0.9), number_text(1 / 3), number_text(None)
    ('1234567', '0.9', '0.333333', '-')
    """
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.6g}"
