"""`cutrace why`: the worst warp of a source line, drawn."""

import re
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import CutraceError
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote, typed
from .options.replay import first_line, replays, with_devices
from .options.selection import Reading, reads
from .options.tabular import ReportFormat, plain_view
from .running.resolve_trace import trace_of
from .terminal.progress import progress

PANEL = "Ask"
EXAMPLES = (
    "cutrace why scale.cu",
    "cutrace why scale.cu scale.cu:7 -d h100",
    "cutrace why program.cutrace --launch 3",
    "cutrace why scale.cutrace --figure lanes.png",
    "cutrace why scale.cutrace -d all --format json",
)


@reads
@replays
def command(
    source: Annotated[Path, typer.Argument(help="A trace, or a source to record for this once")],
    replay: ReplayOptions,
    recording: Reading,
    line: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE:LINE|ID",
            help="A source line (LINE alone of a single file), or the identifier of an access"
            " (default: the worst access).",
        ),
    ] = None,
    access: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The identifier of an access, as an earlier answer shows it."
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            *("--figure", "--svg"),
            metavar="FILE.svg|png|pdf",
            help="Write the picture to this file, too.",
        ),
    ] = None,
    format: ReportFormat = "table",
) -> str:
    """Show why a line costs what it costs: its worst warp, lane by lane."""
    from ..analyzer.report import check_format

    check_format(format)
    line, access = _read_question(line, access)
    replay_options = with_devices(replay)
    with trace_of(source, recording, replay) as path, progress("searching") as share:
        from ..analyzer.report import render
        from ..analyzer.why.explain import explain
        from ..analyzer.why.why_report import why_document
        from ..traces.reader import read_trace

        trace = recording.select(read_trace(path))
        share.expect(trace, len(replay_options.devices))
        explanations = explain(trace, line, replay_options, access)
    if figure is not None:
        from ..analyzer.text.output import write_figure
        from ..analyzer.why.svg import draw_together

        write_figure(figure, draw_together(explanations))
    again = f"cutrace analyze {quote(source)}{typed(recording)}{typed(replay)} --by line"
    return render(why_document(explanations, plain_view(first_line(replay), again)), format)


def _read_question(line: str | None, access: str | None) -> tuple[str | None, str | None]:
    """Parse the argument, which is either a line or an access."""
    if line is None or not re.fullmatch(r"\d+(\.\d+){4}", line):
        return line, access
    if access not in (None, line):
        raise CutraceError(f"two accesses: {line} and --access {access}; give one")
    return None, line
