"""`cutrace report`: everything about some traces in one file for a browser."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.dataclass import dataclass
from ..base.progress import part
from ..models.replay.interface.options import ReplayOptions
from .compare import variants_of
from .options.command_line import quote
from .options.replay import REPLAY, with_devices
from .options.selection import READING, Reading
from .options.verb import Line, ProgramWords, Typed, argument, shown, value, verb
from .running.executor import On, with_executor
from .running.resolve_trace import open_trace
from .terminal.progress import (
    ADVICE,
    ADVICE_PASSES,
    PAGE,
    PAGE_PASSES,
    PAGE_ROWS,
    REPLAYING,
    progress,
)

if TYPE_CHECKING:
    from os import PathLike

    from ..traces.reader import Trace

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
        from ..analyzer.html.page import check_output, write_page

        check_output(Path(path))
        write_page(Path(path), self.html)
        return Path(path)

    def _repr_html_(self) -> str:
        """Return the page in an iframe, sandboxed from the notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="cutrace report"'
            f' style="width: 100%; height: {HIGH}px; border: 1px solid #ccc"></iframe>'
        )


@verb(
    "Ask",
    "cutrace report scale.cu -d h100,gtx580",
    "cutrace report before=scale.cu after=fixed.cu -o report.html",
)
def report(
    subject: Annotated[
        "Trace | str | PathLike[str] | Mapping[str, Trace | str | PathLike[str]] | None",
        argument(
            "Traces, sources with launch comments, or programs, which get the same arguments",
            "[[NAME=]TRACE...] [-- PROGRAM ARGUMENTS]",
        ),
        Typed(list[str] | None),
    ] = None,
    *,
    on: On = None,
    command: str = "cutrace.report(...) in Python",
    program: ProgramWords = None,
    replay: ReplayOptions = REPLAY,
    recording: Reading = READING,
    **options: Any,
) -> ReportPage:
    """Write one HTML file: what costs, where, why, on which devices; it needs no network.

    In Python `subject` is a trace or a source, or several by name, side by side, and the answer is
    the page. `options` are those of `analyze`, and of a recording. Raises `CutraceError` as
    `analyze` does.
    """
    from ..analyzer.html.gather import Subject
    from ..analyzer.html.page import render
    from ..analyzer.profile import count
    from ..models.replay.suppose import suppose

    counting = with_executor(on, with_devices(replay))
    named, arguments = _named_subjects(subject, program)
    sizes = REPLAYING * len(counting.devices), ADVICE + PAGE
    with progress("reporting", sizes=sizes) as share:
        subjects = []
        for number, (name, one) in enumerate(named.items()):
            trace = open_trace(one, recording, replay, arguments)
            trace = suppose(trace, replay.pad, replay.align)
            as_is = replace(counting, pad={}, align={})
            with part(number, 1, len(named)):
                profile = count(recording.select(trace), as_is)
            subjects.append(Subject(name, trace, profile))
        share.begin()
        for each in subjects:
            passes = len(counting.devices) * (ADVICE_PASSES + PAGE_PASSES)
            share.expect(each.trace, passes, PAGE_ROWS)
        return ReportPage(render(subjects, counting, command))


def _named_subjects(
    subject: Any, program: tuple[str, ...] | None
) -> tuple[Mapping[str, Any], tuple[str, ...] | None]:
    """Return subjects by name, and the arguments of programs."""
    if subject is None or isinstance(subject, list):
        return variants_of(subject or [], program, 1)
    if isinstance(subject, Mapping):
        return subject, program
    return {Path(getattr(subject, "path", subject)).stem: subject}, program


@shown(report, is_lazy=True)
def _show(
    answer: Callable[..., ReportPage],
    line: Line,
    out: Annotated[Path, value("The file to write.", None, "--out", "-o")] = Path("report.html"),
) -> str:
    from ..analyzer.html.page import check_output

    check_output(out)
    again = f"{line.again('report', *line.values['subject'] or ())} -o {quote(out)}{line.suffix}"
    answer(command=again).save(out)
    first = f"{line.first}\n" if line.first else ""
    return f"{first}{out}\nnext: open {out} in a browser"
