"""Write docs/vocabularies.md from analyzer/counters: `python scripts/write/vocabularies.py`."""

from collections.abc import Iterator
from pathlib import Path

from cutrace.analyzer.counting.vocabulary import Counter, Vocabulary, vocabularies

PAGE = Path(__file__).parents[2] / "docs" / "vocabularies.md"
HEAD = """# Vocabularies

Made by `scripts/write/vocabularies.py` from `analyzer/counters/*.toml`. The last column says where
a counter is not, or may not be, what a chip counts; `cutrace counters NAME` prints the formula and
the source too.
"""
COLUMNS = ("counter", "unit", "capability", "what it counts", "where it differs")


def text() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for v in vocabularies() for line in _section(v)), ""])


def _section(vocabulary: Vocabulary) -> Iterator[str]:
    """A vocabulary as a table."""
    yield from (f"## {vocabulary.name}", "", f"{vocabulary.doc}.", "")
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    yield from map(_row, vocabulary.counters)
    yield ""


def _row(counter: Counter) -> str:
    cells = (f"`{counter.name}`", counter.unit, counter.devices, counter.doc, counter.differs)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(text().rstrip() + "\n", encoding="utf-8")
