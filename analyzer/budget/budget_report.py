"""The result of a budget check as a document, for terminals and for CI."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from ..counting.evaluate import Value
from ..report import render
from ..report.document import Document, Finding, Note, Row, Section, Table, listing, row
from ..report.view import View
from ..text.launch_text import launch_text
from .budget import WORDS, Limit
from .budget_check import Change, Checked, Trial, Verdict


def check_document(checked: Checked) -> Document:
    """Return the document of all limits and other checks, broken ones first."""
    has_notice = checked.other_compiler and checked.broken
    return Document(
        View(),
        lambda: _sections(checked),
        fields=lambda: _fields(checked),
        findings=(*map(_of_limit, checked.verdicts), *map(_of_trial, checked.trials)),
        title=str(checked.budget.path),
        notices=(other_compiler(checked),) if has_notice else (),
    )


def _of_limit(verdict: Verdict) -> Finding:
    entry, limit, launch = verdict.entry, verdict.limit, verdict.launch
    words = entry.kernel, entry.line, entry.array, limit.expression, launch.device
    return Finding(
        kind="budget",
        rule=limit.expression,
        subject=entry.place,
        name=f"{limit.expression} on {launch.device}, launch {launch.number}",
        claim=claim(verdict),
        message="\n".join(part for part in (claim(verdict), verdict.why) if part),
        holds=verdict.holds,
        file=verdict.place.file if verdict.place else "",
        line=verdict.place.line if verdict.place else 0,
        mark="\0".join(words),
    )


def _of_trial(trial: Trial) -> Finding:
    return Finding(
        kind=trial.kind,
        rule=trial.kind,
        subject=trial.source,
        name=trial.kind,
        claim=_first_line(trial),
        message=trial.report,
        holds=trial.holds,
        file=trial.place.file if trial.place else trial.source,
        line=trial.place.line if trial.place else 0,
        mark="\0".join((trial.kind, trial.source, str(trial.place or ""))),
        is_error=trial.is_error,
    )


def _sections(checked: Checked) -> Iterator[Section]:
    yield [Note(", ".join(_totals(checked)) or "nothing checked", is_strong=True)]
    limits = tuple(map(_limit_row, sorted(checked.verdicts, key=lambda each: each.holds)))
    if limits:
        yield [Table(("kernel", *LIMIT_COLUMNS, "line"), limits, numbers=False)]
    trials = tuple(map(_trial_row, sorted(checked.trials, key=lambda each: each.holds)))
    if trials:
        yield [Table(("check", "source", "found", "line"), trials, numbers=False)]
    for trial in checked.errors:
        yield [listing(trial.report.splitlines())]


def _fields(checked: Checked) -> dict[str, object]:
    """Return all limits with the value of each launch; `value` is null if the divisor is 0."""
    limits = [
        {
            **{key: value for key, value in asdict(verdict.entry).items() if key != "limits"},
            "device": verdict.launch.device,
            "launch": verdict.launch.number,
            "expression": verdict.limit.expression,
            "operator": verdict.limit.operator,
            "limit": verdict.limit.number,
            "value": verdict.value,
            "holds": verdict.holds,
            "place": str(verdict.place or ""),
            "why": verdict.why,
        }
        for verdict in checked.verdicts
    ]
    document = {
        "format": "cutrace-check-1",
        "budget": str(checked.budget.path) if checked.budget.entries else "",
        "compiler": checked.compiler,
    }
    checks = [
        {
            **{"check": trial.kind, "source": trial.source, "holds": trial.holds},
            **{"place": str(trial.place or ""), "report": trial.report},
        }
        for trial in checked.trials
    ]
    lists = {"missing": checked.missing, "limits": limits, "checks": checks}
    return {**document, **lists}


LIMIT_COLUMNS = ("counter", "device", "launch", "value", "may be")


def _limit_cells(verdict: Verdict) -> tuple[object, ...]:
    """Return the values of LIMIT_COLUMNS, behind the kernel's place in the budget."""
    return (
        *(verdict.entry.place, verdict.limit.expression, verdict.launch.device),
        *(verdict.launch.number, number_text(verdict.value), limit_words(verdict.limit)),
    )


