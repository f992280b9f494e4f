"""Lay out text: aligned columns, CSV, Markdown rows and wrapped sentences.

Cells are never cut; columns are separated by two blanks.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO
from textwrap import wrap

from ...base.sanitize import csv_cell, one_line

GAP = "  "


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column; a row with a single cell does not count."""
    table = [row for row in rows if len(row) > 1]
    return [max(map(len, column)) for column in zip(*table, strict=True)]


def align(rows: Sequence[Sequence[str]], numbers: bool = False) -> list[str]:
    """Return the rows as lines: the first column left-aligned, the others too, or right for
    numbers.

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
    r"""Return the rows as CSV; foreign texts cannot become spreadsheet formulas.

    >>> csv_text([("kernel", "value"), ("=f", None)])
    "kernel,value\n'=f,\n"
    """
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(csv_cell, row) for row in rows)
    return out.getvalue()


def markdown_row(*cells: str) -> str:
    r"""Return a table row.

    >>> print(markdown_row("a", "b|c"))
    | a | b\|c |
    """
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


SENTENCE = 100
"""Column at which sentences are wrapped by default."""


def wrapped(text: str, width: int | None = None, indent: str = "", hang: str = "  ") -> list[str]:
    """Return the lines of a sentence, indented by `indent`, from the second on by `hang` more.

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


def fit(line: str, columns: int) -> list[str]:
    """Wrap a line below its last column; keep commands, tables of Markdown and indented code."""
    if len(line) <= columns or line.startswith(("next: ", "|", "    ")):
        return [line]
    gaps = [gap.end() for gap in re.finditer(r"\s{2,}", line[: columns // 2])]
    indent = " " * (gaps[-1] if gaps else 0)
    return wrap(
        line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
