"""`cutrace report`: everything about some traces in one file for a browser."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from .compare import named
from .options.quote import quote
from .options.recording import Recording, records, trace_of
from .options.replay import Replay, replays
from .running.progress import progress

PANEL = "Ask"
SUPPOSED = ("pad", "align")


@records
@replays
def command(
    replay: Replay,
    recording: Recording,
    traces: Annotated[
        list[str],
        typer.Argument(metavar="[NAME=]TRACE...", help="Traces, or sources with launch comments"),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "report.html"
    ),
) -> str:
    """Write one HTML file: what costs, where, why, on which devices; it needs no network."""
    from ..analyzer.html.output import check_output, write_page

    check_output(out)
    arguments = replay.arguments()
    wished = {name: arguments.pop(name, {}) for name in SUPPOSED}
    words = " ".join(map(quote, traces))
    typed = f"cutrace report {words}{recording.typed()}{replay.typed()} -o {quote(out)}"
    with ExitStack() as stack, progress("reporting"):
        from ..analyzer.html.gather import Subject
        from ..analyzer.html.page import render
        from ..analyzer.profile import analyze
        from ..models.replay.whatif.suppose import suppose
        from ..traces.reader import read_trace

        subjects = []
        for name, path in named(traces, 1).items():
            place = stack.enter_context(trace_of(path, recording, replay.asked))
            trace = suppose(read_trace(place), **wished)
            subjects.append(Subject(name, trace, analyze(trace, **arguments)))
        write_page(out, render(subjects, arguments, typed))
    first = replay.first_line()
    return (f"{first}\n" if first else "") + f"{out}\nnext: open {out} in a browser"
