"""Explanations as a document: sentences, and a table of the lanes that stands for the drawing."""

from collections.abc import Iterator, Sequence
from functools import partial
from textwrap import wrap

from ...base.sanitize import one_line
from ..report.document import Block, Document, Figure, Next, Note, Section, listing
from ..report.view import View
from ..text.layout import GAP, wrapped
from .explain import Explanation
from .picture import Group, Piece, name_address
from .sentence import list_lanes
from .svg import draw_together

REQUESTED, NOT_REQUESTED = "#", "."


HANG = "    "
FEW = 8
"""Most rows alike that are all shown."""


def why_document(explanations: Sequence[Explanation], view: View) -> Document:
    """Return the document of explanations, with a picture per device."""
    return Document(
        view,
        lambda: _sections(explanations, view),
        lambda: (COLUMNS, map(_values, explanations)),
        name="why",
    )


COLUMNS = {
    **{"device": str, "place": str, "access": str, "cost": int, "ideal": int, "unit": str},
    **{"sentence": str, "reason": str, "refusal": str, "addresses": list[int]},
}
"""`addresses` has one per lane of the warp, null for an inactive lane; in global memory as an
offset into the session's memory, as arrays have it.
"""


def _values(e: Explanation) -> tuple[object, ...]:
    access = e.access
    cells = (access.identifier, access.cost, access.ideal, access.unit) if access else ()
    return (
        *(e.device, str(e.place or ""), *(cells or ("", None, None, ""))),
        *(e.sentence, e.reason, e.refusal),
        [*access.addresses] if access else [],
    )


def _sections(explanations: Sequence[Explanation], view: View) -> Iterator[Section]:
    if view.first:
        yield [Note(view.first, is_whole=True)]
    for number, explanation in enumerate(explanations):
        if _is_new(explanations, number) and explanation.place:
            source = one_line(f"{explanation.place}  {explanation.source}".rstrip())
            yield [Note(source, is_whole=True, is_code=True)]
        yield [*_head(explanation)]
        if lines := [*_picture(explanation, view.width)]:
            drawn = listing(lines[1:])  # the first is blank
            yield [Figure(partial(draw_together, [explanation]), (drawn,))]
    if view.last:
        yield [Next(view.last)]


def _is_new(explanations: Sequence[Explanation], number: int) -> bool:
    """Return whether the source line differs from the one of the device before."""
    return number == 0 or explanations[number].place != explanations[number - 1].place


def _head(explanation: Explanation) -> Iterator[Block]:
    """Yield the sentences: what it costs, why, and of which warp."""
    access = explanation.access
    if access is None:
        yield Note(f"{explanation.device}: {explanation.refusal}", is_whole=True)
        return
    texts = (
        f"{explanation.device}: {explanation.sentence}",
        explanation.reason,
        f"block {explanation.block}, warp {access.warp} of {explanation.launch}",
        f"access {access.identifier}: {explanation.ptx}",
    )
    yield from (Note(text, hang=HANG, is_whole=True) for text in texts if text)


def _picture(explanation: Explanation, width: int | None) -> Iterator[str]:
    """Yield a table per group of lanes; equal groups appear once."""
    for group in explanation.groups:
        yield ""
        if len(explanation.groups) > 1:
            word = f", word {group.word}" if any(g.word for g in explanation.groups) else ""
            yield f"lanes {group.first} to {group.last}{word}"
        yield from _table(explanation, group, width)
    if explanation.others:
        yield ""
        yield "also on this line:"
        for other in explanation.others:
            yield from _wrapped(f"- {other}", width)


def _table(explanation: Explanation, group: Group, width: int | None) -> Iterator[str]:
    """Yield a row per piece; only the last column, its lanes, may wrap."""
    space = explanation.access.kind.space if explanation.access else ""
    arrays = () if space == "local" else explanation.arrays
    rows = [tuple(_cells(p, name_address(p.address, space, arrays))) for p in group.pieces]
    head = tuple(_names(group.pieces[0]))
    size = [max(map(len, column)) for column in zip(head, *(row[:-1] for row in rows), strict=True)]
    for row in ((*head, "lanes"), *_without_repetition(group.pieces, rows)):
        if len(row) == 1:
            yield f"...  {row[0]}"
            continue
        *cells, lanes = row
        start = GAP.join(cell.ljust(n) for cell, n in zip(cells, size, strict=True)) + GAP
        first, *tail = _fold(lanes, width and width - len(start))
        yield start + first
        yield from (" " * len(start) + line for line in tail)


def _without_repetition(
    pieces: Sequence[Piece], rows: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table; of a run of equal pieces at one distance the first two and the
    last, with a row of one cell, a sentence on the others, between them.
    """
    begin = 0
    while begin < len(rows):
        end = begin + 1
        while end < len(rows) and _continues(pieces[begin : end + 1]):
            end += 1
        if end - begin <= FEW:
            end = begin + 1
            yield rows[begin]
        else:
            step = pieces[begin + 1].address - pieces[begin].address
            yield from rows[begin : begin + 2]
            yield (f"{end - begin - 3} more alike, each {step:,} bytes on",)
            yield rows[end - 1]
        begin = end


def _continues(pieces: Sequence[Piece]) -> bool:
    """Return whether the last piece is like those before it, one lane and one distance on."""
    first, second, *_ = pieces
    *_, before, last = pieces
    return (
        last.address - before.address == second.address - first.address
        and (last.size, last.requested, last.bank) == (first.size, first.requested, first.bank)
        and len(last.lanes) == len(first.lanes) == len(second.lanes)
        and last.lanes[0] - before.lanes[0] == second.lanes[0] - first.lanes[0]
    )


def _names(piece: Piece) -> Iterator[str]:
    if piece.bank is not None:
        yield "bank"
    yield "address"
    if piece.requested:
        yield from ("bytes", f"{REQUESTED} used {NOT_REQUESTED} not")


def _cells(piece: Piece, address: str) -> Iterator[str]:
    if piece.bank is not None:
        yield str(piece.bank)
    yield address
    if piece.requested:
        yield str(piece.size)
        yield "".join(REQUESTED if is_needed else NOT_REQUESTED for is_needed in piece.requested)
    yield list_lanes(piece.lanes)


def _fold(text: str, width: int | None) -> list[str]:
    """Wrap the text to this width at words."""
    if width is None or len(text) <= width:
        return [text]
    return wrap(text, max(width, 8), break_long_words=False)


def _wrapped(text: str, width: int | None) -> list[str]:
    """Wrap a sentence to the terminal; a pipe gets one line."""
    if width is None:
        return [text] if text else []
    return wrapped(text, width, hang=HANG)
