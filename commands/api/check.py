"""`cutrace.check`: compare a trace with a budget."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ...analyzer.budget.budget import Budget, name_compiler, read_budget, read_entries
from ...analyzer.budget.budget_check import Checked, Checker
from ...analyzer.budget.budget_report import broken_text, check_document, held_text
from ...analyzer.profile import count_supposed
from ...analyzer.report import render
from ...base.dataclass import dataclass
from .subject import Subject, opened, replayed

COLUMNS = {
    **{"kernel": pl.String, "line": pl.String, "array": pl.String, "device": pl.String},
    **{"launch": pl.Int64, "expression": pl.String, "value": pl.Float64, "operator": pl.String},
    **{"limit": pl.Float64, "holds": pl.Boolean, "place": pl.String, "why": pl.String},
}


@dataclass(frozen=True)
class CheckResult:
    """Every limit on every launch; true if all of them hold."""

    checked: Checked

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
        return held_text(self.checked) if self.holds else broken_text(self.checked)

    def render(self, format: str) -> str:
        """Return the report that `cutrace check --format` prints."""
        return render(check_document(self.checked), "md" if format == "markdown" else format)

    def frame(self) -> pl.DataFrame:
        """Return one row per limit and launch; `value` is null where the divisor was zero."""
        rows = [
            (
                *(v.entry.kernel, v.entry.line, v.entry.array, v.launch.device, v.launch.number),
                *(v.limit.expression, v.value, v.limit.operator, v.limit.number, v.holds),
                *(str(v.place or ""), v.why),
            )
            for v in self.checked.verdicts
        ]
        return pl.DataFrame(rows, COLUMNS, orient="row", strict=False)

    def _repr_html_(self) -> str:
        return render(check_document(self.checked), "html")


def check(
    subject: Subject,
    budget: str | Path | Mapping[str, Mapping[str, object]],
    allow_missing: bool = False,
    **replay: Any,
) -> CheckResult:
    """Check the launches of a trace against a budget.

    `budget` is a file, or limits by kernel: `{"turn": {"shared_conflicts": 0}}`. The devices are
    those of the options, else those of the file. Raises `CutraceError` for names that do not exist;
    an exceeded limit raises nothing.
    """
    limits = _budget(budget)
    if limits.devices and not replay.get("device"):
        replay["device"] = limits.devices
    options = replayed(replay)
    trace = opened(subject, options)
    checker = Checker(trace, count_supposed(trace, options), options)
    return CheckResult(checker.judge(limits, name_compiler(trace.manifest), allow_missing))


def _budget(budget: str | Path | Mapping[str, Mapping[str, object]]) -> Budget:
    if not isinstance(budget, Mapping):
        return read_budget(Path(budget))
    tables = [{"kernel": kernel, **limits} for kernel, limits in budget.items()]
    named = Path("the budget")
    return Budget(named, read_entries(tables, named))
