"""`cutrace check`: fail where a trace is not as it should be, for people and for CI."""

from os import environ
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CheckFailed, CutraceError
from ..models.replay.options import ReplayOptions
from .options.command_line import typed
from .options.quote import quote
from .options.recording import Recording, records
from .options.replay import replays
from .running.asked import behind, trace_asked
from .running.budget import REPORTS, check_budget, update
from .running.program import TakesProgram, program_of
from .running.progress import progress

PANEL = "Compare"
CLASS = TakesProgram
EXAMPLES = (
    "cutrace check scale.cu --budget budget.toml",
    "cutrace check scale.cu --budget budget.toml --update",
    "cutrace check scale.cu --races",
    "cutrace check scale.cu --budget budget.toml --format junit",
)
FORMATS = ("text", "github", *REPORTS)


@records
@replays
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    recording: Recording,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SOURCE] [-- PROGRAM ARGUMENTS]",
            help="A trace, or a source or program to record for this once",
        ),
    ] = None,
    races: Annotated[
        bool, typer.Option("--races", help="No two warps may race for shared memory.")
    ] = False,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="No lane may access memory outside of every array."),
    ] = False,
    budget: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="No kernel, line or array may cost more than it says."),
    ] = None,
    update_: Annotated[
        bool, typer.Option("--update", help="Write the present numbers into the budget instead.")
    ] = False,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Kernels of the budget may be absent.")
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(FORMATS),
            help="A report of a budget for programs; github adds annotations, as is done by itself "
            "where $GITHUB_ACTIONS is set.",
        ),
    ] = None,
) -> str:
    """Check a kernel against budgets or for races; the exit status is 1 if a check fails."""
    if not races and not memory and budget is None:
        raise CutraceError(
            "nothing to check: --budget FILE holds kernels to what they may cost, --races looks for"
            " races in shared memory, --memory for accesses outside of every array"
        )
    if update_ and budget is None:
        raise CutraceError("--update: say which, --budget FILE")
    if format not in (None, *FORMATS):
        raise CutraceError(f"no format {format!r}; expected {' or '.join(FORMATS)}")
    if format in REPORTS and (races or memory or update_ or budget is None):
        raise CutraceError(f"--format {format}: a report of a budget, --budget FILE alone")
    at_github = environ.get("GITHUB_ACTIONS") == "true"
    format = format or ("github" if at_github else "text")
    reports = []
    program = program_of(ctx)
    with trace_asked(source, program, recording, replay) as trace:
        if races:
            with progress("looking for races"):
                reports.append(_check_races(trace))
        if memory:
            reports.append(_check_memory(trace))
        if budget is not None:
            with progress("counting"):
                reports.append(
                    update(trace, budget, replay)
                    if update_
                    else check_budget(trace, budget, replay, allow_missing, format)
                )
    if format in REPORTS:
        return reports[0]
    named = f" {quote(source)}" if source else ""
    reports.append(f"next: cutrace analyze{named}{typed(recording)}{behind(program)}")
    return "\n\n".join(reports)


def _check_memory(trace: Path) -> str:
    """`CheckFailed` with every line that accessed memory outside of every array, if any did."""
    from ..traces.outside import outside_text
    from ..traces.reader import read_trace

    opened = read_trace(trace)
    found = [
        f"launch {one.number}: {text}"
        for one in opened.launches
        if one.launch.outside
        for _, text in outside_text(one.launch, one.instructions())
    ]
    if opened.manifest.fault:
        found.append(f"the launch after these: {opened.manifest.fault}")
    if found:
        raise CheckFailed("\n".join(("accesses outside of every array", "", *found)))
    return "no lane accessed memory outside of every array"


def _check_races(trace: Path) -> str:
    """What was found; `CheckFailed` with it if there are races."""
    from ..analyzer.text.race_text import render_races
    from ..models.analyses.race import find_races
    from ..traces.reader import read_trace

    opened = read_trace(trace)
    checks = [find_races(launch) for launch in opened.launches]
    report = render_races(checks, opened.manifest.sources)
    if count := sum(len(check.races) for check in checks):
        pairs = f"{count} pair{'s' * (count > 1)} of lines"
        raise CheckFailed(f"races in shared memory between {pairs}\n\n{report}")
    return report
