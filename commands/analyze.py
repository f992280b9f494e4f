"""`cutrace analyze`: replay a trace on devices and show the counters."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import CutraceError
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote, typed
from .options.complete import starting
from .options.replay import On, first_line, replays, with_devices
from .options.selection import Reading, reads
from .options.tabular import Counters, ReportFormat, counters, view_here
from .running.executor import replayed_on
from .running.program import SourceOrProgram, TakesProgram, program_of
from .running.resolve_trace import program_suffix, resolve_trace
from .terminal.progress import ADVICE, ADVICE_PASSES, REPLAY, progress

if TYPE_CHECKING:
    from ..analyzer.report.view import View
    from ..traces.reader import Trace


PANEL = "Ask"
CLASS = TakesProgram
EXAMPLES = (
    "cutrace analyze scale.cu",
    "cutrace analyze scale.cutrace -d h100,rtx4090 --by line",
    "cutrace analyze app.cu -- 1024",
    "cutrace analyze program.cutrace --launch 3 --all",
    "cutrace analyze scale.cutrace --by reuse",
    "cutrace analyze scale.cutrace --advice",
    "cutrace analyze scale.cutrace -d all --counters global_transactions --format csv",
)


@reads
@replays
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    recording: Reading,
    source: SourceOrProgram = None,
    names: Counters = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="launch|line|array|instruction|reuse|set",
            help="The rows of the table: launches, lines, arrays, instructions, cache sizes (reuse)"
            " or cache sets.",
        ),
    ] = "launch",
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTER",
            autocompletion=starting(counters),
            help="Sort rows by this counter, largest first.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT", help="Leave out rows with a smaller share of every counter."
        ),
    ] = None,
    format: ReportFormat = "table",
    every: Annotated[
        bool, typer.Option("--all", help="Show every counter, not only what limits the launch.")
    ] = False,
    advice: Annotated[
        bool,
        typer.Option("--advice", help="Show advice instead of counters: what to change, and why."),
    ] = False,
    on: On = None,
) -> str:
    """Show what a kernel does to the memory of any device."""
    from ..analyzer.report import check_format
    from ..analyzer.report.view import GROUPINGS, OF_CACHES, check_grouping

    check_format(format, of_profile=True)
    check_grouping(by, (*GROUPINGS, *OF_CACHES))
    of_caches = by in OF_CACHES
    if of_caches and (names or sort or threshold or advice or on):
        raise CutraceError(
            f"--by {by} is a table of its own; leave --counters, --sort, --threshold, --advice and"
            " --on away"
        )
    program = program_of(ctx)
    named = f" {quote(source)}" if source else ""
    again = f"cutrace analyze{named}{typed(recording)}{typed(replay)}"
    whole = "launch" if of_caches else by
    view = view_here(
        whole, names, first_line(replay), again, sort, threshold, program_suffix(program)
    )
    view = replace(view, brief=not every)
    trace_options, replay = replay, with_devices(replay)
    sizes = (REPLAY * len(replay.devices), *((ADVICE,) if advice else ()))
    with (
        resolve_trace(source, program, recording, trace_options) as path,
        replayed_on(on, replay) as replay,
        progress("replaying", sizes=sizes) as share,
    ):
        from ..analyzer.overview import is_brief, is_long
        from ..analyzer.profile import count
        from ..analyzer.profile_report import profile_document
        from ..analyzer.report import render
        from ..traces.reader import read_trace

        trace = read_trace(path)
        selection = recording.select(trace)
        if of_caches:
            share.expect(selection, len(replay.devices))
            return caches_here(selection, replay, by, format, view)
        profile = replace(count(selection, replay), view=view)
        if advice:
            from ..analyzer.advice.advise import advise_here

            share.begin()
            share.expect(selection, len(replay.devices) * ADVICE_PASSES)
            return render(advise_here(trace, profile, replay), format)
        if is_brief(view) and format in ("table", "json") and not is_long(profile):
            from ..analyzer.advice.advise import find_fix, fix_fields

            if fix := find_fix(trace, profile, replay):
                view = replace(view, advice=fix.lines, fix=fix_fields(fix))
                if source and fix.place and not program:
                    why = again.replace("cutrace analyze", "cutrace why", 1)
                    view = replace(view, last=f"{why} {quote(fix.place)}")
        view = replace(view, brief=view.brief and format == "table")
        return render(profile_document(replace(profile, view=view)), format)


def caches_here(trace: "Trace", options: ReplayOptions, by: str, format: str, view: "View") -> str:
    """Replay each launch of a trace, and return the report in the requested format."""
    from ..analyzer.report import render
    from ..analyzer.reuse.reuse_report import reuse_document
    from ..models.replay.suppose import suppose
    from .api.miss_ratios import measure_each

    supposed = suppose(trace, options.pad, options.align)
    miss_ratios = measure_each(supposed, options, sets=by == "set")
    then = {"reuse": "set", "set": "line"}[by]
    last = "" if view.quiet else f"{view.typed} --by {then}{view.program_suffix}"
    return render(reuse_document(miss_ratios, by, replace(view, last=last)), format)
