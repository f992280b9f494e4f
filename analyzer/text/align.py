"""Columns of text: every cell whole, two blanks between columns."""

from collections.abc import Sequence

from ...inert import one_line

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
