"""Columns of text: every cell whole, two blanks between columns."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from textwrap import wrap

from ...base.sanitize import csv_cell, one_line
from ..counting.evaluate import Value
from ..counting.interval import Interval
from ..counting.vocabulary import Counter

GAP = "  "


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column; a row of one cell is a line of its own and widens none."""
    table = [row for row in rows if len(row) > 1]
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def align(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """The rows as lines: the first column to the left, the others too, or right for numbers.

    >>> align([("a", "10"), ("bcd", "5")], numbers=True)
    ['a    10', 'bcd   5']
    """
    shown = [tuple(map(one_line, row)) for row in rows]
    size = widths(shown)
    return [_line(row, size, numbers).rstrip() for row in shown]


def _line(row: Sequence[str], size: Sequence[int], numbers: bool) -> str:
    if len(row) == 1:
        return row[0]
    first, *rest = (
        cell.rjust(width) if numbers and index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, size, strict=True))
    )
    return GAP.join((first, *rest))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    r"""The rows as CSV, texts of others inert.

    >>> csv_text([("kernel", "value"), ("=f", None)])
    "kernel,value\n'=f,\n"
    """
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(csv_cell, row) for row in rows)
    return out.getvalue()


def markdown_row(*cells: str) -> str:
    r"""A row of a table.

    >>> print(markdown_row("a", "b|c"))
    | a | b\|c |
    """
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def number(value: Value, counter: Counter) -> str:
    """A count with all its digits; a ratio as a percentage; an absent value as nothing.

    Of what is neither there are seven digits. Times have their unit.

    >>> from cutrace.analyzer.counting.vocabulary import find_counters
    >>> number(0.03125, find_counters(["sector_efficiency"])[0])
    '3.125 %'
    """
    if value is None:
        return ""
    if counter.unit in ("ratio", "%"):
        percent = value * (100 if counter.unit == "ratio" else 1)
        return f"{percent:.3f}".rstrip("0").rstrip(".") + " %"
    written = f"{value:,}" if isinstance(value, int) else _seven_digits(value)
    return f"{written} {counter.unit}" if counter.unit == "ns" else written


def _seven_digits(value: float) -> str:
    """As Python writes it, or rounded where that is longer.

    >>> _seven_digits(1 / 48), _seven_digits(4.0), _seven_digits(2.5e-9), _seven_digits(1e5 / 7)
    ('0.02083333', '4', '2.5e-09', '14,285.71')
    """
    written = str(value)
    rounded = f"{value:.7g}"
    if len(rounded) >= len(written) or float(rounded) == value:
        rounded = written
    return rounded if "e" in rounded else f"{float(rounded):,}".removesuffix(".0")


def bracket(value: Value, interval: Interval | None, counter: Counter) -> str:
    """A value as it is written, with its interval in brackets if it has one."""
    if interval is None or value is None:
        return number(value, counter)
    low, high = (number(end, counter) for end in interval)
    return f"{number(value, counter)} [{low}, {high}]"


SENTENCE = 100
"""Where sentences break at the latest."""


def wrapped(text: str, width: int | None = None, indent: str = "", hang: str = "  ") -> list[str]:
    """The lines of a sentence, from `indent` on; those after the first `hang` further in.

    `width` is the terminal's, None on a pipe.
    """
    return wrap(
        text,
        min(width or SENTENCE, SENTENCE),
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
