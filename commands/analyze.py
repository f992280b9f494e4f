"""`cutrace analyze`: replay a trace on devices and show the counters."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from ..base.errors import CutraceError
from ..base.frames import require_frames
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote
from .options.complete import starting
from .options.replay import REPLAY, with_devices
from .options.selection import READING, Reading
from .options.tabular import (
    Counters,
    ReportFormat,
    counters,
    view_of,
)
from .options.verb import Line, ProgramWords, SubjectOrProgram, Typed, flag, value, verb
from .running.executor import On, with_executor
from .running.resolve_trace import open_trace
from .terminal.progress import ADVICE, ADVICE_PASSES, REPLAYING, progress

if TYPE_CHECKING:
    from os import PathLike

    from ..analyzer.report.view import View
    from ..traces.reader import Trace
    from .running.miss_ratios import MissRatios


def _check_format(name: str) -> None:
    from ..analyzer.report import check_format

    check_format(name, of_profile=True)


def _check_grouping(name: str) -> None:
    from ..analyzer.report.view import GROUPINGS, OF_CACHES, OF_LAUNCHES, check_grouping

    check_grouping(name, (*dict.fromkeys((*OF_LAUNCHES, *GROUPINGS, *OF_CACHES)),))


@verb(
    "Ask",
    "cutrace analyze scale.cu",
    "cutrace analyze scale.cutrace -d h100,rtx4090 --by line",
    "cutrace analyze app.cu -- 1024",
    "cutrace analyze program.cutrace --launch 3 --all",
    "cutrace analyze scale.cutrace --by reuse",
    "cutrace analyze scale.cutrace --advice",
    "cutrace analyze scale.cutrace -d all --counters global_transactions --format csv",
)
def analyze(
    line: Line,
    subject: SubjectOrProgram = None,
    names: Counters = None,
    by: Annotated[
        str,
        value(
            "The rows of the table: launches, NVTX ranges, lines, arrays, instructions, cache sizes"
            " (reuse) or cache sets.",
            "launch|range|line|array|instruction|reuse|set",
        ),
        Typed(check=_check_grouping),
    ] = "launch",
    sort: Annotated[
        str | None,
        value("Sort rows by this counter, largest first.", "COUNTER", complete=starting(counters)),
    ] = None,
    threshold: Annotated[
        float | None, value("Leave out rows with a smaller share of every counter.", "PERCENT")
    ] = None,
    format: Annotated[ReportFormat, Typed(check=_check_format)] = "table",
    every: Annotated[
        bool, flag("Show every counter, not only what limits the launch.", "--all")
    ] = False,
    advice: Annotated[
        bool, flag("Show advice instead of counters: what to change, and why.")
    ] = False,
    on: On = None,
    *,
    program: ProgramWords = None,
    replay: ReplayOptions = REPLAY,
    recording: Reading = READING,
) -> str:
    """Show what a kernel does to the memory of any device.

    In Python `cutrace.analyze` gives the counters that this shows, as a `Profile`.
    """
    from ..analyzer.report.view import OF_CACHES, OF_LAUNCHES

    of_caches = by in OF_CACHES
    if of_caches and (names or sort or threshold or advice or on):
        raise CutraceError(
            f"--by {by} is a table of its own; leave --counters, --sort, --threshold, --advice and"
            " --on away"
        )
    again = line.again("analyze", subject)
    grouping = "launch" if of_caches or by in OF_LAUNCHES else by
    view = view_of(line, grouping, names, again, sort, threshold)
    view = replace(view, brief=not every, of_ranges=by == "range")
    counting = with_devices(replay)
    sizes = (REPLAYING * len(counting.devices), *((ADVICE,) if advice else ()))
    trace = open_trace(subject, recording, replay, program)
    counting = with_executor(on, counting)
    with progress("replaying", sizes=sizes) as share:
        from ..analyzer.overview import is_brief, is_long
        from ..analyzer.profile import count
        from ..analyzer.profile_report import profile_document
        from ..analyzer.report import render

        selection = recording.select(trace)
        if of_caches:
            share.expect(selection, len(counting.devices))
            return caches_here(selection, counting, by, format, view)
        profile = replace(count(selection, counting), view=view)
        if advice:
            from ..analyzer.advice.advise import advise_here

            share.begin()
            share.expect(selection, len(counting.devices) * ADVICE_PASSES)
            return render(advise_here(trace, profile, counting), format)
        if is_brief(view) and format in ("table", "json") and not is_long(profile):
            from ..analyzer.advice.advise import find_fix, fix_fields

            if fix := find_fix(trace, profile, counting):
                view = replace(view, advice=fix.lines, fix=fix_fields(fix))
                if subject and fix.place and not program:
                    why = again.replace("cutrace analyze", "cutrace why", 1)
                    view = replace(view, last=f"{why} {quote(fix.place)}")
        view = replace(view, brief=view.brief and format == "table")
        return render(profile_document(replace(profile, view=view)), format)


def caches_here(trace: "Trace", options: ReplayOptions, by: str, format: str, view: "View") -> str:
    """Replay each launch of a trace, and return the report in the requested format."""
    from ..analyzer.report import render
    from ..models.replay.suppose import suppose
    from .running.miss_ratios import measure_each

    supposed = suppose(trace, options.pad, options.align)
    answer = measure_each(supposed, options, sets=by == "set")
    then = {"reuse": "set", "set": "line"}[by]
    last = "" if view.quiet else f"{view.typed} --by {then}{view.program_suffix}"
    return render(answer.document(replace(view, last=last), by), format)


def miss_ratios(
    subject: "Trace | str | PathLike[str]",
    device: str | Sequence[str] = (),
    cache: str = "",
    sizes: Sequence[int | str] = (),
    sampled: int | None = None,
    sets: bool = False,
    **replay: Any,
) -> "MissRatios":
    """Return the load misses of exact LRU caches of every size, from one replay.

    `device` and the following are options of `analyze`. `cache` is a stage of the device, default:
    each of its caches; `sizes` are in bytes, or texts like `"64K"`, default: powers of two. One
    line in `sampled` is simulated; default: all lines, unless a launch has more than 8 million warp
    accesses. `sets` also counts by set of the device's cache. The stages in front of a cache are
    the device's own. Raises `CutraceError` for an impossible cache or size.
    """
    from ..models.replay.suppose import suppose
    from .running.miss_ratios import measure_each

    require_frames()
    options = with_devices(ReplayOptions(device, **replay))
    trace = suppose(open_trace(subject, READING, options), options.pad, options.align)
    return measure_each(trace, options, cache, sizes, sampled, sets)
