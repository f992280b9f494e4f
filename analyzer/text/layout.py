"""Columns of text: every cell whole, two blanks between columns."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from textwrap import wrap

from ...base.sanitize import csv_cell, one_line

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
    first, *tail = (
        cell.rjust(width) if numbers and index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, size, strict=True))
    )
    return GAP.join((first, *tail))


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
