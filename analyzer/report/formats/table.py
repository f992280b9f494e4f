"""Text for terminals and pipes: sections between blank lines, tables in columns, nothing cut.

The lines are built first, each with its style; on a terminal rich adds colours and links. A table
wider than the terminal is transposed, or split into several blocks.

Tables by line, array or instruction are a page of sources: a row each, with its counters in columns
and its text. Column headings are the full counter names, broken after underscores. Text that does
not fit is wrapped in its column, or cut if its line costs nothing. If that leaves too little room
for the text, the least informative columns are dropped and named below the page. If not even one
column fits there is no page, and the tables stand one below the other instead.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING

from ....base.dataclass import dataclass
from ....base.sanitize import Styled, one_line, sanitize
from ...counting.vocabulary import OURS, Counter, heading
from ...text.layout import GAP, SENTENCE, align, fit, widths, wrapped
from ...text.number import number
from ..document import (
    Block,
    Document,
    Excerpt,
    Figure,
    Heading,
    Item,
    Key,
    Listing,
    Next,
    Note,
    Row,
    Table,
    TableSet,
    by_key,
    title,
)
from ..view import COUNTERS, View

if TYPE_CHECKING:
    from ...counting.evaluate import Value

Line = tuple[str, str]
"""A line of text and its rich style."""

Entry = tuple[tuple[str, ...], str]
"""Cells and their rich style. A single cell is a line of its own and sets no column width."""


def render(document: Document) -> str:
    """Return the sections as text, coloured if the view says so."""
    lines = list(_lines(document))
    if document.view.colour:
        return _coloured(lines)
    return "\n".join(text.rstrip() for text, _ in lines) + "\n"


def _lines(document: Document) -> Iterator[Line]:
    """Yield every line; the legend of a page is first in the section below it."""
    view = document.view
    legend: list[Line] = []
    for index, section in enumerate(document.sections()):
        if index:
            yield "", ""
        yield from legend
        legend = []
        for block in section:
            pages = None
            if isinstance(block, TableSet) and block.by != "launch":
                pages = draw_pages(block, view)
            yield from lines_of(block, view) if pages is None else pages
            if pages and not view.quiet:
                legend = [*styled(wrapped(LEGEND, view.width, hang=""))]


def _coloured(lines: list[Line]) -> str:
    """Return the lines with their styles as terminal codes."""
    from rich.console import Console
    from rich.text import Text

    from ...text.launch_text import source_links

    console = Console(file=StringIO(), force_terminal=True)
    with console.capture() as captured:
        for text, style in lines:
            shown = Text(sanitize(text.rstrip()), style)
            for start, end, place in source_links(shown.plain):
                shown.stylize(f"link {place}", start, end)
            console.print(shown, soft_wrap=True)
    return Styled(captured.get())


def lines_of(block: Block, view: View) -> Iterator[Line]:
    """Yield the lines of a block."""
    match block:
        case Heading(lead=""):
            yield block.text + block.tail, "bold"
        case Heading():
            text = f"{block.lead}  {block.text}{block.tail}"
            yield from styled(wrapped(text, view.width), "bold")
        case Note(is_whole=True) if block.is_code or view.width is None:
            yield block.indent + block.text, ""
        case Note():
            lines = wrapped(block.text, view.width, block.indent, block.hang)
            yield from styled(lines, "bold" if block.is_strong else "")
        case Item():
            for place, text in block.heads:
                yield from styled(wrapped(f"- {place}{': ' * bool(place)}{text}", view.width))
            for label, text in block.details:
                yield from styled(wrapped(f"{label}: {text}", view.width, "  "))
        case Excerpt():
            for text in block.texts:
                yield from styled(_source_lines(text, view.width), "yellow")
        case Listing():
            yield from block.lines
        case Figure():
            for each in block.blocks:
                yield from lines_of(each, view)
        case Next():
            yield f"next: {block.command}", "green"
        case Table():
            yield from _table(block, view)
        case TableSet():
            yield from _tables(block, view)


def styled(lines: Iterable[str], style: str = "") -> Iterator[Line]:
    """Yield lines with a style."""
    yield from ((line, style) for line in lines)


def _source_lines(text: str, width: int | None) -> list[str]:
    """Return a line of a source, which only a terminal wraps, or a sentence about it."""
    if text.startswith(" "):
        width = min(width or SENTENCE, SENTENCE)
    return wrap(text, width, subsequent_indent="  ") if width else [text]


def _table(block: Table, view: View) -> Iterator[Line]:
    """Yield the table; if it is too wide, a table for each column beside the baseline, without the
    differences if that is too wide as well.
    """
    every = range(len(block.columns))
    parts = [[*block.texts(every)]]
    is_wide = not _fits(parts[0], view)
    if block.baseline is not None and is_wide:
        pairs = ((block.baseline, other) for other in every if other != block.baseline)
        parts = [[*block.texts(pair)] for pair in pairs]
    for index, rows in enumerate(parts):
        if index:
            yield "", ""
        if block.baseline is not None and is_wide and not _fits(rows, view):
            rows = [(*row[:-2], row[-1]) for row in rows]
        named = any(rows[0])
        for place, line in enumerate(align(rows if named else rows[1:], block.numbers)):
            style = "" if place or not named else "bold"
            fitted = fit(line, view.width) if view.width and not block.numbers else [line]
            yield from styled(fitted, style)


def _fits(rows: Sequence[tuple[str, ...]], view: View) -> bool:
    return view.width is None or _wide(rows) <= view.width


def _wide(rows: Sequence[tuple[str, ...]]) -> int:
    """Return the width of a table in columns of the screen."""
    columns = widths(rows)
    return sum(columns) + len(GAP) * (len(columns) - 1)


def _columns(set_: TableSet, view: View) -> list[range]:
    """Return the columns of each block: all side by side, or, if too wide, as many at a time as
    fit.
    """
    every = range(len(set_.columns))
    if view.width is None:
        return [every]
    name, *columns = widths([cells for cells, _ in _entries(set_, every)])
    parts, total = [0], name
    for device, column in enumerate(columns):
        total += len(GAP) + column
        if total > view.width and device > parts[-1]:
            parts.append(device)
            total = name + len(GAP) + column
    return [range(*ends) for ends in zip(parts, [*parts[1:], len(columns)], strict=True)]


def _tables(block: TableSet, view: View) -> Iterator[Line]:
    """Yield counters in rows and devices in columns; if that is too wide, transpose the table, or
    show as many devices at a time as fit.
    """
    every = range(len(block.columns))
    entries = [*_entries(block, every)]
    width = view.width or BROAD
    wide = _wide([cells for cells, _ in entries])
    if wide > width and (turned := _turned(entries, width)):
        yield from turned
        return
    for index, devices in enumerate(_columns(block, view)):
        if index:
            yield "", ""
        yield from _aligned([*_below_long_names([*_entries(block, devices)], view.width)])


def _aligned(entries: Sequence[Entry]) -> Iterator[Line]:
    cells, styles = zip(*entries, strict=True)
    yield from zip(align(cells, numbers=True), styles, strict=True)


def _below_long_names(entries: Sequence[Entry], width: int | None) -> Iterator[Entry]:
    """Yield the rows; if a name leaves no room for its values they go on the next line."""
    _, *columns = widths([cells for cells, _ in entries])
    longest = None if width is None else width - sum(columns) - len(GAP) * len(columns)
    for (name, *values), style in entries:
        if values and longest is not None and len(name) > longest:
            yield (name,), style
            yield ("", *values), style
        else:
            yield (name, *values), style


def _turned(entries: Sequence[Entry], width: int) -> list[Line]:
    """Return a row per device and a column per counter; empty if that is too wide as well, or if
    rows have several parts.
    """
    if any(len(cells) == 1 and not cells[0].startswith("[") for cells, _ in entries):
        return []
    rows = [*zip(*_qualified(entries), strict=True)]
    turned = [("device", *rows[0][1:]), *rows[1:]]
    if _wide(turned) > width:
        return []
    return [*_aligned([(cells, "" if index else "bold") for index, cells in enumerate(turned)])]


def _qualified(entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of counters; each of NVIDIA's vocabularies is preceded by its name."""
    vocabulary = ""
    for cells, _ in entries:
        if len(cells) == 1:
            vocabulary = cells[0].strip("[]")
        else:
            name, *values = cells
            yield (name if vocabulary in ("", OURS) else f"{vocabulary}.{name}", *values)


