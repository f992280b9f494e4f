"""`cutrace advise`: what to change in a kernel, with the line, the evidence and what it gains."""

from dataclasses import replace

import typer

from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote, typed
from .options.replay import first_line, replays, with_devices
from .options.selection import Reading, reads
from .options.tabular import ReportFormat, view_here
from .running.program import SourceOrProgram, TakesProgram, program_of
from .running.resolve_trace import program_suffix, resolve_trace
from .terminal.progress import ADVICE, ADVICE_PASSES, REPLAY, progress

PANEL = "Ask"
EXAMPLES = (
    "cutrace advise scale.cu",
    "cutrace advise scale.cutrace -d h100,gtx580 --format json",
)
CLASS = TakesProgram


@reads
@replays
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    recording: Reading,
    source: SourceOrProgram = None,
    format: ReportFormat = "table",
) -> str:
    """Say what to change in a kernel, where, what shows it, and what it gains at most."""
    from ..analyzer.report import check_format, render

    check_format(format)
    program = program_of(ctx)
    named = f" {quote(source)}" if source else ""
    again = f"cutrace analyze{named}{typed(recording)}{typed(replay)}"
    view = view_here("launch", None, first_line(replay), again, suffix=program_suffix(program))
    counting = with_devices(replay)
    with (
        resolve_trace(source, program, recording, replay) as path,
        progress("replaying", sizes=(REPLAY * len(counting.devices), ADVICE)) as share,
    ):
        from ..analyzer.advice.advise import advise_here
        from ..analyzer.profile import count
        from ..traces.reader import read_trace

        trace = read_trace(path)
        selection = recording.select(trace)
        profile = replace(count(selection, counting), view=view)
        share.begin()
        share.expect(selection, len(counting.devices) * ADVICE_PASSES)
        return render(advise_here(trace, profile, counting), format)
