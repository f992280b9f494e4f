"""`cutrace report`: everything about some traces in one file for a browser."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ..base.progress import part
from ..models.replay.interface.options import ReplayOptions
from .compare import variants_of
from .options.command_line import quote, typed
from .options.replay import On, first_line, replays, with_devices
from .options.selection import Reading, reads
from .running.executor import replayed_on
from .running.program import TakesProgram, program_of
from .running.resolve_trace import program_suffix, resolve_trace
from .terminal.progress import (
    ADVICE,
    ADVICE_PASSES,
    PAGE,
    PAGE_PASSES,
    PAGE_ROWS,
    REPLAY,
    progress,
)

PANEL = "Ask"
CLASS = TakesProgram
EXAMPLES = (
    "cutrace report scale.cu -d h100,gtx580",
    "cutrace report before=scale.cu after=fixed.cu -o report.html",
)


@reads
@replays
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    recording: Reading,
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
    on: On = None,
) -> str:
    """Write one HTML file: what costs, where, why, on which devices; it needs no network."""
    from ..analyzer.html.page import check_output, write_page

    check_output(out)
    counting = with_devices(replay)
    program = program_of(ctx)
    subjects_named, arguments_of = variants_of(traces or [], program, 1)
    words = "".join(f" {quote(word)}" for word in traces or ())
    again = f"cutrace report{words}{typed(recording)}{typed(replay)} -o {quote(out)}"
    again += program_suffix(program)
    with (
        ExitStack() as stack,
        replayed_on(on, counting) as counting,
        progress("reporting", sizes=(REPLAY * len(counting.devices), ADVICE + PAGE)) as share,
    ):
        from ..analyzer.html.gather import Subject
        from ..analyzer.html.page import render
        from ..analyzer.profile import count_supposed
        from ..models.replay.suppose import suppose
        from ..traces.reader import read_trace

        subjects = []
        for number, (name, path) in enumerate(subjects_named.items()):
            source = resolve_trace(path, arguments_of, recording, replay)
            trace = read_trace(stack.enter_context(source))
            trace = suppose(trace, replay.pad, replay.align)
            selection = recording.select(trace)
            with part(number, 1, len(subjects_named)):
                subjects.append(Subject(name, trace, count_supposed(selection, counting)))
        share.begin()
        for subject in subjects:
            passes = len(counting.devices) * (ADVICE_PASSES + PAGE_PASSES)
            share.expect(subject.trace, passes, PAGE_ROWS)
        write_page(out, render(subjects, counting, again))
    first = first_line(replay)
    return (f"{first}\n" if first else "") + f"{out}\nnext: open {out} in a browser"
