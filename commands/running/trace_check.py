"""`cutrace check --races` and `--memory`: data races and out-of-bounds accesses; budgets."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import CheckFailed, KernelFault, message_of, place_of
from ...models.replay.interface.options import ReplayOptions
from ..options.command_line import quote
from ..options.replay import with_devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...analyzer.budget.budget import Budget
    from ...analyzer.budget.budget_check import Checked, Checker, Trial
    from ...analyzer.why.place import Place
    from ...traces.reader import Trace


RACE_PASSES = 2.0
"""Passes over a trace's accesses that race detection makes."""


def tried(kind: str, judge: Callable[["Trace"], str], trace: "Trace", source: str) -> "Trial":
    """Check a trace for `races` or `memory`; the result has the verdict."""
    from ...analyzer.budget.budget_check import Trial

    try:
        return Trial(kind, source, judge(trace), True)
    except CheckFailed as problem:
        place = _first_place(str(problem), trace.manifest.sources)
        return Trial(kind, source, str(problem), False, place)


def faulted(fault: KernelFault, source: Path) -> "Trial":
    """Return a failed check of a source: its kernel faulted before a trace was complete."""
    from ...analyzer.budget.budget_check import Trial

    place = _first_place(str(fault), (source.as_posix(), source.name))
    return Trial("memory", str(source), str(fault), False, place)


def failed_to_run(error: BaseException, source: str) -> "Trial":
    """Return a check that could not run, with the error's message and place."""
    from ...analyzer.budget.budget_check import ERROR, Trial
    from ...analyzer.why.place import Place

    message = message_of(error)
    place = place_of(message)
    return Trial(ERROR, source, message, False, Place(*place) if place else None)


def _first_place(report: str, sources: Iterable[str]) -> "Place | None":
    """Return the first source line that a report names."""
    from ...analyzer.why.place import Place

    names = "|".join(sorted(map(re.escape, sources), key=len, reverse=True))
    match = re.search(rf"(?<![\w/.])({names}):(\d+)", report) if names else None
    return Place(match[1], int(match[2])) if match else None


def check_memory(trace: "Trace") -> str:
    """Raise `CheckFailed` with every line that accesses memory outside of all arrays."""
    from ...analyzer.text.launch_text import NO_LAUNCHES
    from ...traces.out_of_bounds import outside_text

    lines = [
        f"launch {one.number}: {text}"
        for one in trace.launches
        if one.launch.outside
        for _, text in outside_text(one.launch, one.instructions())
    ]
    if trace.manifest.fault:
        lines.append(f"the launch after these: {trace.manifest.fault}")
    if lines:
        raise CheckFailed("\n".join(("accesses outside of every array", "", *lines)))
    return "no lane accessed memory outside of every array" if trace.launches else NO_LAUNCHES


def check_races(trace: "Trace") -> str:
    """Return the report on races; raise `CheckFailed` with it if there are any."""
    from ...analyzer.budget.race_report import races_document
    from ...analyzer.report import render
    from ...models.analyses.race import find_races

    checks = [find_races(launch) for launch in trace.launches]
    report = render(races_document(checks, trace.manifest.sources), "table").rstrip()
    if count := sum(len(check.races) for check in checks):
        pairs = f"{count} pair{'s' * (count > 1)} of lines"
        raise CheckFailed(f"races in shared memory between {pairs}\n\n{report}")
    return report


PROJECT = "cutrace.toml"
"""The file of a project's checks."""
REPORTS = ("json", "junit", "sarif", "gitlab", "markdown")
"""Formats whose whole output is the report, also if no limit is exceeded."""


def check_trace(
    trace: "Trace",
    budget: "Budget | None",
    replay: ReplayOptions,
    allow_missing: bool,
    trials: "Sequence[Trial]",
) -> "Checked":
    """Hold a trace to its limits, if any; `trials` are checks without limits."""
    from ...analyzer.budget.budget import Budget, name_compiler
    from ...analyzer.budget.budget_check import Checked

    if budget is None:
        source = Path(trials[0].source) if trials else trace.path
        compiler = name_compiler(trace.manifest)
        return Checked(Budget(source, ()), compiler, (), (), tuple(trials))
    checker = _checker(trace, budget, replay)
    compiler = name_compiler(checker.trace.manifest)
    return replace(checker.judge(budget, compiler, allow_missing), trials=tuple(trials))


def report_checked(checked: "Checked", has_limits: bool, format: str) -> str:
    """Return one row per limit, or a report for programs; raise `CheckFailed` on failures."""
    from ...analyzer.budget.budget_report import broken_text, held_text

    failures = [trial.report for trial in checked.failed]
    failures += [broken_text(checked)] if checked.broken else []
    if failures:
        failed = CheckFailed("\n\n".join(failures))
        failed.report = report_text(checked, format)
        raise failed
    if format in REPORTS:
        return report_text(checked, format)
    lines = [held_text(checked)] if has_limits else []
    return "\n\n".join((*(trial.report for trial in checked.trials), *lines))


def report_text(checked: "Checked", format: str) -> str:
    """Return the report in a format other than text, which has none."""
    from ...analyzer.budget.budget_report import check_document
    from ...analyzer.report import render

    if format == "text":
        return ""
    return render(check_document(checked), "md" if format == "markdown" else format)


def report_failed(trial: "Trial", format: str) -> str:
    """Return the report of a check that ended before the replay."""
    from ...analyzer.budget.budget import Budget
    from ...analyzer.budget.budget_check import Checked

    return report_text(Checked(Budget(Path(trial.source), ()), "", (), (), (trial,)), format)


def report_error(error: BaseException, words: "Sequence[str]", format: str) -> str:
    """Return the report of a command line that could not check anything; empty for text.

    A command line that does not parse has no source: the first of `words` that looks like a file
    takes its place.
    """
    format = format_or_default(format or None)
    if format not in ("github", *REPORTS) or "--update" in words:
        return ""
    files = (word for word in words if Path(word).suffix and not word.startswith("-"))
    return report_failed(failed_to_run(error, next(files, PROJECT)), format)


def format_or_default(format: str | None) -> str:
    """Return the format of the command line, else GitHub's in its runners, else text."""
    return format or ("github" if environ.get("GITHUB_ACTIONS") == "true" else "text")


def update_budget(trace: "Trace", budget: Path, replay: ReplayOptions) -> str:
    """Write the present numbers as limits; return how many, and those that changed."""
    from ...analyzer.budget.budget import name_compiler, read_budget
    from ...analyzer.budget.budget_check import update_budget as write_budget
    from ...analyzer.budget.budget_report import change_text

    limits = read_budget(budget) if budget.exists() else None
    checker = _checker(trace, limits, replay)
    count, changes = write_budget(budget, checker, name_compiler(checker.trace.manifest))
    written = f"{quote(budget)}: {count} limit{'s' * (count != 1)} written"
    if limits:
        written += f", {len(changes)} changed"
    return "\n".join((written, *(f"  {change_text(change)}" for change in changes)))


def _checker(trace: "Trace", budget: "Budget | None", replay: ReplayOptions) -> "Checker":
    """Replay the trace on the devices of the command line, else the budget's, else the default."""
    from ...analyzer.budget.budget_check import Checker
    from ...analyzer.profile import count
    from ...models.replay.suppose import suppose

    options = with_devices(replay)
    if budget and not replay.device:
        named = (*budget.devices, *(e.device for e in budget.entries if e.device))
        options = replace(options, device=tuple(dict.fromkeys(named)) or options.device)
    profile = count(trace, options)
    return Checker(suppose(trace, options.pad, options.align), profile, options)
