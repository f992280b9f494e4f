"""`cutrace check`: fail where a trace is not as it should be, for people and for CI."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.dataclass import dataclass
from ..base.errors import CheckFailed, CutraceError, KernelFault
from ..models.replay.interface.options import ReplayOptions
from ..tracer.session.record_options import PTX
from .options.command_line import device_of, quote
from .options.replay import REPLAY
from .options.selection import READING, Reading
from .options.verb import Line, ProgramWords, SubjectOrProgram, Typed, flag, shown, value, verb
from .running.resolve_trace import open_trace
from .running.trace_check import (
    PROJECT,
    RACE_PASSES,
    REPORTS,
    check_memory,
    check_races,
    check_trace,
    faulted,
    format_or_default,
    report_checked,
    report_failed,
    report_text,
    tried,
    update_budget,
)
from .terminal.progress import progress

if TYPE_CHECKING:
    import polars as pl

    from ..analyzer.budget.budget import Budget
    from ..analyzer.budget.budget_check import Checked
    from ..models.replay.device.conformance import Build
    from ..traces.reader import Trace
    from .running.project import ProjectCheck

FORMATS = ("text", "github", *REPORTS)


def _check_format(name: str | None) -> None:
    if format_or_default(name) not in FORMATS:
        raise CutraceError(f"no format {name!r}; expected {' or '.join(FORMATS)}")


@dataclass(frozen=True)
class CheckResult:
    """Every limit on every launch; true if all of them hold."""

    checked: "Checked"
    trace: "Trace" = field(repr=False)
    has_limits: bool = True
    written: str = ""
    """What was written to the budget file, if it was to be updated."""

    @property
    def holds(self) -> bool:
        """True if no limit is exceeded."""
        return not self.checked.broken

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        broken, every = len(self.checked.broken), len(self.checked.verdicts)
        return f"{every} limits hold" if self.holds else f"{broken} of {every} limits broken"

    def __str__(self) -> str:
        from ..analyzer.budget.budget_report import broken_text, held_text

        return held_text(self.checked) if self.holds else broken_text(self.checked)

    def render(self, format: str) -> str:
        """Return the report that `cutrace check --format` prints."""
        return report_text(self.checked, format)

    def frame(self) -> "pl.DataFrame":
        """Return one row per limit and launch; `value` is null where the divisor was zero."""
        import polars as pl

        columns = {
            **dict.fromkeys(("kernel", "line", "array", "device"), pl.String),
            **{"launch": pl.Int64, "expression": pl.String, "value": pl.Float64},
            **{"operator": pl.String, "limit": pl.Float64, "holds": pl.Boolean},
            **{"place": pl.String, "why": pl.String},
        }
        rows = [
            (
                *(v.entry.kernel, v.entry.line, v.entry.array, v.launch.device, v.launch.number),
                *(v.limit.expression, v.value, v.limit.operator, v.limit.number, v.holds),
                *(str(v.place or ""), v.why),
            )
            for v in self.checked.verdicts
        ]
        return pl.DataFrame(rows, columns, orient="row", strict=False)

    def _repr_html_(self) -> str:
        return report_text(self.checked, "html")


@verb(
    "Compare",
    "cutrace check",
    "cutrace check --against main --format junit",
    "cutrace check --trend 10",
    "cutrace check scale.cu --budget budget.toml",
    "cutrace check scale.cu --budget budget.toml --update",
    "cutrace check scale.cu --races",
    "cutrace check --model my_model.toml",
    "cutrace check scale.cu --budget budget.toml --format junit",
)
def check(
    subject: SubjectOrProgram = None,
    budget: Annotated[
        str | Path | Mapping[str, Mapping[str, object]] | None,
        value("Fail where a kernel, line or array exceeds its limits in this file.", "FILE"),
        Typed(Path | None, place=2),
    ] = None,
    allow_missing: Annotated[
        bool, flag("Accept a trace without some kernels of the budget."), Typed(place=4)
    ] = False,
    *,
    races: Annotated[
        bool, flag("Fail on data races between warps in shared memory."), Typed(place=1)
    ] = False,
    memory: Annotated[
        bool, flag("Fail on accesses outside of every array."), Typed(place=1)
    ] = False,
    update: Annotated[
        bool, flag("Write the present values into the budget file instead."), Typed(place=3)
    ] = False,
    program: ProgramWords = None,
    replay: ReplayOptions = REPLAY,
    recording: Reading = READING,
    **options: Any,
) -> CheckResult:
    """Check a kernel against budgets or for races; the exit status is 1 if a check fails.

    Without a source, check all that cutrace.toml in this folder says.

    In Python the answer is true if every limit holds on every launch. `budget` is a file, or limits
    by kernel: `{"turn": {"shared_conflicts": 0}}`. The devices are those of the options, else those
    of the file. Raises `CutraceError` for names that do not exist; no exceeded limit raises.
    """
    name = str(getattr(subject, "path", subject) or " ".join(program or ()))
    trace = recording.select(open_trace(subject, recording, replay, program, must_run=True))
    trials = []
    if races:
        with progress("looking for races") as share:
            share.expect(trace, RACE_PASSES)
            trials.append(tried("races", check_races, trace, name))
    if memory:
        trials.append(tried("memory", check_memory, trace, name))
    limits = None if budget is None or update else _read_limits(budget)
    with progress("counting"):
        checked = check_trace(trace, limits, replay, allow_missing, trials)
        answer = CheckResult(checked, trace, limits is not None)
        if update and not checked.failed:
            answer = replace(answer, written=update_budget(trace, Path(str(budget)), replay))
    return answer


def _read_limits(budget: str | Path | Mapping[str, Mapping[str, object]]) -> "Budget":
    from ..analyzer.budget.budget import Budget, read_budget, read_entries

    if not isinstance(budget, Mapping):
        return read_budget(Path(budget))
    tables = [{"kernel": kernel, **limits} for kernel, limits in budget.items()]
    named = Path("the budget")
    return Budget(named, read_entries(tables, named))


@shown(check, is_lazy=True)
def _show(
    answer: Callable[[], CheckResult],
    line: Line,
    model: Annotated[
        str | None,
        value("Test a user-defined model: its file, or a device file that uses it.", "FILE|NAME"),
        Typed(place=3),
    ] = None,
    format: Annotated[
        str | None,
        value(
            "Format of the result; github adds annotations (default where $GITHUB_ACTIONS is "
            "set, else text).",
            "|".join(FORMATS),
        ),
        Typed(check=_check_format, place=5),
    ] = None,
    against: Annotated[
        str | None,
        value(
            "Projects: compare with a git ref or baseline file (default: `baseline` of the"
            " project file).",
            "REF|FILE",
        ),
        Typed(place=5),
    ] = None,
    baseline: Annotated[
        Path | None,
        value("Projects: write the present counters as a baseline.", "FILE", "--write-baseline"),
        Typed(place=5),
    ] = None,
    trend: Annotated[
        int | None,
        value("Projects: show counters at the last N commits, and now.", "N", min=1),
        Typed(place=5),
    ] = None,
) -> str:
    source, budget, is_update = (line.values[name] for name in ("subject", "budget", "update"))
    shown_format = format_or_default(format)
    is_asked = line.values["races"] or line.values["memory"] or budget is not None
    if model is not None:
        if source or line.program or is_asked:
            raise CutraceError("--model tries a model alone, without a trace")
        return check_model_here(model)
    if source is None and line.program is None and not is_asked:
        source = Path(PROJECT)
    if source is not None and source.name == PROJECT:
        whole = _project(source, line, against)
        if trend:
            from .running.project import show_trend

            return show_trend(whole, trend, format or "text")
        return whole.write(baseline) if baseline else whole.run(shown_format)
    if against or baseline or trend:
        raise CutraceError(f"--against, --write-baseline and --trend: of a project, in {PROJECT}")
    if not is_asked:
        raise CutraceError(
            "nothing to check: --budget FILE holds kernels to what they may cost, --races looks for"
            " races in shared memory, --memory for accesses outside of every array"
        )
    if is_update and budget is None:
        raise CutraceError("--update: say which, --budget FILE")
    if format in REPORTS and is_update:
        raise CutraceError(f"--format {format}: a report of checks; --update writes a budget")
    try:
        result = answer()
    except KernelFault as fault:
        if shown_format == "text" or is_update or source is None:
            raise
        fault.report = report_failed(faulted(fault, source), shown_format)
        raise
    reports = []
    if result.has_limits or result.checked.trials:
        reports.append(report_checked(result.checked, result.has_limits, shown_format))
    if shown_format in REPORTS:
        return reports[0]
    codes = (launch.launch.code for launch in result.trace.launches)
    device = device_of(codes) if line.recording.code == PTX else ""  # else --code names it
    last = f"next: {line.again('analyze', source, replay=False)}{device}{line.suffix}"
    return "\n\n".join((*reports, *filter(None, (result.written, last))))


def _project(path: Path, line: Line, against: str | None) -> "ProjectCheck":
    """Return all checks of a project file."""
    from ..analyzer.budget.project import read_project
    from .running.project import ProjectCheck

    if line.recording.launch or line.recording.kernels:
        raise CutraceError(
            f"--launch and --kernels: of a trace or a source; the checks of {path} have"
            " launches of their own"
        )
    if not path.is_file():
        raise CutraceError(
            f"nothing to check: name a trace or a source, or write {path}, which lists them"
        )
    project = read_project(path)
    if against:
        project = replace(project, baseline=against)
    return ProjectCheck(project, line.recording, line.replay, line.values["allow_missing"])


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

    if not path.is_file():
        raise CutraceError(f"--model {path}: there is no such file")
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
