"""All checks of a project in one process: limits, races, memory, the baseline, and the trend.

The trend is the counters of the project's kernels at its last commits, and now.
"""

import io
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.claim import scratch_folder
from ...base.dataclass import dataclass
from ...base.errors import CheckFailed, CutraceError, KernelFault
from ...base.scope import scope
from ...models.replay.interface.options import ReplayOptions
from ..options.command_line import quote
from ..options.recording import Recording
from ..options.replay import with_devices
from ..terminal.progress import progress
from .resolve_trace import open_trace
from .trace_check import (
    REPORTS,
    check_memory,
    check_races,
    failed_to_run,
    faulted,
    report_text,
    tried,
)

if TYPE_CHECKING:
    from ...analyzer.budget.budget_check import Checked, Costs, Trial
    from ...analyzer.budget.project import Check, Project
    from ...analyzer.report.document import Section
    from ...traces.reader import Trace


@dataclass(frozen=True, slots=True)
class ProjectCheck:
    """A project, its recording and replay options, and the command line's requests."""

    project: "Project"
    recording: Recording
    replay: ReplayOptions
    allow_missing: bool = False

    def run(self, format: str) -> str:
        """Return a report of all checks; raise `CheckFailed` with all failures, if any.

        A check that cannot run does not keep the others from it: the report has its error, and
        `CutraceError` is raised if no other check failed.
        """
        from ...analyzer.budget.budget_report import broken_text, held_text

        lacking: dict[str, CutraceError] = {}
        before = self._before(lacking)
        judged: list[Checked] = []
        trials: list[Trial] = []
        parts: list[str] = []
        failures: list[str] = []
        errors: list[str] = []
        for number, check in enumerate(self.project.checks):
            with progress(f"checking {check.source}"):
                results: list[Checked] = []
                tried_here: list[Trial] = []
                try:
                    self._check(number, before.get(check.name), results, tried_here)
                    if check.name in lacking:
                        raise lacking[check.name]
                except KernelFault as fault:
                    tried_here.append(faulted(fault, Path(check.source)))
                except CutraceError as error:
                    tried_here.append(failed_to_run(error, check.name))
                    errors.append(_named(str(error), check.source))
            judged += results
            trials += tried_here
            failures += [
                f"{check.source}: {t.report}" for t in tried_here if not t.holds and not t.is_error
            ]
            reports = (trial.report for trial in tried_here if trial.holds)
            held = (held_text(result) for result in results if not result.broken)
            lines = [*held, *reports]
            if lines or not (results or tried_here):
                parts.append("\n".join((f"{check.name}:", *lines)))
        whole = replace(merged(self.project.path, judged), trials=tuple(trials))
        failures += [broken_text(checked) for checked in judged if checked.broken]
        report = report_text(whole, format)
        if failures or errors:
            message = "\n\n".join((*errors, *failures))
            failed = CheckFailed(message) if failures else CutraceError(message)
            failed.report = report or "\n\n".join(parts if errors else ())
            raise failed
        if format in REPORTS:
            return report
        checks = len(self.project.checks)
        limits = len(whole.verdicts)
        last = f"{_amount(checks, 'check')}, {_amount(limits, 'limit')}: all hold"
        return "\n\n".join((*parts, last))

    def write(self, path: Path) -> str:
        """Write the present costs of all checks as a baseline."""
        from ...analyzer.budget.budget_check import write_baseline

        baseline = self.costs()
        write_baseline(path, baseline)
        return f"{quote(path)}: what {len(baseline)} checks cost now"

    def _check(
        self, number: int, before: "Costs | None", judged: "list[Checked]", trials: "list[Trial]"
    ) -> None:
        """Run one check; append its judged limits and its trials, as far as it comes."""
        from ...analyzer.budget.budget import Budget, name_compiler, read_budget
        from ...analyzer.budget.budget_check import Checker, budget_of
        from ...analyzer.profile import count

        check, limits = self.project.checks[number], self.project.limits[number]
        folder = self.project.path.parent
        with self._trace(folder, check) as trace:
            checks = (check.races, "races", check_races), (check.memory, "memory", check_memory)
            for is_on, kind, judge in checks:
                if is_on:
                    trials.append(tried(kind, judge, trace, check.name))
            options = self._options(check)
            profile = count(trace, options)
            checker = Checker(trace, profile, options)
            compiler = name_compiler(trace.manifest)
            budgets = [Budget(self.project.path, limits)] if limits else []
            budgets += [read_budget(folder / check.budget)] if check.budget else []
            for budget in budgets:
                judged.append(checker.judge(budget, compiler, self.allow_missing))
            if before:
                named = Path(f"{check.name}, as of {self.project.baseline}")
                then = budget_of(before, profile, self.project.tolerance, named)
                judged.append(checker.judge(then, compiler))

    def _before(self, lacking: dict[str, CutraceError]) -> "Mapping[str, Costs]":
        """Return the baseline's counters, from a file or a git ref; empty without a baseline.

        Checks that cannot be counted at the ref go to `lacking`, with the reason.
        """
        from ...analyzer.budget.budget_check import read_baseline

        name = self.project.baseline
        if not name:
            return {}
        folder = self.project.path.parent
        if (folder / name).is_file():
            return read_baseline(folder / name)
        with tree_of(folder, name) as tree:
            return self.costs(tree, lacking)

    def costs(
        self, folder: Path | None = None, lacking: dict[str, CutraceError] | None = None
    ) -> "Mapping[str, Costs]":
        """Return the counters of each check with a source in `folder` (default: the project's).

        Raises `CutraceError` for a check that cannot be counted, unless `lacking` takes it.
        """
        from ...analyzer.budget.budget_check import costs
        from ...analyzer.profile import count

        folder = folder or self.project.path.parent
        by_check = {}
        for check in self.project.checks:
            if not (folder / check.source).exists():
                continue
            try:
                with progress(f"counting {check.source}"), self._trace(folder, check) as trace:
                    profile = count(trace, self._options(check))
                    by_check[check.name] = costs(profile, self.project.counters)
            except CutraceError as error:
                if lacking is None:
                    raise
                problem = str(error).replace(f"{folder}/", "")  # a temporary folder
                message = f"{check.source}, as of {self.project.baseline}: {problem}"
                lacking[check.name] = CutraceError(message, error.kind)
        return by_check

    @contextmanager
    def _trace(self, folder: Path, check: "Check") -> "Iterator[Trace]":
        """Yield the trace of a check, with paths relative to a folder."""
        recording = replace(
            self.recording,
            launch=(*check.launch,),
            define=(*self.recording.define, *check.define),
            include=(*self.recording.include, *(folder / name for name in check.include)),
        )
        program = None if check.program is None else (*check.program,)
        path = folder / check.source
        with scope():
            yield open_trace(path, recording, self.replay, program, must_run=True)

    def _options(self, check: "Check") -> ReplayOptions:
        """Return the options with the devices of the command line, else the check's, else the
        project's.
        """
        named = self.replay.devices or (*check.devices,) or self.project.devices
        return with_devices(replace(self.replay, device=named))


