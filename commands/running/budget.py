"""`cutrace check --budget`: checking a trace, and updating the budget."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CheckFailed
from ...models.replay.options import ReplayOptions
from ..options.quote import quote
from ..options.replay import with_devices

if TYPE_CHECKING:
    from ...analyzer.budget.budget import Budget
    from ...analyzer.budget.budget_check import Checker


REPORTS = ("json", "junit", "sarif", "gitlab", "markdown")
"""Formats of a report that is there, and all that is printed, also where no limit is broken."""


def check_budget(
    path: Path, budget: Path, replay: ReplayOptions, allow_missing: bool, format: str
) -> str:
    """A row a limit, or a report for programs; `CheckFailed` with reasons if any is broken."""
    from ...analyzer.budget.budget import name_compiler, read_budget
    from ...analyzer.budget.budget_report import FORMATS
    from ...analyzer.budget.budget_text import render_broken, render_held

    asked = read_budget(budget)
    checker = _checker(path, asked, replay)
    compiler = name_compiler(checker.trace.manifest)
    checked = checker.judge(asked, compiler, allow_missing)
    if not checked.broken:
        return FORMATS[format](checked) if format in REPORTS else render_held(checked)
    if format in FORMATS:
        print(FORMATS[format](checked))
    raise CheckFailed(render_broken(checked))


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
