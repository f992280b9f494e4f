"""Rows of cells as CSV and as Markdown."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO

from ...inert import csv_cell


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
