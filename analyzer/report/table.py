"""Terminal table: rows are counters, columns are devices; nothing is shortened or cut.

The text is built first, as cells and styles. On a pipe it is printed as it is; on a terminal rich
adds colours. A table wider than the terminal is transposed, or split into several blocks.
"""

from collections.abc import Iterator, Sequence
from io import StringIO
from textwrap import wrap

from ...base.sanitize import Styled, sanitize
from ..brief import MORE, distinct_launches, is_brief, launch_lines
from ..counting.vocabulary import OURS
from ..overview import (
    costliest_number,
    costliest_only,
    is_long,
    overview_tables,
    summary,
)
from ..profile import Profile
from ..sheet import Sheet, sheets
from ..source_page import BROAD, LEGEND, draw_pages
from ..text.launch_text import source_links
from ..text.layout import GAP, SENTENCE, align, widths, wrapped
from ..wording import (
    PTX_IS_NOT_SASS,
    absent,
    costs,
    estimate,
    is_folded,
    limits,
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
        yield from _brief(profile, width)
        return
    if is_long(profile):
        yield from _overview(profile, width)
        if view.by == "launch":
            return
        profile = costliest_only(profile)
    yield from _launches(profile, width)


def _brief(profile: Profile, width: int) -> Iterator[tuple[str, str]]:
    """Yield the summary: a few lines per launch, and the commands for more."""
    for on, times in distinct_launches(profile):
        heading, *others = launch_lines(on)
        yield f"{heading[0]}  ({times} launches)" if times > 1 else heading[0], heading[1]
        for text, style in others:
            if style:
                yield from ((part, style) for part in _source_line(text, profile.view.width))
            else:
                yield from _sentence(text, width)
        yield "", ""
    if profile.view.advice:
        yield from _sentence(profile.view.advice, width)
    if profile.view.quiet:
        return
    yield from _sentence(MORE, width)
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
        for text in limits(sheet):
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
    for number, devices in enumerate(_columns(sheet, profile)):
        if number:
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
