"""Markdown: the sections for an issue, a merge request or a notebook."""

import re
from collections.abc import Iterator, Sequence
from functools import singledispatch
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


@singledispatch
def paragraphs(block: Block) -> Iterator[str]:
    """Yield the paragraphs of a block."""
    raise TypeError(type(block))


@paragraphs.register
def _heading(block: Heading) -> Iterator[str]:
    lead = f"{block.lead} " if block.lead else ""
    yield f"## {lead}`{block.text}`{block.tail}" if block.text else f"## {block.lead}"


@paragraphs.register
def _note(block: Note) -> Iterator[str]:
    if block.is_code:
        yield f"`{block.indent}{block.text}`  "  # two blanks end a line
    elif block.is_strong:
        yield f"**{block.text}**"
    else:
        yield f"\\{block.text}" if block.text.startswith("* ") else block.text


@paragraphs.register
def _item(block: Item) -> Iterator[str]:
    heads = (f"- {f'`{place}`: ' if place else ''}{text}" for place, text in block.heads)
    yield "\n".join((*heads, *(f"  - {label}: {text}" for label, text in block.details)))


@paragraphs.register
def _excerpt(block: Excerpt) -> Iterator[str]:
    yield "\n".join(("```", *block.lines, "```"))


@paragraphs.register
def _listing(block: Listing) -> Iterator[str]:
    yield "\n".join(("```", *(line for line, _ in block.lines), "```"))


@paragraphs.register
def _figure(block: Figure) -> Iterator[str]:
    for each in block.blocks:
        yield from paragraphs(each)


@paragraphs.register
def _next(block: Next) -> Iterator[str]:
    yield f"Next: `{block.command}`"


@paragraphs.register
def _table(block: Table) -> Iterator[str]:
    head, *rows = block.texts()
    if block.baseline is None:
        escaped = [[*map(escape, cells)] for cells in rows]
        rows = [
            (f"**{name}**" if row.is_bad else name, *cells)
            for row, (name, *cells) in zip(block.rows, escaped, strict=True)
        ]
    if rows:
        yield _grid(head, rows, block.numbers)


_MARKUP = re.compile(r"[<>&`*\[\]\\]|(?<!\w)_|_(?!\w)")


def escape(text: str) -> str:
    r"""Return a text without meaning for Markdown, as a cell.

    >>> print(escape("a<i>"), escape("_Z1k_l"))
    a\<i\> \_Z1k_l
    """
    return _MARKUP.sub(r"\\\g<0>", text.replace("\n", " "))


@paragraphs.register
def _table_set(block: TableSet) -> Iterator[str]:
    """Yield a table per vocabulary; the first one also says which devices cannot launch."""
    for key, tables in by_key(block):
        if key:
            yield f"### `{title(key)}`"
        for index, table in enumerate(tables):
            rows = [
                (f"`{row.name}`", *map(row.text, range(len(row.cells))))
                for row in table.rows
                if not row.is_folded
            ]
            if not index and any(block.refusals):
                rows.insert(0, ("launch", *(refusal or "runs" for refusal in block.refusals)))
            if rows:
                yield _grid((table.title, *block.columns), rows)


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = True) -> str:
    under = ("---", *("---:" if numbers else "---" for _ in head[1:]))
    return "\n".join(markdown_row(*cells) for cells in (head, under, *rows))
