"""Terminal table: rows are counters, columns are devices; nothing is shortened or cut.

The text is built first, as cells and styles. On a pipe it is printed as it is; on a terminal rich
adds colours. A table wider than the terminal is transposed, or split into several blocks.

By line, array or instruction there is a page of sources: a row each, with its counters in columns
and its text. Column headings are the full counter names, broken after underscores. Text that does
not fit is wrapped in its column, or cut if its line costs nothing. If that leaves too little room
for the text, the least informative columns are dropped and named below the page. If not even one
column fits there is no page, and the table shows a block per row instead.
"""

import re
from collections.abc import Iterator, Sequence
from io import StringIO
from textwrap import wrap

from ...base.dataclass import dataclass
from ...base.sanitize import Styled, one_line, sanitize
from ..counting.evaluate import Value
from ..counting.vocabulary import OURS, Counter, heading
from ..overview import (
    costliest_number,
    costliest_only,
    distinct_launches,
    is_brief,
    is_long,
    launch_lines,
    overview_tables,
    summary,
)
from ..profile import Profile
from ..sheet import Block, Row, Sheet, sheets
from ..summary_text import labelled
from ..text.launch_text import source_links
from ..text.layout import GAP, SENTENCE, align, widths, wrapped
from ..text.number import number
from ..view import COUNTERS, View
from ..wording import (
    PTX_IS_NOT_SASS,
    absent,
    costs,
    estimate,
    is_folded,
    times,
    title,
    zeros,
)

Entry = tuple[tuple[str, ...], str]
"""Cells and their rich style. A single cell is a line of its own and sets no column width."""

Part = list[tuple[str, str]]
"""The lines of a paragraph, each with its style."""


def render(profile: Profile) -> str:
    """Return the profile as text, coloured if its view requests it."""
    lines = list(_lines(profile))
    if profile.view.colour:
        return _coloured(lines)
    return "\n".join(text.rstrip() for text, _ in lines) + "\n"


