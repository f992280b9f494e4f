"""`cutrace check`: fail where a trace is not as it should be, for people and for CI."""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import CheckFailed, CutraceError, KernelFault
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote, typed
from .options.replay import replays
from .options.selection import Reading, reads
from .running.program import SourceOrProgram, TakesProgram, program_of
from .running.resolve_trace import program_suffix, resolve_trace
from .running.trace_check import (
    PROJECT,
    RACE_PASSES,
    REPORTS,
    check_budget,
    check_memory,
    check_races,
    faulted,
    format_or_default,
    report_failed,
    tried,
    update,
)
from .terminal.progress import progress

if TYPE_CHECKING:
    from ..models.replay.device.conformance import Build
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
FORMATS = ("text", "github", *REPORTS)


@reads
@replays
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    recording: Reading,
    source: SourceOrProgram = None,
    races: Annotated[
        bool, typer.Option("--races", help="Fail on data races between warps in shared memory.")
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
    shown = format_or_default(format)
    if shown not in FORMATS:
        raise CutraceError(f"no format {format!r}; expected {' or '.join(FORMATS)}")
    is_asked = races or memory or budget is not None
    program = program_of(ctx)
    if model is not None:
        if source or program or is_asked:
            raise CutraceError("--model tries a model alone, without a trace")
        return check_model_here(model)
    if source is None and program is None and not is_asked:
        source = Path(PROJECT)
    if source is not None and source.name == PROJECT:
        if recording.launch or recording.kernels:
            raise CutraceError(
                f"--launch and --kernels: of a trace or a source; the checks of {source} have"
                " launches of their own"
            )
        whole = _project(source, recording, replay, allow_missing, against)
        if trend:
            from .running.project import show_trend

            return show_trend(whole, trend, format or "text")
        return whole.write(baseline) if baseline else whole.run(shown)
    if against or baseline or trend:
        raise CutraceError(f"--against, --write-baseline and --trend: of a project, in {PROJECT}")
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
        with resolve_trace(source, program, recording, replay, must_run=True) as path:
            trace = recording.select(read_trace(path))
            if races:
                with progress("looking for races") as share:
                    share.expect(trace, RACE_PASSES)
                    trials.append(tried("races", check_races, trace, name))
            if memory:
                trials.append(tried("memory", check_memory, trace, name))
            with progress("counting"):
                limits = None if update_ else budget
                if limits or trials:
                    reports.append(
                        check_budget(trace, limits, replay, allow_missing, format, trials)
                    )
                if budget is not None and update_:
                    reports.append(update(trace, budget, replay))
    except KernelFault as fault:
        if format == "text" or update_ or source is None:
            raise
        fault.report = report_failed(faulted(fault, source), format)
        raise
    if format in REPORTS:
        return reports[0]
    named = f" {quote(source)}" if source else ""
    reports.append(f"next: cutrace analyze{named}{typed(recording)}{program_suffix(program)}")
    return "\n\n".join(reports)


def _project(
    path: Path,
    recording: Reading,
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


def check_model_here(name: str) -> str:
    """Test each model; raise `CheckFailed` with its violations of the contract.

    `name` is a device file with custom stages, a file with a model, `FILE.py:CLASS` for one of
    several, or any other model name that a device file accepts.
    """
    from ..models.replay.device.conformance import ROWS, SIZES, check_model

    faults, names = [], []
    for build, called, spaces, lanes in _models(name):
        faults += check_model(build, called, spaces, lanes)
        names.append(called)
    if faults:
        raise CheckFailed("\n".join(faults))
    sizes = ", ".join(map(str, SIZES))
    device = quote(name) if name.endswith(".toml") else "DEVICE.toml"
    lines = (
        f"model {called} keeps the contract: {ROWS} rows, also in batches of {sizes}"
        for called in names
    )
    return "\n".join((*lines, f"next: cutrace analyze TRACE -d {device}"))


def _models(name: str) -> Iterator[tuple["Build", str, tuple[str, ...], int]]:
    """Yield each model: its constructor, name, state spaces, and number of lanes."""
    if name.endswith(".toml"):
        yield from _of_device(name)
        return
    from ..models.replay.device.wiring import find_model

    reference = f"{name}:{_only_class(Path(name))}" if name.endswith(".py") else name
    build: Any = find_model(reference, "--model")
    needed = [
        key
        for key, parameter in inspect.signature(build).parameters.items()
        if parameter.default is parameter.empty
    ]
    if needed:
        raise CutraceError(
            f"--model {name}: it has keys without a default, {', '.join(needed)}: name a device's"
            " file, whose stage says them"
        )
    yield build, reference, ("global",), 32


def _of_device(name: str) -> Iterator[tuple["Build", str, tuple[str, ...], int]]:
    from ..models.replay.device.device import load_device
    from ..models.replay.device.wiring import is_foreign, wire

    device = load_device(name)
    own = [w for w in wire(device.stages, device.file) if is_foreign(w.stage.model)]
    if not own:
        raise CutraceError(
            f"--model {name}: all its stages have models of cutrace's, which are tested"
        )
    for each in own:
        lanes = 1 if each.after else 32
        build = partial(_unguarded, each.build)
        yield build, f"{each.stage.name} of {name}", each.spaces, lanes


def _unguarded(build: Any) -> Any:
    return build().model


def _only_class(path: Path) -> str:
    """Return the name of the only class in a file that has a `step`."""
    from ..models.replay.device.wiring import import_file

    try:
        module = import_file(path)
    except Exception as error:
        raise CutraceError(f"--model {path}: {type(error).__name__}: {error}") from error
    classes = inspect.getmembers(module, inspect.isclass)
    own = [n for n, c in classes if c.__module__ == module.__name__ and hasattr(c, "step")]
    if len(own) != 1:
        raise CutraceError(
            f"--model {path}: {len(own)} classes have a `step`"
            f"{': ' * bool(own)}{', '.join(own)}; expected one, or {path}:CLASS"
        )
    return own[0]
