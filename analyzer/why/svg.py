"""The explanation as one SVG for slides and pages, light or dark as its viewer is.

Lanes form a row with memory below, and a line leads from each lane to every piece that it requests.
All text of a trace is escaped, and the drawing loads no other file.
"""

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap

from ...base.sanitize import sanitize
from ...models.banks import Banks
from ...models.replay.interface.model import Model
from .explain import Explanation
from .picture import Group, Piece, name_address
from .search import Access
from .sentence import tell_units

WIDTH, MARGIN, BOX, GAP = 1200, 30, 26, 90
LINE, LETTERS = 22, 125
STYLE = """\
svg { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #6a737d; --lane: #4078c0;
 --wanted: #2c974b; --bad: #d1242f; --empty: #e6e9ed }
@media (prefers-color-scheme: dark) { svg { --paper: #14171b; --ink: #e6e9ed; --soft: #9aa4af;
 --lane: #6ea8fe; --wanted: #57ab5a; --bad: #f47067; --empty: #2d333b } }
.paper { fill: var(--paper) } .lane { fill: var(--lane) } .wanted { fill: var(--wanted) }
.empty { fill: var(--empty) } .bad { fill: var(--bad) }
.wire { stroke: var(--lane); stroke-width: 1.2; opacity: .55 }
.wire.late { stroke: var(--bad) }
text { fill: var(--ink); font: 14px ui-monospace, Menlo, Consolas, monospace }
text.say { font: 600 19px system-ui, sans-serif } text.soft { fill: var(--soft) }
text.tiny { font-size: 10px; text-anchor: middle } text.on { fill: var(--paper) }
"""


def draw_together(explanations: Sequence[Explanation]) -> str:
    """Return one drawing with all devices, one below the other."""
    parts: list[str] = []
    top = MARGIN
    for explanation in explanations:
        words, top = _words(explanation, top)
        drawn, top = _picture(explanation, top)
        parts += [*words, *drawn]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img">',
            f"<title>{escape('; '.join(e.sentence or e.refusal for e in explanations))}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{top}"/>',
            *parts,
            "</svg>\n",
        )
    )


def draw(explanation: Explanation) -> str:
    """Draw one device's picture without its words, for a page that has the style."""
    parts, top = _picture(explanation, 0)
    return "\n".join(
        (
            f'<svg class="access" viewBox="0 0 {WIDTH} {top}" role="img">',
            f"<title>{escape(explanation.sentence)}</title>",
            *parts,
            "</svg>",
        )
    )


def _words(explanation: Explanation, top: int) -> tuple[list[str], int]:
    """Return the text above a picture, and the y where the picture begins."""
    place = f"{explanation.place}  {explanation.source}" if explanation.place else ""
    caption = f"{explanation.device}: {explanation.sentence or explanation.refusal}"
    lines = [
        *((line, "soft") for line in wrap(place, LETTERS)),
        *((line, "say") for line in wrap(caption, LETTERS)),
        *((line, "soft") for line in wrap(explanation.reason, LETTERS)),
    ]
    parts = []
    for text, style in lines:
        top += LINE
        parts.append(_text(MARGIN, top, text, style))
    return parts, top + LINE


def _picture(explanation: Explanation, top: int) -> tuple[list[str], int]:
    """Return the elements of a picture, and the y where the next one begins."""
    parts: list[str] = []
    access = explanation.access
    if access is None:
        return parts, top
    for group in explanation.groups:
        parts += _group(explanation, access, group, top)
        top += _height(group)
    return [*parts, *_bars(access, top)], top + 4 * LINE + MARGIN


def _height(group: Group) -> int:
    """Return the height of a group: as many rows as its fullest bank has pieces."""
    return BOX + GAP + max(1, len(group.crowded) if _is_banked(group) else 1) * BOX + 2 * LINE


