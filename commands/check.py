"""`cutrace check`: fail where a trace is not as it should be, for people and for CI."""

from dataclasses import replace
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.errors import CutraceError, KernelFault
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import typed
from .options.quote import quote
from .options.recording import Recording, records
from .options.replay import replays
from .running.program import SourceOrProgram, TakesProgram, program_of
from .running.resolve_trace import program_suffix, resolve_trace
from .running.trace_check import (
    RACE_PASSES,
    REPORTS,
    check_budget,
    check_memory,
    check_races,
    faulted,
    show_failed,
    tried,
    update,
)
from .terminal.progress import progress

if TYPE_CHECKING:
    from .running.project import ProjectCheck

PANEL = "Compare"
CLASS = TakesProgram
EXAMPLES = (
    "cutrace check",
    "cutrace check --against main --format junit",
    "cutrace check --trend 10",
    "cutrace check scale.cu --budget budget.toml",
    "cutrace check scale.cu --budget budget.toml --update",
    "cutrace check scale.cu --races",
    "cutrace check --model my_model.toml",
    "cutrace check scale.cu --budget budget.toml --format junit",
)
NAME = "cutrace.toml"
FORMATS = ("text", "github", *REPORTS)


@records
@replays
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    recording: Recording,
    source: SourceOrProgram = None,
    races: Annotated[
        bool, typer.Option("--races", help="Fail on data races in shared memory.")
    ] = False,
    memory: Annotated[
        bool,
        typer.Option("--memory", help="Fail on accesses outside of every array."),
    ] = False,
    budget: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Fail where a kernel, line or array exceeds its limits in this file.",
        ),
    ] = None,
    update_: Annotated[
        bool,
        typer.Option("--update", help="Write the present values into the budget file instead."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="Test a user-defined model: its file, or a device file that uses it.",
        ),
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option("--allow-missing", help="Accept a trace without some kernels of the budget."),
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(FORMATS),
            help="Format of the result; github adds annotations (default where $GITHUB_ACTIONS is "
            "set, else text).",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF|FILE",
            help="Projects: compare with a git ref or baseline file (default: `baseline` of the"
            " project file).",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--write-baseline",
            metavar="FILE",
            help="Projects: write the present counters as a baseline.",
        ),
    ] = None,
    trend: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Projects: show counters at the last N commits, and now."
        ),
    ] = None,
) -> str:
    """Check a kernel against budgets or for races; the exit status is 1 if a check fails.

    Without a source, check all that cutrace.toml in this folder says.
    """
    at_github = environ.get("GITHUB_ACTIONS") == "true"
    shown = format or ("github" if at_github else "text")
    if shown not in FORMATS:
        raise CutraceError(f"no format {format!r}; expected {' or '.join(FORMATS)}")
    is_asked = races or memory or budget is not None
    program = program_of(ctx)
    if model is not None:
        if source or program or is_asked:
            raise CutraceError("--model tries a model alone, without a trace")
        from .running.model_check import check_model_here

        return check_model_here(model)
    if source is None and program is None and not is_asked:
        source = Path(NAME)
    if source is not None and source.name == NAME:
        whole = _project(source, recording, replay, allow_missing, against)
        if trend:
            from .running.trend import trend as show_trend

            return show_trend(whole, trend, format or "text")
        return whole.write(baseline) if baseline else whole.run(shown)
    if against or baseline or trend:
        raise CutraceError(f"--against, --write-baseline and --trend: of a project, in {NAME}")
    if not is_asked:
        raise CutraceError(
            "nothing to check: --budget FILE holds kernels to what they may cost, --races looks for"
            " races in shared memory, --memory for accesses outside of every array"
        )
    if update_ and budget is None:
        raise CutraceError("--update: say which, --budget FILE")
    if format in REPORTS and update_:
        raise CutraceError(f"--format {format}: a report of checks; --update writes a budget")
    from ..traces.reader import read_trace

    format = shown
    trials, reports = [], []
    name = str(source or " ".join(program or ()))
    try:
        with resolve_trace(source, program, recording, replay) as path:
            if races:
                with progress("looking for races") as share:
                    trace = share.watch_launches(read_trace(path))
                    share.expect(trace, RACE_PASSES)
                    trials.append(tried("races", check_races, trace, name))
            if memory:
                trials.append(tried("memory", check_memory, read_trace(path), name))
            with progress("counting") as share:
                replay_options = replace(replay, tell=share.update)
                limits = None if update_ else budget
                if limits or trials:
                    reports.append(
                        check_budget(path, limits, replay_options, allow_missing, format, trials)
                    )
                if budget is not None and update_:
                    reports.append(update(path, budget, replay_options))
    except KernelFault as fault:
        if format == "text" or update_ or source is None:
            raise
        show_failed(faulted(fault, source), format)
        raise
    if format in REPORTS:
        return reports[0]
    named = f" {quote(source)}" if source else ""
    reports.append(f"next: cutrace analyze{named}{typed(recording)}{program_suffix(program)}")
    return "\n\n".join(reports)


def _project(
    path: Path,
    recording: Recording,
    replay: ReplayOptions,
    allow_missing: bool,
    against: str | None,
) -> "ProjectCheck":
    """Return all checks of a project file."""
    from ..analyzer.budget.project import read_project
    from .running.project import ProjectCheck

    if not path.is_file():
        raise CutraceError(
            f"nothing to check: name a trace or a source, or write {path}, which lists them"
        )
    project = read_project(path)
    if against:
        project = replace(project, baseline=against)
    return ProjectCheck(project, recording, replay, allow_missing)
