"""`cutrace report`: everything about some traces in one file for a browser."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from .compare import variants_of
from .options.quote import quote
from .options.recording import Recording, records
from .options.replay import Replay, replays
from .running.asked import behind, launches_asked, trace_asked
from .running.program import TakesProgram, program_of
from .running.progress import progress

PANEL = "Ask"
CLASS = TakesProgram
SUPPOSED = ("pad", "align")


@records
@replays
def command(
    ctx: typer.Context,
    replay: Replay,
    recording: Recording,
    traces: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[[NAME=]TRACE...] [-- PROGRAM ARGUMENTS]",
            help="Traces, sources with launch comments, or programs, which get the same arguments",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "report.html"
    ),
) -> str:
    """Write one HTML file: what costs, where, why, on which devices; it needs no network."""
    from ..analyzer.html.output import check_output, write_page

    check_output(out)
    arguments = replay.arguments()
    wished = {name: arguments.pop(name, {}) for name in SUPPOSED}
    program = program_of(ctx)
    subjects_named, arguments_of = variants_of(traces or [], program, 1)
    words = "".join(f" {quote(word)}" for word in traces or ())
    typed = f"cutrace report{words}{recording.typed()}{replay.typed()} -o {quote(out)}"
    typed += behind(program)
    with ExitStack() as stack, progress("reporting") as share:
        from ..analyzer.html.gather import Subject
        from ..analyzer.html.page import render
        from ..analyzer.profile import analyze
        from ..models.replay.whatif.suppose import suppose
        from ..traces.reader import read_trace

        subjects = []
        for number, (name, path) in enumerate(subjects_named.items()):
            asked = trace_asked(path, arguments_of, recording, replay.asked)
            trace = suppose(read_trace(stack.enter_context(asked)), **wished)
            chosen = launches_asked(trace, recording.launches)
            tell = share.part(number, len(subjects_named))
            profile = analyze(chosen, tell=tell, **arguments)
            subjects.append(Subject(name, trace, profile))
        write_page(out, render(subjects, arguments, typed))
    first = replay.first_line()
    return (f"{first}\n" if first else "") + f"{out}\nnext: open {out} in a browser"