def _group(explanation: Explanation, access: Access, group: Group, top: int) -> Iterator[str]:
    """Draw the lanes, wires and pieces of one group."""
    places = list(_places(access, group, top + BOX + GAP))
    late = {
        piece for piece, (_, y, _) in zip(group.pieces, places, strict=True) if y > places[0][1]
    }
    columns = group.last + 1 - group.first
    for piece, (x, y, width) in zip(group.pieces, places, strict=True):
        for lane in piece.lanes:
            style = "wire late" if piece in late else "wire"
            start = _column(lane - group.first, columns)
            yield f'<path class="{style}" d="M{start} {top + BOX} L{x + width // 2} {y}"/>'
    for lane in range(group.first, group.last + 1):
        on = access.addresses[lane] is not None
        yield _box(_column(lane - group.first, columns) - BOX // 2, top, BOX, "lane", on)
        style = "tiny on" if on else "tiny soft"
        yield _text(_column(lane - group.first, columns), top + 17, str(lane), style)
    for bank in range(access.model.banks if isinstance(access.model, Banks) else 0):
        x, width = _bank(access.model, bank)
        yield _box(x, top + BOX + GAP, width, "empty", True, BOX - 4)
    for piece, (x, y, width) in zip(group.pieces, places, strict=True):
        yield from _piece(piece, x, y, width, piece in late)
    if group.pieces and not _is_banked(group):
        space = access.kind.space
        ends = (group.pieces[0], group.pieces[-1])
        first, last = (name_address(p.address, space, explanation.arrays) for p in ends)
        y = places[0][1] + BOX + 18
        yield _text(places[0][0], y, first if first == last else f"{first} ... {last}", "soft")


def _places(access: Access, group: Group, top: int) -> Iterator[tuple[int, int, int]]:
    """Yield the position of each piece, (x, y, width): side by side, or stacked in banks."""
    inner = WIDTH - 2 * MARGIN
    if not _is_banked(group):
        width = min(inner // max(len(group.pieces), 1), 8 * BOX)
        for number in range(len(group.pieces)):
            yield MARGIN + number * width, top, width - 4
        return
    depth: dict[int, int] = {}
    for piece in group.pieces:
        bank = piece.bank or 0
        row = depth[bank] = depth.get(bank, -1) + 1
        x, width = _bank(access.model, bank)
        yield x, top + row * BOX, width


def _bank(model: Model, bank: int) -> tuple[int, int]:
    """Return the x of a bank's column, and its width."""
    step = (WIDTH - 2 * MARGIN) // (model.banks if isinstance(model, Banks) else 1)
    return MARGIN + bank * step, step - 4


def _piece(piece: Piece, x: int, y: int, width: int, is_bad: bool) -> Iterator[str]:
    """Draw a transaction with its cells, or a word with its bank's number."""
    if not piece.requested:
        yield _box(x, y, width, "bad" if is_bad else "wanted", True, BOX - 4)
        label = str(piece.bank) if piece.bank is not None else ""
        yield _text(x + width // 2, y + 15, label, "tiny on")
        return
    cells = len(piece.requested)
    for number, is_needed in enumerate(piece.requested):
        start, right = x + number * width / cells, x + (number + 1) * width / cells
        style = "wanted" if is_needed else "empty"
        yield (
            f'<rect class="{style}" x="{start:.2f}" y="{y}" width="{right - start - 0.5:.2f}"'
            f' height="{BOX}"/>'
        )


def _bars(access: Access, top: int) -> Iterator[str]:
    """Draw bars for the cost and for the ideal cost."""
    most = max(access.cost, access.ideal, 1)
    cost = "bad" if access.cost > access.ideal else "wanted"
    bars = (("costs", access.cost, cost), ("needed", access.ideal, "wanted"))
    for number, (words, value, style) in enumerate(bars):
        y = top + LINE + number * (LINE + 8)
        width = max(2, value * (WIDTH - 2 * MARGIN - 260) // most)
        yield _text(MARGIN, y + 15, words, "soft")
        yield _box(MARGIN + 90, y, width, style, True, LINE)
        yield _text(MARGIN + 100 + width, y + 15, tell_units(value, access.unit), "")


def _is_banked(group: Group) -> bool:
    return any(piece.bank is not None for piece in group.pieces)


def _column(number: int, columns: int) -> int:
    """Return the middle of a lane's column."""
    step = (WIDTH - 2 * MARGIN) // columns
    return MARGIN + number * step + step // 2


def _box(x: int, y: int, width: int, style: str, on: bool, height: int = BOX) -> str:
    shown = style if on else "empty"
    return f'<rect class="{shown}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>'


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}">{escape(sanitize(text))}</text>'
