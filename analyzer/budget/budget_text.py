"""What is said of a trace that was held to a budget: for people, and as GitHub's annotations."""

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
                _number(verdict.value),
                _limit(limit),
            )
        )
    return "\n".join((*align(rows), *_missing(checked)))


def render_broken(checked: Checked) -> str:
    """What is broken, most telling first: the compiler if it is another, then limit by limit."""
    parts = [_headline(checked)]
    if checked.other_compiler:
        parts.insert(0, _other_compiler(checked))
    parts += ["\n".join(_verdict(verdict)) for verdict in checked.broken]
    return "\n\n".join((*parts, *_missing(checked)))


def render_github(checked: Checked) -> str:
    """Workflow commands: an error at the line of each limit that is broken."""
    lines = []
    if checked.other_compiler and checked.broken:
        lines.append(f"::notice title=cutrace budget::{_escape(_other_compiler(checked))}")
    for verdict in checked.broken:
        file, _, line = verdict.place.rpartition(":")
        at = f"file={_escape(file, True)},line={line}," if file else ""
        told = "\n".join(part for part in (_claim(verdict), verdict.why) if part)
        lines.append(f"::error {at}title=cutrace budget::{_escape(told)}")
    return "\n".join(lines)


def _headline(checked: Checked) -> str:
    broken, every = len(checked.broken), len(checked.verdicts)
    return f"{checked.budget.path}: {broken} of {every} limits broken"


def _other_compiler(checked: Checked) -> str:
    return (
        f"the budget's numbers are from {checked.budget.compiler}, the trace is from"
        f" {checked.compiler}: they may differ for that alone (--update writes the present ones)"
    )


def _verdict(verdict: Verdict) -> Iterator[str]:
    if verdict.place:
        yield f"{verdict.place}  {verdict.text}".rstrip()
    yield f"  {_claim(verdict)}"
    yield f"  in launch {verdict.launch.number}, {launch_text(verdict.launch.launch)}"
    if verdict.why:
        yield f"  {verdict.why}"


def _claim(verdict: Verdict) -> str:
    """`shared_conflicts of transpose on h200: 7936, budget: not more than 0`."""
    entry, limit = verdict.entry, verdict.limit
    part = f" in array {entry.array}" if entry.array else " on this line" if entry.line else ""
    return (
        f"{limit.expression} of {entry.kernel}{part} on {verdict.launch.device}:"
        f" {_number(verdict.value)}, budget: {_limit(limit)}"
    )


def _limit(limit: Limit) -> str:
    return f"{WORDS[limit.operator]} {_number(limit.number)}"


def _missing(checked: Checked) -> Iterator[str]:
    for kernel in checked.missing:
        yield f"not in the trace, left out: {kernel}"


def _number(value: Value) -> str:
    """Integers whole, others with six significant digits.

    >>> _number(1234567), _number(0.9), _number(1 / 3), _number(None)
    ('1234567', '0.9', '0.333333', '-')
    """
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _escape(text: str, is_property: bool = False) -> str:
    """Escape as GitHub's runner reads it: a property has no `:` and `,` either.

    >>> _escape("100 %\\nof a,b"), _escape("C:a,b", True)
    ('100 %25%0Aof a,b', 'C%3Aa%2Cb')
    """
    for raw, escaped in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(raw, escaped)
    if is_property:
        text = text.replace(":", "%3A").replace(",", "%2C")
    return text