def _entries(set_: TableSet, columns: Sequence[int]) -> Iterator[Entry]:
    """Yield the tables with these columns, row by row."""
    yield ("counter", *(set_.columns[n] for n in columns)), "bold"
    yield from ((cells, "red") for cells in set_.launch_row(columns))
    for key, tables in by_key(set_):
        indent = "  " if key else ""
        if key:
            yield ("",), ""
            yield (title(key),), "cyan"
        for table in tables:
            rows = [*table.shown(columns)]
            if rows and len(tables) > 1:
                yield (f"{indent}[{table.title}]",), "bold"
            yield from (((indent + name, *cells), "") for name, *cells in rows)


BROAD, READABLE, NARROW = 200, 40, 24
"""Text columns beyond which devices on a pipe get a page each; the width that a source line should
have; the minimum width beside a single counter."""
SHOWN_COUNTERS = (
    *("global_excess_transactions", "shared_conflicts", "global_transactions", "shared_wavefronts"),
    *("divergent_branches", "local_load_transactions", "local_store_transactions", "reuse"),
    *("global_bytes_transferred", "constant_wavefronts", "texture_transactions", "bytes_touched"),
    *("bulk_load_bytes", "bulk_store_bytes"),
    *("instructions", "memory_requests", "global_ideal_transactions", "shared_ideal_wavefronts"),
)
"""Columns by priority: the last are dropped first if there is no room for all."""
HEATED = (
    "global_excess_transactions",
    "shared_conflicts",
    "global_bytes_transferred",
    "instructions",
)
"""Candidates for the column that colours the rows: the first one that is not all 0."""
HOT, WARM = 0.5, 0.1
"""Shares of that column from which a row is red, or yellow."""
LEGEND = "'.' is 0, a blank means not available on this device; choose columns with --counters"


