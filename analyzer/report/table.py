"""The table for the terminal: rows are counters, columns devices, nothing shortened or cut.

Text is made first, as cells and styles. On a pipe it is printed as it is; on a terminal rich adds
the colours. A table that is wider than the terminal becomes one block a device.
"""

from collections.abc import Iterator, Sequence
from io import StringIO
from textwrap import wrap

from ..align import GAP, align, widths
from ..page import LEGEND, draw_pages
from ..profile import Profile
from ..sheet import Sheet, sheets
from ..wording import PTX_IS_NOT_SASS, absent, costs, estimate, is_folded, title, zeros

Entry = tuple[tuple[str, ...], str]
"""Cells and their rich style. One cell alone is a line of its own: it sets no column's width."""

SENTENCE = 100
"""Where sentences break at the latest."""


def render(profile: Profile) -> str:
    """The profile as text, coloured if its view says so."""
    lines = list(_lines(profile))
    if profile.view.colour:
        return _coloured(lines)
    return "\n".join(text.rstrip() for text, _ in lines) + "\n"


def _lines(profile: Profile) -> Iterator[tuple[str, str]]:
    """Every line and its style, top to bottom."""
    view = profile.view
    width = min(view.width or SENTENCE, SENTENCE)
    if view.first:
        yield from _sentence(view.first, width)
        yield "", ""
    laid_out = sheets(profile)
    for sheet in laid_out:
        yield sheet.heading, "bold"
        yield "", ""
        pages = draw_pages(sheet, view) if view.by != "launch" else None
        yield from pages if pages is not None else _tables(sheet, profile)
        yield "", ""
        if pages:
            yield from _sentence(LEGEND, width)
        yield from _words(sheet, profile, width)
    if any(sheet.follows_ptx for sheet in laid_out):
        yield from _sentence(PTX_IS_NOT_SASS, width)
    if view.last:
        yield f"next: {view.last}", "green"


def _tables(sheet: Sheet, profile: Profile) -> Iterator[tuple[str, str]]:
    """Counters in rows: a table of all devices, or of one after another."""
    for devices in _columns(sheet, profile):
        if devices[0]:
            yield "", ""
        cells, styles = zip(*_entries(sheet, devices, profile), strict=True)
        yield from zip(align(cells, numbers=True), styles, strict=True)


def _columns(sheet: Sheet, profile: Profile) -> list[range]:
    """All devices side by side, or, where that is wider than the terminal, one at a time."""
    every = range(len(sheet.devices))
    columns = widths([cells for cells, _ in _entries(sheet, every, profile)])
    if profile.view.width is None or sum(columns) + len(GAP) * len(every) <= profile.view.width:
        return [every]
    return [range(index, index + 1) for index in every]


def _entries(sheet: Sheet, devices: Sequence[int], profile: Profile) -> Iterator[Entry]:
    """The table of these devices, row by row."""
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


def _words(sheet: Sheet, profile: Profile, width: int) -> Iterator[tuple[str, str]]:
    """What is said under a table."""
    if sheet.left_out:
        yield from _sentence(sheet.left_out, width)
    if missing := absent(sheet, profile.view):
        yield from _sentence(missing, width)
        yield "", ""
    if folded := zeros(sheet, profile.view):
        yield from _sentence(folded, width)
        yield "", ""
    for line in costs(sheet):
        is_source = not line.startswith("  ")
        for part in [line] if is_source else wrap(line, width, subsequent_indent="  "):
            yield part, "yellow"
    for note in sheet.notes:
        yield from _sentence(note, width)
    yield "", ""


def _sentence(text: str, width: int) -> Iterator[tuple[str, str]]:
    """A sentence over as many lines as it needs, words and names whole."""
    for line in wrap(text, width, break_long_words=False, break_on_hyphens=False):
        yield line, ""


def _coloured(lines: list[tuple[str, str]]) -> str:
    """The lines with their styles as terminal codes."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=StringIO(), force_terminal=True)
    with console.capture() as captured:
        for text, style in lines:
            console.print(Text(text.rstrip(), style), soft_wrap=True)
    return captured.get()
