"""HTML tables for notebooks: no style of their own, all text escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

MOST = 50
"""Most rows in a notebook; a line below counts the others."""


def render_table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], total: int
) -> str:
    """Return the first MOST of `total` rows as HTML; the first cell of each is its heading.

    >>> render_table("a", ["x"], [["<"]], 1).partition("<tbody>")[2]
    '<tr><th scope="row">&lt;</th></tr></tbody></table>'
    """
    shown = [_row(row) for row in islice(rows, MOST)]
    heads = "".join(f'<th scope="col">{escape(word)}</th>' for word in head)
    return (
        f'<table><caption style="text-align: left">{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(shown)}</tbody></table>"
        + more(total - len(shown))
    )


def more(number: int, what: str = "") -> str:
    """Return a paragraph that counts the omitted rows; "" for none."""
    return f"<p>and {number} more{what and f' {what}'}</p>" if number > 0 else ""


def _row(cells: Sequence[str]) -> str:
    first, *tail = cells
    others = "".join(f"<td>{escape(cell)}</td>" for cell in tail)
    return f'<tr><th scope="row">{escape(first)}</th>{others}</tr>'
