"""Advice in every format of a report: text for people; JSON, CSV and Markdown for programs."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..launch_profile import LaunchProfile
from ..sheet.view import View
from ..text.cells import csv_text
from ..text.launch_text import launch_text
from .advice import WHY, Finding, gain_text, render_advice

Found = Sequence[tuple[LaunchProfile, Sequence[Finding]]]
FORMAT = "cutrace-advice-1"
COLUMNS = (
    *("launch", "kernel", "device", "rule", "place", "what", "others", "share"),
    *("evidence", "change", "tried", "access", "gain_ns"),
)
"""`others` are further instructions of the line with the same, `share` is of the launch's traffic
of that kind, 0 to 1, `access` what `cutrace why --access` takes, and `gain_ns` the most time that
the change gains."""
TOLD = COLUMNS[3:]


def render(found: Found, format: str, view: View) -> str:
    """Render in one of FORMATS, which are those of `report/`."""
    return FORMATS[format](found, view)


def render_table(found: Found, view: View) -> str:
    """A paragraph a launch and device, an item a finding."""
    is_plain = view.typed and not view.behind and "--launch" not in view.typed
    why = view.typed.replace("cutrace analyze", "cutrace why", 1) if is_plain else WHY
    return render_advice(found, view.width, view.first, view.last, why)


def render_json(found: Found, view: View) -> str:
    """One object: the launches, each with its findings, of which there may be none."""
    launches = [
        {
            **dict(zip(COLUMNS, _launch(launch), strict=False)),
            "findings": [dict(zip(TOLD, _finding(finding), strict=True)) for finding in findings],
        }
        for launch, findings in found
    ]
    return json.dumps({"format": FORMAT, "launches": launches}, indent=1) + "\n"


def render_csv(found: Found, view: View) -> str:
    """A row a finding, with a header; a launch without findings has no row."""
    rows = ((*_launch(launch), *_finding(each)) for launch, findings in found for each in findings)
    return csv_text([COLUMNS, *rows])


def render_markdown(found: Found, view: View) -> str:
    """A heading a launch and device, an item a finding."""
    parts = [view.first] if view.first else []
    for launch, findings in found:
        parts.append(f"**{launch.device}** `{launch_text(launch.launch)}`")
        parts += ["\n".join(_items(findings, launch)) if findings else "Nothing to advise."]
    return "\n\n".join((*parts, f"Next: `{view.last}`")) + "\n"


FORMATS: Mapping[str, Callable[[Found, View], str]] = {
    "table": render_table,
    "csv": render_csv,
    "json": render_json,
    "md": render_markdown,
}


def _launch(launch: LaunchProfile) -> tuple[object, ...]:
    return launch.number, launch_text(launch.launch), launch.device


def _finding(found: Finding) -> tuple[object, ...]:
    """The values of TOLD."""
    return (
        *(found.rule, found.place, found.what, found.others, found.share),
        *(found.evidence, found.change, found.proof, found.access, found.gain),
    )


def _items(findings: Sequence[Finding], launch: LaunchProfile) -> Iterator[str]:
    for found in findings:
        place = f"`{found.place}`: " if found.place else ""
        share = "" if found.share is None else f", {100 * found.share:.0f} % of its traffic"
        yield f"- {place}{found.what} ({found.rule}{share})"
        told = (
            *(("seen", found.evidence), ("change", found.change), ("tried", found.proof)),
            ("gain", gain_text(found, launch)),
        )
        yield from (f"  - {word}: {text}" for word, text in told if text)
