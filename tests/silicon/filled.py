"""Filling the lines of a generated page again."""

import re
import textwrap
from collections.abc import Iterator
from itertools import groupby

WIDTH = 118
FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)
AS_IT_IS = ("|", "#")
"""How lines of tables and titles begin."""


def filled(text: str) -> str:
    """Fill paragraphs and items of lists; tables, titles and code stay as they are."""
    parts = FENCE.split(text)
    parts[::2] = ["\n".join(_filled_lines(part.split("\n"))) for part in parts[::2]]
    return "".join(parts)


def _filled_lines(lines: list[str]) -> Iterator[str]:
    begins = 0
    """The number of the paragraph or item that a line belongs to; each other line is its own."""
    numbered: list[tuple[int, str]] = []
    is_open = False
    for line in lines:
        is_prose = bool(line) and not line.startswith(AS_IT_IS)
        begins += not (is_prose and is_open) or line.startswith("- ")
        is_open = is_prose
        numbered.append((begins, line))
    for _, group in groupby(numbered, lambda each: each[0]):
        yield _fill(" ".join(line.strip() for _, line in group))


def _fill(line: str) -> str:
    if not line or line.startswith(AS_IT_IS):
        return line
    indent = "  " if line.startswith("- ") else ""
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
