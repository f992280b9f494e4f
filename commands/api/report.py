"""`cutrace.report`: the full HTML report, in a notebook or as a file."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from ...analyzer.html.gather import Subject as Named
from ...analyzer.html.page import check_output, render, write_page
from ...analyzer.profile import count_supposed
from ...base.dataclass import dataclass
from ...traces.reader import Trace
from .subject import Subject, opened, replayed

HIGH = 800
"""Height of the page in a notebook, in pixels."""


@dataclass(frozen=True)
class ReportPage:
    """A report as one HTML page."""

    html: str

    def __repr__(self) -> str:
        return f"<report of {len(self.html.encode()):,} bytes; save(FILE) writes it>"

    def save(self, path: str | Path) -> Path:
        """Write the page; raise `CutraceError` rather than overwrite a file that is no report."""
        check_output(Path(path))
        write_page(Path(path), self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the page in an iframe, sandboxed from the notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="cutrace report"'
            f' style="width: 100%; height: {HIGH}px; border: 1px solid #ccc"></iframe>'
        )


def report(subject: Subject | Mapping[str, Subject], **replay: Any) -> ReportPage:
    """Return the report on a trace, or on several by name, side by side.

    `replay` are options of `analyze`. Raises `CutraceError` as it does.
    """
    options = replayed(replay)
    if not isinstance(subject, Mapping):
        path = Path(subject.path if isinstance(subject, Trace) else subject)
        subject = {path.stem: subject}
    named = []
    for name, one in subject.items():
        trace = opened(one, options)
        named.append(Named(name, trace, count_supposed(trace, options)))
    return ReportPage(render(named, options, "cutrace.report(...) in Python"))