def _limit_row(verdict: Verdict) -> Row:
    state = "ok" if verdict.holds else "broken"
    return row(state, *_limit_cells(verdict), verdict.place or "", is_bad=not verdict.holds)


def _trial_row(trial: Trial) -> Row:
    state = "ok" if trial.holds else "error" if trial.is_error else "broken"
    cells = trial.kind, trial.source, _first_line(trial), trial.place or ""
    return row(state, *cells, is_bad=not trial.holds)


def _totals(checked: Checked) -> Iterator[str]:
    """Yield the numbers of broken limits, failed checks and checks that could not run."""
    if checked.verdicts:
        yield f"{len(checked.broken)} of {len(checked.verdicts)} limits broken"
    if count := len(checked.trials) - len(checked.errors):
        other = "other " * bool(checked.verdicts)
        yield f"{len(checked.failed)} of {count} {other}check{'s' * (count != 1)} failed"
    if count := len(checked.errors):
        yield f"{count} check{'s' * (count != 1)} could not run"


def _first_line(trial: Trial) -> str:
    return trial.report.strip().partition("\n")[0]


def held_text(checked: Checked) -> str:
    """Return a row per limit: place, counter, value and limit."""
    rows = tuple(row(*_limit_cells(verdict)) for verdict in checked.verdicts)
    table = Table(LIMIT_COLUMNS, rows, corner="budget", numbers=False)
    return _text([[table, *_missing(checked)]])


def broken_text(checked: Checked) -> str:
    """Return the broken limits, preceded by a warning if the budget is of another compiler."""
    broken, every = len(checked.broken), len(checked.verdicts)
    headline = f"{checked.budget.path}: {broken} of {every} limits broken"
    warnings = [other_compiler(checked)] if checked.other_compiler else []
    return _text(
        [
            *([Note(text, is_whole=True)] for text in (*warnings, headline)),
            *([listing(_verdict(verdict))] for verdict in checked.broken),
            *([note] for note in _missing(checked)),
        ]
    )


def _text(sections: Sequence[Section]) -> str:
    return render(Document(View(), lambda: sections), "table").rstrip()


def other_compiler(checked: Checked) -> str:
    """Return the warning that numbers may differ because of the compiler."""
    return (
        f"the budget's numbers are from {checked.budget.compiler}, the trace is from"
        f" {checked.compiler}: they may differ for that alone (--update writes the present ones)"
    )


def _verdict(verdict: Verdict) -> Iterator[str]:
    if verdict.place:
        yield f"{verdict.place}  {verdict.text}".rstrip()
    yield f"  {claim(verdict)}"
    yield f"  in launch {verdict.launch.number}, {launch_text(verdict.launch.launch)}"
    if verdict.why:
        yield f"  {verdict.why}"


def claim(verdict: Verdict) -> str:
    """Return `shared_conflicts of transpose on h200: 7936, budget: not more than 0`."""
    entry, limit = verdict.entry, verdict.limit
    part = f" in array {entry.array}" if entry.array else " on this line" if entry.line else ""
    return (
        f"{limit.expression} of {entry.kernel}{part} on {verdict.launch.device}:"
        f" {number_text(verdict.value)}, budget: {limit_words(limit)}"
    )


def change_text(change: Change) -> str:
    """Return `turn: global_load_transactions 4,096 -> 18,432`."""
    entry, limit = change.entry, change.limit
    device = f" on {entry.device}" if entry.device else ""
    sign = "" if limit.operator == "<=" else f"{limit.operator} "
    before, after = _grouped(limit.number), _grouped(change.number)
    return f"{entry.place}{device}: {limit.expression} {sign}{before} -> {sign}{after}"


def _grouped(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else number_text(value)


def limit_words(limit: Limit) -> str:
    """Return a limit in words: `not more than 0`."""
    return f"{WORDS[limit.operator]} {number_text(limit.number)}"


def _missing(checked: Checked) -> Iterator[Note]:
    for kernel in checked.missing:
        yield Note(f"not in the trace, left out: {kernel}", is_whole=True)


def number_text(value: Value) -> str:
    """Format integers in full, other numbers with six significant digits.

    >>> number_text(1234567), number_text(0.9), number_text(1 / 3), number_text(None)
    ('1234567', '0.9', '0.333333', '-')
    """
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.6g}"