@dataclass(frozen=True, slots=True)
class Column:
    """A counter on a device: the lines of its heading, its cells, and their shares of the sum."""

    name: str
    heading: tuple[str, ...]
    cells: tuple[str, ...]
    parts: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """Return the width of the widest line."""
        return max(map(len, (*self.heading, *self.cells)))


def draw_pages(set_: TableSet, view: View) -> list[Line] | None:
    """Return the pages of a launch, one per device; None if there is no room.

    Devices share one page if the requested counters fit for all of them.
    """
    running = [device for device, refusal in enumerate(set_.refusals) if not refusal]
    refusals = zip(set_.columns, set_.refusals, strict=True)
    lines = [(f"{device}: {refusal}", "red") for device, refusal in refusals if refusal]
    if len(running) > 1 and view.counters:
        together = _page(set_, running, view, view.width or BROAD, whole=True)
        if together is not None:
            return [*lines, *together]
    for device in running:
        page = _page(set_, [device], view, view.width)
        if page is None:
            return None
        name = [(set_.columns[device], "bold")] if len(set_.columns) > 1 else []
        lines += [*([("", "")] if lines else []), *name, *page]
    return lines


def _page(
    set_: TableSet, devices: Sequence[int], view: View, width: int | None, whole: bool = False
) -> list[Line] | None:
    """Return one page; None if not one column fits or, with `whole`, not all of them."""
    columns = [*_source_columns(set_, devices, view)]
    heat = _heat(columns, view)
    keys = [key for key, _ in by_key(set_)]
    places = ["" if p == q else one_line(p) for p, q in _places(keys)]
    texts = [one_line(_text(key)) for key in keys]
    left_out: list[str] = []
    while columns:
        drawn = _draw(columns, places, texts, width, heat, bool(view.counters))
        if drawn is not None:
            return [*drawn, *((text, "") for text in _tell_left_out(left_out, width))]
        if whole:
            break
        # Drop the least informative counter on all devices at once, so that devices stay
        # comparable, and try again.
        least = max(columns, key=lambda column: _rank(column.name, view))
        left_out.append(least.name)
        columns = [column for column in columns if column.name != least.name]
    return None


def _rank(name: str, view: View) -> int:
    """Return the rank of a column, lowest first: requested ones in their order, then by
    SHOWN_COUNTERS.
    """
    order = view.counters or (view.sort, *SHOWN_COUNTERS)
    return order.index(name) if name in order else len(order)


def _tell_left_out(names: Sequence[str], width: int | None) -> list[str]:
    """Return a sentence that names the dropped columns."""
    if not names:
        return []
    message = f"no room at this width for {', '.join(dict.fromkeys(reversed(names)))}"
    return ["", *wrap(message, width or BROAD, break_long_words=False, break_on_hyphens=False)]


def _draw(
    columns: Sequence[Column],
    places: Sequence[str],
    texts: Sequence[str],
    width: int | None,
    heat: Sequence[float],
    is_explicit: bool,
) -> list[Line] | None:
    """Return the lines of a page of these columns; None if they do not fit.

    `is_explicit`: the user requested the counters, so the text may be as narrow as NARROW.
    """
    margin = sum(column.width + len(GAP) for column in columns)
    text_width = None if width is None else width - margin
    longest = max((len(text) for text in (*texts, *places)), default=0)
    if text_width is not None and text_width < longest:
        words = [len(word) for text in (*texts, *places) for word in text.split()]
        least = READABLE if len(columns) > 1 and not is_explicit else NARROW
        if text_width < min(least, longest) or max(words) > text_width:
            return None
    return [*_page_lines(columns, places, texts, text_width, heat)]


