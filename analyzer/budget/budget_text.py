"""The result of a budget check as text; budget_report.py has the formats for programs."""

from collections.abc import Iterator

from ..counting.evaluate import Value
from ..text.align import align
from ..text.launch_text import launch_text
from .budget import WORDS, Limit
from .budget_check import Checked, Verdict


def render_held(checked: Checked) -> str:
    """A row for each limit: where, what, how much there is, how much there may be."""
    rows = [("budget", "counter", "device", "launch", "value", "may be")]
    for verdict in checked.verdicts:
        launch = verdict.launch
        limit = verdict.limit
        rows.append(
            (
                verdict.entry.place,
                limit.expression,
                launch.device,
                str(launch.number),
                number_text(verdict.value),
                limit_words(limit),
            )
        )
    return "\n".join((*align(rows), *_missing(checked)))


def render_broken(checked: Checked) -> str:
    """The broken limits; before them, whether the budget is of another compiler."""
    parts = [_headline(checked)]
    if checked.other_compiler:
        parts.insert(0, other_compiler(checked))
    parts += ["\n".join(_verdict(verdict)) for verdict in checked.broken]
    return "\n\n".join((*parts, *_missing(checked)))


def _headline(checked: Checked) -> str:
    broken, every = len(checked.broken), len(checked.verdicts)
    return f"{checked.budget.path}: {broken} of {every} limits broken"


def other_compiler(checked: Checked) -> str:
    """That the numbers may differ for the compiler alone."""
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
    """`shared_conflicts of transpose on h200: 7936, budget: not more than 0`."""
    entry, limit = verdict.entry, verdict.limit
    part = f" in array {entry.array}" if entry.array else " on this line" if entry.line else ""
    return (
        f"{limit.expression} of {entry.kernel}{part} on {verdict.launch.device}:"
        f" {number_text(verdict.value)}, budget: {limit_words(limit)}"
    )


def limit_words(limit: Limit) -> str:
    """`not more than 0`."""
    return f"{WORDS[limit.operator]} {number_text(limit.number)}"


def _missing(checked: Checked) -> Iterator[str]:
    for kernel in checked.missing:
        yield f"not in the trace, left out: {kernel}"


def number_text(value: Value) -> str:
    """Integers whole, others with six significant digits.

    >>> number_text(1234567), number_text(0.9), number_text(1 / 3), number_text(None)
    ('1234567', '0.9', '0.333333', '-')
    """
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.6g}"
