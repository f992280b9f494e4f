"""Markdown: the sections for an issue, a merge request or a notebook."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from ...text.layout import markdown_row
from ..document import (
    Block,
    Document,
    Excerpt,
    Figure,
    Heading,
    Item,
    Listing,
    Next,
    Note,
    Table,
    TableSet,
    by_key,
    title,
)


def render(document: Document) -> str:
    """Return a paragraph for each block, and a table for each vocabulary."""
    parts: list[str] = []
    for section in document.sections():
        for is_line, blocks in groupby(section, _is_line):
            each = [part for block in blocks for part in paragraphs(block)]
            parts += ["\n".join(each)] if is_line else each
    return "\n\n".join(parts) + "\n"


def _is_line(block: Block) -> str:
    """Return whether a block is a line among others of its kind, of code or of a list."""
    return "code" * (isinstance(block, Note) and block.is_code) or "list" * isinstance(block, Item)


def paragraphs(block: Block) -> Iterator[str]:
    """Yield the paragraphs of a block."""
    match block:
        case Heading():
            lead = f"{block.lead} " if block.lead else ""
            yield f"## {lead}`{block.text}`{block.tail}" if block.text else f"## {block.lead}"
        case Note(is_code=True):
            yield f"`{block.indent}{block.text}`  "  # two blanks end a line
        case Note(is_strong=True):
            yield f"**{block.text}**"
        case Note():
            yield f"\\{block.text}" if block.text.startswith("* ") else block.text
        case Item():
            heads = (f"- {f'`{place}`: ' if place else ''}{text}" for place, text in block.heads)
            yield "\n".join((*heads, *(f"  - {label}: {text}" for label, text in block.details)))
        case Excerpt() | Listing():
            yield "\n".join(("```", *block.texts, "```"))
        case Figure():
            for each in block.blocks:
                yield from paragraphs(each)
        case Next():
            yield f"Next: `{block.command}`"
        case Table():
            yield from _table(block)
        case TableSet():
            yield from _tables(block)


def _table(table: Table) -> Iterator[str]:
    head, *rows = table.texts()
    if table.baseline is None:
        rows = [tuple(map(escape, cells)) for cells in rows]
    marked = (
        (f"**{name}**" if row.is_bad else name, *cells)
        for row, (name, *cells) in zip(table.rows, rows, strict=True)
    )
    if rows:
        yield _grid(head, [*marked], table.numbers)


def _tables(tables: TableSet) -> Iterator[str]:
    """Yield a table per vocabulary; the first one also says which devices cannot launch."""
    for key, group in by_key(tables):
        if key:
            yield f"### `{title(key)}`"
        for index, table in enumerate(group):
            rows = [(f"`{name}`", *cells) for name, *cells in table.shown()]
            rows = [*(() if index else tables.launch_row()), *rows]
            if rows:
                yield _grid((table.title, *tables.columns), rows)


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = True) -> str:
    under = ("---", *("---:" if numbers else "---" for _ in head[1:]))
    return "\n".join(markdown_row(*cells) for cells in (head, under, *rows))


_MARKUP = re.compile(r"[<>&`*\[\]\\]|(?<!\w)_|_(?!\w)")


def escape(text: str) -> str:
    r"""Return a text without meaning for Markdown, as a cell.

    >>> print(escape("a<i>"), escape("_Z1k_l"))
    a\<i\> \_Z1k_l
    """
    return _MARKUP.sub(r"\\\g<0>", text.replace("\n", " "))
