"""Write docs/vocabularies.md from analyzer/counters: `python scripts/write/vocabularies.py`."""

import re
from collections.abc import Iterator
from pathlib import Path

from cutrace.analyzer.counting.vocabulary import Counter, Vocabulary, vocabularies

PAGE = Path(__file__).parents[2] / "docs" / "vocabularies.md"
HEAD = """# Vocabularies

Every counter. `scripts/write/vocabularies.py` writes this page from `analyzer/counters/*.toml`.
`cutrace counters NAME` prints the definition, formula and source of one counter. The last column
says where a counter differs, or may differ, from a chip. Capability `1.0-` is 1.0 and later.

Counters that differ only in the kind, width or precision of an access or operation, in the unit or
in the axis share a row. A row's text describes its first counter, except after another one's name.
"""
COLUMNS = ("counters", "unit", "capability", "what they count", "where they differ")
KIND = re.compile(
    r"global|shared|local|loads?|stores?|atomics?|reads?|writes?|ld|st|atom|red|gld|gst|[xyz]"
    r"|\d+b(?:it)?|half|single|double|hp|sp|dp|hits?|miss(?:es)?|written|[fdh]?(?:add|mul|fma)"
    r"|(?:fp)?(?:16|32|64)|static|dynamic|driver|sm|l1tex|lts|dram"
)
"""What may differ between the names of a row."""


def text() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for v in vocabularies() for line in _section(v)), ""])


def _section(vocabulary: Vocabulary) -> Iterator[str]:
    """A vocabulary as a table."""
    yield from (f"## {vocabulary.name}", "", f"{vocabulary.doc}.", "")
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    rows: dict[tuple[str, ...], list[Counter]] = {}
    for counter in vocabulary.counters:
        words = re.split(r"([_.])", counter.name)
        name = "".join("*" if KIND.fullmatch(word) else word for word in words)
        rows.setdefault((name, counter.unit, counter.devices), []).append(counter)
    merged: dict[tuple[str, ...], list[Counter]] = {}  # definitions of the same names
    for mine in rows.values():
        merged.setdefault(tuple(counter.name for counter in mine), []).extend(mine)
    yield from map(_row, merged.values())
    yield ""


def _row(counters: list[Counter]) -> str:
    names = ", ".join(dict.fromkeys(f"`{counter.name}`" for counter in counters))
    devices = ", ".join(dict.fromkeys(counter.devices for counter in counters))
    cells = names, counters[0].unit, devices, _doc(counters), _differs(counters)
    return f"| {' | '.join(cells)} |"


def _doc(counters: list[Counter]) -> str:
    """The text of the first, of the first of other devices, and what the rest says besides."""
    first = counters[0]
    parts = {first.devices: first.doc}
    for counter in counters[1:]:
        _, _, more = counter.doc.partition(". ")
        if counter.devices not in parts:
            parts[counter.devices] = f"On {counter.devices}: {counter.doc}"
        elif more and more not in parts[counter.devices]:
            parts[counter.devices] += f" `{counter.name}`: {more}"
    return " ".join(parts.values())


def _differs(counters: list[Counter]) -> str:
    """Where they differ, with the names of those that do if not all of them do."""
    names: dict[str, list[str]] = {}
    for counter in counters:
        if counter.differs:
            names.setdefault(counter.differs, []).append(f"`{counter.name}`")
    return " ".join(
        text if len(mine) == len(counters) else f"{', '.join(mine)}: {text}"
        for text, mine in names.items()
    )


if __name__ == "__main__":
    PAGE.write_text(text().rstrip() + "\n", encoding="utf-8")