def _named(message: str, source: str) -> str:
    """Return a message that starts with the source that it is about."""
    return message if message.startswith(source) else f"{source}: {message}"


def _amount(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def merged(path: Path, judged: "Sequence[Checked]") -> "Checked":
    """Merge all limits into one budget, for reports in one file."""
    from ...analyzer.budget.budget import Budget
    from ...analyzer.budget.budget_check import Checked

    return Checked(
        Budget(path, tuple(entry for one in judged for entry in one.budget.entries)),
        "; ".join(dict.fromkeys(one.compiler for one in judged)),
        tuple(verdict for one in judged for verdict in one.verdicts),
        tuple(name for one in judged for name in one.missing),
    )


@contextmanager
def tree_of(folder: Path, ref: str) -> Iterator[Path]:
    """Yield a copy of a folder at a git ref; raise `CutraceError` if git does not know it."""
    command = ["git", "-C", str(folder), "archive", "--format=tar", "--end-of-options", ref]
    try:
        process = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise CutraceError(f"baseline {ref}: no such file, and git cannot be run") from error
    if process.returncode:
        why = process.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise CutraceError(f"baseline {ref}: no such file, and git says: {why}")
    with scratch_folder() as scratch:
        with tarfile.open(fileobj=io.BytesIO(process.stdout)) as packed:
            # Python knows filters from 3.11.4 on; before, the attribute has no effect
            packed.extraction_filter = getattr(tarfile, "data_filter", None)
            packed.extractall(scratch)
        yield Path(scratch)


NOW = "now"


@dataclass(frozen=True, slots=True)
class Point:
    """A commit, its date, and the costs of each check."""

    commit: str
    day: str
    costs: "Mapping[str, Costs]"


TREND_FORMATS = {"text": "table", "json": "json", "markdown": "md"}
"""Formats of a trend, and their names among those of documents."""


def show_trend(project_check: ProjectCheck, last: int, format: str) -> str:
    """Return a table of the counters that changed, or all of them as JSON; oldest commit first."""
    from ...analyzer.report import render
    from ...analyzer.report.document import Document
    from ...analyzer.report.view import View

    if format not in TREND_FORMATS:
        raise CutraceError(f"--trend --format {format}: expected {', '.join(TREND_FORMATS)}")
    points = [*_past(project_check, last), Point(NOW, "", project_check.costs())]
    commits = [{"commit": p.commit, "day": p.day, "checks": p.costs} for p in points]
    document = Document(
        View(),
        lambda: _sections(points),
        fields=lambda: {"format": "cutrace-trend-1", "commits": commits},
    )
    return render(document, TREND_FORMATS[format])


def _past(project_check: ProjectCheck, last: int) -> Iterator[Point]:
    folder = project_check.project.path.parent.resolve()
    command = ["git", "-C", str(folder), "log", f"-{last}", "--format=%h %cs", "--", "."]
    process = subprocess.run(command, capture_output=True, check=False, text=True)
    if process.returncode:
        raise CutraceError(f"--trend: git says: {process.stderr.strip().removeprefix('fatal: ')}")
    for line in reversed(process.stdout.splitlines()):
        commit, _, day = line.partition(" ")
        with tree_of(folder, commit) as tree:
            yield Point(commit, day, project_check.costs(tree))


def _sections(points: Sequence[Point]) -> "Iterator[Section]":
    """Yield per check, device and kernel a table of the counters that vary."""
    from ...analyzer.counting.vocabulary import find_counters
    from ...analyzer.report.document import Cell, Note, Row, Table

    names = tuple(point.commit for point in points)
    keys = dict.fromkeys(key for point in points for key in _kernels(point.costs))
    is_equal = True
    for key in keys:
        counters = [_kernels(point.costs).get(key, {}) for point in points]
        rows = []
        for name in dict.fromkeys(name for each in counters for name in each):
            values = [each.get(name) for each in counters]
            if len({*values}) > 1:
                (counter,) = find_counters([name])
                rows.append(Row(name, tuple(map(Cell, values)), counter))
        if rows:
            check, device, kernel = key
            is_equal = False
            head = Note(f"{check}, {kernel} on {device}", is_whole=True)
            yield [head, Table(names, tuple(rows))]
    if is_equal:
        first = f"{points[0].commit} of {points[0].day}" if len(points) > 1 else "the first commit"
        checks = len(points[-1].costs)
        yield [Note(f"no counter of {checks} checks changed since {first}", is_whole=True)]


def _kernels(costs: "Mapping[str, Costs]") -> dict[tuple[str, str, str], Mapping[str, float]]:
    """Return the counters of each check, device and kernel."""
    return {
        (check, device, kernel): counters
        for check, devices in costs.items()
        for device, kernels in devices.items()
        for kernel, counters in kernels.items()
    }
