"""`cutrace check --budget`: checking a trace, and updating the budget."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CheckFailed
from ...models.replay.options import ReplayOptions
from ..options.quote import quote
from ..options.replay import with_devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...analyzer.budget.budget import Budget
    from ...analyzer.budget.budget_check import Checker, Trial


REPORTS = ("json", "junit", "sarif", "gitlab", "markdown")
"""Formats of a report that is there, and all that is printed, also where no limit is broken."""


def check_budget(
    path: Path,
    budget: Path | None,
    replay: ReplayOptions,
    allow_missing: bool,
    format: str,
    trials: "Sequence[Trial]",
) -> str:
    """A row a limit, or a report for programs; `CheckFailed` with reasons if any is broken.

    `trials` are checks without limits that the report holds, too.
    """
    from ...analyzer.budget.budget import Budget, name_compiler, read_budget
    from ...analyzer.budget.budget_check import Checked
    from ...analyzer.budget.budget_report import FORMATS
    from ...analyzer.budget.budget_text import render_broken, render_held
    from ...traces.reader import read_trace

    if budget is None:
        compiler = name_compiler(read_trace(path).manifest)
        checked = Checked(Budget(Path(trials[0].source), ()), compiler, (), (), tuple(trials))
    else:
        asked = read_budget(budget)
        checker = _checker(path, asked, replay)
        compiler = name_compiler(checker.trace.manifest)
        judged = checker.judge(asked, compiler, allow_missing)
        checked = replace(judged, trials=tuple(trials))
    failures = [trial.report for trial in checked.failed]
    failures += [render_broken(checked)] if checked.broken else []
    if failures:
        if format in FORMATS:
            print(FORMATS[format](checked))
        raise CheckFailed("\n\n".join(failures))
    if format in REPORTS:
        return FORMATS[format](checked)
    held = [render_held(checked)] if budget else []
    return "\n\n".join((*(trial.report for trial in trials), *held))


def show_failed(trial: "Trial", format: str) -> None:
    """Print the report of a check that ended before anything was counted."""
    from ...analyzer.budget.budget import Budget
    from ...analyzer.budget.budget_check import Checked
    from ...analyzer.budget.budget_report import FORMATS

    print(FORMATS[format](Checked(Budget(Path(trial.source), ()), "", (), (), (trial,))))


def update(path: Path, budget: Path, replay: ReplayOptions) -> str:
    """Write the present numbers; say how many."""
    from ...analyzer.budget.budget import name_compiler, read_budget
    from ...analyzer.budget.budget_update import update_budget

    known = read_budget(budget) if budget.exists() else None
    checker = _checker(path, known, replay)
    count = update_budget(budget, checker, name_compiler(checker.trace.manifest))
    return f"{quote(budget)}: {count} limit{'s' * (count != 1)} written"


def _checker(path: Path, budget: "Budget | None", replay: ReplayOptions) -> "Checker":
    """The trace, counted on the devices of the command line, else the budget's, else as ever."""
    from ...analyzer.budget.budget_check import Checker
    from ...analyzer.profile import count
    from ...models.replay.whatif.suppose import suppose
    from ...traces.reader import read_trace

    options = with_devices(replay)
    if budget and not replay.device:
        named = (*budget.devices, *(e.device for e in budget.entries if e.device))
        options = replace(options, device=tuple(dict.fromkeys(named)) or options.device)
    profile = count(path, options)
    return Checker(suppose(read_trace(path), options.pad, options.align), profile, options)