def _lines(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield every line and its style, top to bottom."""
    view = profile.view
    width = min(view.width or SENTENCE, SENTENCE)
    if view.first:
        yield from _sentence(view.first, width)
        yield "", ""
    if is_brief(view) and not is_long(profile):
        yield from _brief(profile)
        return
    if is_long(profile):
        yield from _overview(profile, width)
        if view.by == "launch":
            return
        profile = costliest_only(profile)
    yield from _launches(profile, width)


def _brief(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the summary: a few lines per launch, and the commands for more."""
    shown = [*distinct_launches(profile)]
    for on, again in shown:
        heading, *others = launch_lines(on, profile.view.width)
        yield f"{heading[0]}  ({again} launches)" if again > 1 else heading[0], heading[1]
        yield from others
        if len(shown) > 1:
            yield "", ""
    for label, text in profile.view.advice:
        yield from labelled(label, text, profile.view.width)
    if profile.view.quiet:
        return
    yield "", ""
    if profile.view.last:
        yield f"next: {profile.view.last}", "green"


def _overview(profile: Profile, width: int) -> Iterator[tuple[str, str]]:
    """Yield a row per kernel, for more launches than can have a table each."""
    view = profile.view
    yield from _sentence(summary(profile), width)
    yield "", ""
    for table in overview_tables(profile):
        head, *rows = align(table, numbers=True)
        yield head, "bold"
        yield from ((row, "") for row in rows)
        yield "", ""
    if view.by == "launch":
        yield from _sentence(
            "Sums of counters over all launches of a kernel; ratios from the least to the most."
            " --launch N shows one launch.",
            width,
        )
        if view.typed:
            one = costliest_number(profile)
            yield f"next: {view.typed} --launch {one}{view.program_suffix}", "green"
    else:
        yield from _sentence(
            "Below, the costliest launch of each; --launch N shows another.", width
        )
        yield "", ""


def _launches(profile: Profile, width: int) -> Iterator[tuple[str, str]]:
    """Yield the tables of every launch."""
    view = profile.view
    laid_out = sheets(profile.launches, profile.view)
    paragraphs = [[*_words(sheet, profile, width)] for sheet in laid_out]
    common = _common(paragraphs)
    for sheet, words in zip(laid_out, paragraphs, strict=True):
        yield sheet.heading, "bold"
        if sheet.ranges:
            yield from _sentence(f"In range {sheet.ranges}.", width)
        for text in times(sheet):
            yield from _sentence(text, width)
        yield "", ""
        pages = draw_pages(sheet, view) if view.by != "launch" else None
        yield from pages if pages is not None else _tables(sheet, profile)
        yield "", ""
        if view.quiet:
            continue
        if pages:
            yield from _sentence(LEGEND, width)
        own = [line for part in words if part not in common for line in part]
        yield from own
        if own or pages or len(paragraphs) == 1:
            yield "", ""
    if view.quiet:
        return
    if common:
        yield "every launch:", "bold"
        yield from (line for part in common for line in part)
        yield "", ""
    if any(sheet.follows_ptx for sheet in laid_out) and not profile.manifest.is_machine_code:
        yield from _sentence(PTX_IS_NOT_SASS, width)
    if view.last:
        yield f"next: {view.last}", "green"


def _source_line(text: str, width: int | None) -> list[str]:
    """Return a sentence with a source line, wrapped only if a terminal is narrower."""
    return wrap(text, width, subsequent_indent="  ") if width else [text]


def _tables(sheet: Sheet, profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield counters in rows and devices in columns; if that is too wide, transpose the table, or
    show as many devices at a time as fit.
    """
    every = range(len(sheet.devices))
    entries = [*_entries(sheet, every, profile)]
    width = profile.view.width or BROAD
    if _wide(entries) > width and (turned := _turned(entries, width)):
        yield from turned
        return
    for index, devices in enumerate(_columns(sheet, profile)):
        if index:
            yield "", ""
        entries = [*_entries(sheet, devices, profile)]
        cells, styles = zip(*_below_long_names(entries, profile.view.width), strict=True)
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


def _wide(entries: Sequence[Entry]) -> int:
    """Return the width of a table in columns of the screen."""
    columns = widths([cells for cells, _ in entries])
    return sum(columns) + len(GAP) * (len(columns) - 1)


def _turned(entries: Sequence[Entry], width: int) -> list[tuple[str, str]]:
    """Return a row per device and a column per counter; empty if that is too wide as well, or if
    rows have several parts.
    """
    if any(len(cells) == 1 and not cells[0].startswith("[") for cells, _ in entries):
        return []
    rows = [*zip(*_qualified(entries), strict=True)]
    turned: list[Entry] = [(("device", *rows[0][1:]), "bold"), *((row, "") for row in rows[1:])]
    if _wide(turned) > width:
        return []
    cells, styles = zip(*turned, strict=True)
    return [*zip(align(cells, numbers=True), styles, strict=True)]


def _qualified(entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of counters; each of NVIDIA's vocabularies is preceded by its name."""
    vocabulary = ""
    for cells, _ in entries:
        if len(cells) == 1:
            vocabulary = cells[0].strip("[]")
        else:
            name, *values = cells
            yield (name if vocabulary in ("", OURS) else f"{vocabulary}.{name}", *values)


def _columns(sheet: Sheet, profile: Profile) -> list[range]:
    """Return the device indices per block: all side by side, or, if too wide, as many at a time as
    fit.
    """
    every = range(len(sheet.devices))
    if profile.view.width is None:
        return [every]
    name, *columns = widths([cells for cells, _ in _entries(sheet, every, profile)])
    parts, total = [0], name
    for device, column in enumerate(columns):
        total += len(GAP) + column
        if total > profile.view.width and device > parts[-1]:
            parts.append(device)
            total = name + len(GAP) + column
    return [range(*ends) for ends in zip(parts, [*parts[1:], len(columns)], strict=True)]


def _entries(sheet: Sheet, devices: Sequence[int], profile: Profile) -> Iterator[Entry]:
    """Yield the table of these devices, row by row."""
    yield ("counter", *(sheet.devices[d] for d in devices)), "bold"
    if any(sheet.refusals):
        yield ("launch", *(sheet.refusals[d] or "runs" for d in devices)), "red"
    for block in sheet.blocks:
        indent = "  " if block.key else ""
        if block.key:
            yield ("",), ""
            yield (title(block),), "cyan"
        for section in block.sections:
            rows = [row for row in section.rows if not is_folded(row, section, profile.view)]
            if rows and len(block.sections) > 1:
                yield (f"{indent}[{section.vocabulary}]",), "bold"
            for row in rows:
                cells = (estimate(row, d) for d in devices)
                yield (indent + row.counter.name, *cells), ""


def _common(paragraphs: Sequence[Sequence[Part]]) -> Sequence[Part]:
    """Return the paragraphs that all launches share, to print them once."""
    if len(paragraphs) < 2:
        return []
    return [part for part in paragraphs[0] if all(part in words for words in paragraphs[1:])]


def _words(sheet: Sheet, profile: Profile, width: int) -> Iterator[Part]:
    """Yield the paragraphs under a table."""
    for text in (sheet.left_out, absent(sheet, profile.view), zeros(sheet, profile.view)):
        if text:
            blank = [("", "")] if text != sheet.left_out else []
            yield [*_sentence(text, width), *blank]
    costly = []
    for line in costs(sheet):
        is_source = not line.startswith("  ")
        line_width = profile.view.width if is_source else width
        parts = _source_line(line, line_width)
        costly += [(part, "yellow") for part in parts]
    if costly:
        yield costly
    for note in sheet.notes:
        yield [*_sentence(note, width)]


def _sentence(text: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield a sentence over as many lines as it needs, broken between words."""
    yield from ((line, "") for line in wrapped(text, width, hang=""))


def _coloured(lines: list[tuple[str, str]]) -> str:
    """Return the lines with their styles as terminal codes."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=StringIO(), force_terminal=True)
    with console.capture() as captured:
        for text, style in lines:
            shown = Text(sanitize(text.rstrip()), style)
            for start, end, place in source_links(shown.plain):
                shown.stylize(f"link {place}", start, end)
            console.print(shown, soft_wrap=True)
    return Styled(captured.get())


Line = tuple[str, str]
"""A line of text and its rich style."""

BROAD, READABLE, NARROW = 200, 40, 24
"""Text columns beyond which devices on a pipe get a page each; the width that a source line should
have; the minimum width beside a single counter."""
SHOWN_COUNTERS = (
    *("global_excess_transactions", "shared_conflicts", "global_transactions", "shared_wavefronts"),
    *("divergent_branches", "local_load_transactions", "local_store_transactions", "reuse"),
    *("global_bytes_transferred", "constant_wavefronts", "texture_transactions", "bytes_touched"),
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


def draw_pages(sheet: Sheet, view: View) -> list[Line] | None:
    """Return the pages of a launch, one per device; None if there is no room.

    Devices share one page if the requested counters fit for all of them.
    """
    running = [device for device, refusal in enumerate(sheet.refusals) if not refusal]
    refusals = zip(sheet.devices, sheet.refusals, strict=True)
    lines = [(f"{device}: {refusal}", "red") for device, refusal in refusals if refusal]
    if len(running) > 1 and view.counters:
        together = _page(sheet, running, view, view.width or BROAD, whole=True)
        if together is not None:
            return [*lines, *together]
    for device in running:
        page = _page(sheet, [device], view, view.width)
        if page is None:
            return None
        name = [(sheet.devices[device], "bold")] if len(sheet.devices) > 1 else []
        lines += [*([("", "")] if lines else []), *name, *page]
    return lines


def _page(
    sheet: Sheet, devices: Sequence[int], view: View, width: int | None, whole: bool = False
) -> list[Line] | None:
    """Return one page; None if not one column fits or, with `whole`, not all of them."""
    columns = [*_source_columns(sheet, devices, view)]
    heat = _heat(columns, view)
    places = ["" if p == q else one_line(p) for p, q in _places(sheet.blocks)]
    texts = [one_line(_text(block)) for block in sheet.blocks]
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
    return [*_source_lines(columns, places, texts, text_width, heat)]


def _source_columns(sheet: Sheet, devices: Sequence[int], view: View) -> Iterator[Column]:
    """Yield a column per counter and device; all-zero columns only if requested."""
    tables = [
        {row.counter.qualified: row for section in block.sections for row in section.rows}
        for block in sheet.blocks
    ]
    rows = {name: row for table in tables for name, row in table.items()}
    named = [f"{OURS}.{name}" for name in COUNTERS[view.by]]
    sorting = [
        name
        for name, row in rows.items()
        if view.sort in (row.counter.name, name) and name not in named
    ]
    order = rows if view.counters else [name for name in (*sorting, *named) if name in rows]
    for name in order:
        for device in devices:
            counter = rows[name].counter
            values = [_value(counter, table.get(name), device) for table in tables]
            if not any(values) and not (view.counters and any(v is not None for v in values)):
                continue
            words = [word for word in re.split(r"(?<=[_.])", heading(counter)) if word]
            lines = (*([sheet.devices[device]] if len(devices) > 1 else []), *words)
            cells = (
                _cell(v, counter, t.get(name), device) for v, t in zip(values, tables, strict=True)
            )
            yield Column(counter.name, lines, tuple(cells), _parts(values))


def _parts(values: Sequence[Value]) -> tuple[float, ...]:
    """Return each value's share of their sum, from 0 to 1."""
    total = sum(value or 0 for value in values) or 1
    return tuple((value or 0) / total for value in values)


def _heat(columns: Sequence[Column], view: View) -> tuple[float, ...]:
    """Return the cost of each row: by the sort column, else by waste, bytes or work."""
    by_name = {column.name: column for column in reversed(columns)}
    candidates = (by_name[name] for name in (view.sort, *HEATED) if name in by_name)
    return next((column.parts for column in candidates if any(column.parts)), ())


def _cell(value: Value, counter: Counter, row: Row | None, device: int) -> str:
    if value == 0 and (row is None or row.interval(device) is None):
        return "."
    return number(value, counter) if row is None else estimate(row, device)


def _value(counter: Counter, row: Row | None, device: int) -> Value:
    """Return a cell: 0 if the block omits the counter because it counted nothing.

    A counter that only one grouping knows is never reported as 0 in that grouping.
    """
    if row is None:
        return None if counter.by else 0
    return row.values[device]


def _places(blocks: Sequence[Block]) -> Iterator[tuple[str, str]]:
    """Yield the file of each block, and that of the previous block."""
    before = ""
    for block in blocks:
        place = str(block.key.get("file", "") if "pc" not in block.key else "")
        yield place, before
        before = place


def _text(block: Block) -> str:
    """Return the text beside the numbers of a row."""
    key = block.key
    if "array" in key:
        return str(key["array"])
    place = f"{key['file']}:{key['line']}" if key.get("line") else "no source line"
    if "pc" in key:
        return f"pc {key['pc']}  {key['ptx']}  ({place})"
    return f"{key['line']}  {str(key['text']).rstrip()}" if key.get("line") else place


def _source_lines(
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
