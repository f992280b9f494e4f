"""HTML: the sections as parts of a page, for notebooks; no style of their own, all text escaped."""

from collections.abc import Iterator
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
    return "".join(part for block in blocks for part in _parts(block))


def _parts(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            text = " ".join(filter(None, (block.lead, block.text + block.tail)))
            yield f"<p><b>{escape(text)}</b></p>"
        case Note():
            text = escape(block.text)
            yield f"<p>{f'<b>{text}</b>' if block.is_strong else text}</p>"
        case Item():
            heads = (
                f"<code>{escape(place)}</code> <b>{escape(text)}</b>" for place, text in block.heads
            )
            details = (f"{escape(label)}: {escape(text)}" for label, text in block.details)
            yield f"<ul><li>{'<br>'.join((*heads, *details))}</li></ul>"
        case Excerpt() | Listing():
            yield f"<pre>{escape(chr(10).join(block.texts))}</pre>"
        case Figure():
            yield block.draw()
        case Next():
            yield f"<p>next: <code>{escape(block.command)}</code></p>"
        case Table():
            head, *rows = block.texts()
            yield render_table(block.title, head, rows, len(rows))
        case TableSet():
            for key, tables in by_key(block):
                rows = [*block.launch_row(), *(row for table in tables for row in table.shown())]
                yield render_table(title(key), ("counter", *block.columns), rows, len(rows))
