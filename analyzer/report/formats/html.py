"""HTML: the sections as parts of a page, for notebooks; no style of their own, all text escaped."""

from collections.abc import Iterator
from functools import singledispatch
from html import escape

from ....base.html_table import render_table
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
    """Return an element for each block."""
    blocks = (block for section in document.sections() for block in section)
    return "".join(part for block in blocks for part in parts_of(block))


@singledispatch
def parts_of(block: Block) -> Iterator[str]:
    """Yield the elements of a block."""
    raise TypeError(type(block))


@parts_of.register
def _heading(block: Heading) -> Iterator[str]:
    text = " ".join(filter(None, (block.lead, block.text + block.tail)))
    yield f"<p><b>{escape(text)}</b></p>"


@parts_of.register
def _note(block: Note) -> Iterator[str]:
    text = escape(block.text)
    yield f"<p>{f'<b>{text}</b>' if block.is_strong else text}</p>"


@parts_of.register
def _item(block: Item) -> Iterator[str]:
    heads = "<br>".join(
        f"<code>{escape(place)}</code> <b>{escape(text)}</b>" for place, text in block.heads
    )
    details = "".join(f"<br>{escape(f'{label}: {text}')}" for label, text in block.details)
    yield f"<ul><li>{heads}{details}</li></ul>"


@parts_of.register
def _excerpt(block: Excerpt) -> Iterator[str]:
    yield f"<pre>{escape(chr(10).join(block.lines))}</pre>"


@parts_of.register
def _listing(block: Listing) -> Iterator[str]:
    yield f"<pre>{escape(chr(10).join(line for line, _ in block.lines))}</pre>"


@parts_of.register
def _figure(block: Figure) -> Iterator[str]:
    yield block.draw()


@parts_of.register
def _next(block: Next) -> Iterator[str]:
    yield f"<p>next: <code>{escape(block.command)}</code></p>"


@parts_of.register
def _table(block: Table) -> Iterator[str]:
    head, *rows = block.texts()
    yield render_table(block.title, head, rows, len(rows))


@parts_of.register
def _table_set(block: TableSet) -> Iterator[str]:
    for key, tables in by_key(block):
        rows = [
            (row.name, *map(row.text, range(len(row.cells))))
            for table in tables
            for row in table.rows
            if not row.is_folded
        ]
        if any(block.refusals):
            rows.insert(0, ("launch", *(refusal or "runs" for refusal in block.refusals)))
        yield render_table(title(key), ("counter", *block.columns), rows, len(rows))
