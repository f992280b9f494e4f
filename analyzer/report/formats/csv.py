"""CSV: the rows, for programs. A missing value is an empty cell, ratios have all digits."""

from ...text.layout import csv_text
from ..document import Document


def render(document: Document) -> str:
    """Return the rows below the names of their columns; the items of a list share a cell."""
    assert document.rows
    head, rows = document.rows()
    return csv_text([[*head], *([*map(_cell, row)] for row in rows)])


def _cell(value: object) -> object:
    return " ".join(map(str, value)) if isinstance(value, list) else value