def _source_columns(set_: TableSet, devices: Sequence[int], view: View) -> Iterator[Column]:
    """Yield a column per counter and device; all-zero columns only if requested."""
    tables = [
        {row.counter.qualified: row for table in tables for row in table.rows if row.counter}
        for _, tables in by_key(set_)
    ]
    rows = {name: row for table in tables for name, row in table.items()}
    named = [f"{OURS}.{name}" for name in COUNTERS[view.by]]
    sorting = [
        name for name, row in rows.items() if view.sort in (row.name, name) and name not in named
    ]
    order = rows if view.counters else [name for name in (*sorting, *named) if name in rows]
    for name in order:
        for device in devices:
            counter = rows[name].counter
            assert counter
            values = [_value(counter, table.get(name), device) for table in tables]
            if not any(values) and not (view.counters and any(v is not None for v in values)):
                continue
            words = [word for word in re.split(r"(?<=[_.])", heading(counter)) if word]
            lines = (*([set_.columns[device]] if len(devices) > 1 else []), *words)
            cells = (
                _cell(v, counter, t.get(name), device) for v, t in zip(values, tables, strict=True)
            )
            yield Column(counter.name, lines, tuple(cells), _parts(values))


def _parts(values: "Sequence[Value]") -> tuple[float, ...]:
    """Return each value's share of their sum, from 0 to 1."""
    total = sum(value or 0 for value in values) or 1
    return tuple((value or 0) / total for value in values)


def _heat(columns: Sequence[Column], view: View) -> tuple[float, ...]:
    """Return the cost of each row: by the sort column, else by waste, bytes or work."""
    by_name = {column.name: column for column in reversed(columns)}
    candidates = (by_name[name] for name in (view.sort, *HEATED) if name in by_name)
    return next((column.parts for column in candidates if any(column.parts)), ())


def _cell(value: "Value", counter: Counter, row: Row | None, device: int) -> str:
    if value == 0 and (row is None or row.cells[device].interval is None):
        return "."
    return number(value, counter) if row is None else row.text(device)


def _value(counter: Counter, row: Row | None, device: int) -> "Value":
    """Return a cell: 0 if the block omits the counter because it counted nothing.

    A counter that only one grouping knows is never reported as 0 in that grouping.
    """
    if row is None:
        return None if counter.by else 0
    return row.cells[device].value


def _places(keys: Sequence[Key]) -> Iterator[tuple[str, str]]:
    """Yield the file of each row, and that of the row before."""
    before = ""
    for key in keys:
        place = str(key.get("file", "") if "pc" not in key else "")
        yield place, before
        before = place


def _text(key: Key) -> str:
    """Return the text beside the numbers of a row."""
    for name in ("array", "opcode"):
        if name in key:
            return str(key[name])
    if "pc" in key or not key.get("line"):
        return title(key)
    return f"{key['line']}  {str(key['text']).rstrip()}"


def _page_lines(
    columns: Sequence[Column],
    places: Sequence[str],
    texts: Sequence[str],
    text_width: int | None,
    heat: Sequence[float],
) -> Iterator[Line]:
    """Yield the headings, then each row; a file name precedes its first line."""
    high = max((len(column.heading) for column in columns), default=0)
    blank = " " * sum(column.width + len(GAP) for column in columns)
    for line in range(high):
        words = (("",) * (high - len(c.heading)) + c.heading for c in columns)
        cells = zip(words, columns, strict=True)
        yield "".join(word[line].rjust(c.width) + GAP for word, c in cells).rstrip(), "bold"
    for index, (place, text) in enumerate(zip(places, texts, strict=True)):
        if place:
            yield from ((blank + part, "cyan") for part in _wrap(place, text_width))
        start = "".join(column.cells[index].rjust(column.width) + GAP for column in columns)
        is_idle = all(column.cells[index] in ("", ".") for column in columns)
        first, *tail = [_cut(text, text_width)] if is_idle else _wrap(text, text_width)
        part = heat[index] if heat else 0.0
        style = "red" if part >= HOT else "yellow" if part >= WARM else ""
        yield start + first, style
        yield from ((blank + part, style) for part in tail)


def _cut(text: str, width: int | None) -> str:
    """Return the text cut to one line."""
    return text if width is None or len(text) <= width else f"{text[: width - 3].rstrip()}..."


def _wrap(text: str, width: int | None) -> list[str]:
    """Return the text in lines of this width, broken between words; inner blanks survive if it
    fits.
    """
    if width is None or len(text) <= width:
        return [text]
    return wrap(
        text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
