"""Reuse as a document: a table of sizes per cache, or a map of its sets."""

from collections.abc import Iterator, Sequence
from functools import partial

from ..occupancy.curve_svg import STYLE
from ..report.document import Document, Figure, Heading, Next, Note, Section, Table, listing, row
from ..report.view import View
from ..text.launch_text import launch_text
from ..text.svg import count_bytes
from .reuse import CacheReuse, percent, sentence
from .reuse_svg import draw_reuse

WIDE, HIGH, LISTED = 64, 8, 8
"""Characters of a map; sets that are listed."""
SHADES = ".123456789"
"""Shades of a part of a map: its lost sectors relative to the worst part."""


def reuse_document(reuses: Sequence[CacheReuse], by: str, view: View) -> Document:
    """Return the document of some caches: by `reuse`, caches of any size, or by `set`."""
    return Document(
        view,
        lambda: _sections(reuses, by, view),
        lambda: (SET_COLUMNS, _sets(reuses)) if by == "set" else (COLUMNS, _points(reuses)),
        name=by,
    )


HEAD = {"launch": int, "kernel": str, "device": str, "cache": str}
COLUMNS = {
    **HEAD,
    **{"bytes": int, "accesses": int, "misses": int, "error": int, "miss_ratio": float},
    **{"reuses": int, "working_set": int},
}
SET_COLUMNS = {**HEAD, "set": int, "accesses": int, "cold": int, "lost": int}


def head(one: CacheReuse) -> tuple[object, ...]:
    """Return the values of HEAD."""
    return one.number, one.launch.name, one.device, one.cache


def _points(reuses: Sequence[CacheReuse]) -> Iterator[tuple[object, ...]]:
    for one in reuses:
        for p in one.points:
            missed = p.misses, p.error, one.ratio(p.misses)
            yield *head(one), p.bytes, one.accesses, *missed, p.reuses, one.working_set


def _sets(reuses: Sequence[CacheReuse]) -> Iterator[tuple[object, ...]]:
    for one in reuses:
        yield from ((*head(one), u.number, u.accesses, u.cold, u.lost) for u in one.uses)


def _sections(reuses: Sequence[CacheReuse], by: str, view: View) -> Iterator[Section]:
    """Yield a table per cache, under the heading of its launch."""
    if view.first:
        yield [Note(view.first, is_whole=True)]
    heading = ""
    groups: dict[tuple[object, ...], list[CacheReuse]] = {}
    for one in reuses:
        same = launch_text(one.launch), one.device, one.cache, one.points, one.uses
        groups.setdefault(same, []).append(one)
    for one, *others in groups.values():
        times = f"  ({1 + len(others)} launches)" if others else ""
        if (text := launch_text(one.launch) + times) != heading:
            heading = text
            yield [Heading(heading)]
        yield [Note(text) for text in _sentences(one, by)]
        if by == "set":
            yield from _map(one)
        else:
            yield [Figure(partial(_draw, one), (_table(one),))]
    if not reuses:
        yield [Note("no load reaches a cache")]
    if view.last:
        yield [Next(view.last)]


def _draw(one: CacheReuse) -> str:
    return f"<style>{STYLE}</style>{draw_reuse([one])}"


def _sentences(one: CacheReuse, by: str) -> Iterator[str]:
    yield sentence(one)
    if one.sampled > 1:
        yield (f"one line in {one.sampled} was looked at; +- is right 95 times in 100")
    if by == "set":
        sets = f"{one.sets} sets" if one.sets > 1 else "one set"
        lost, beyond = sum(use.lost for use in one.uses), one.conflicts
        yield (
            f"{count_bytes(one.own)} in {sets}: {lost:,} sectors are lost before they are used"
            f" again, {abs(beyond):,} {'fewer' if beyond < 0 else 'more'} than in one set"
        )


def _table(one: CacheReuse) -> Table:
    error = ("+-",) if one.sampled > 1 else ()
    rows = []
    for point in one.points:
        own = "  (its own)" if point.bytes == one.own // one.line * one.line else ""
        off = (f"{point.error:,}",) if error else ()
        ratio = percent(one.ratio(point.misses))
        cells = f"{point.reuses:,}", f"{point.misses:,}", *off, ratio
        rows.append(row(_size(point.bytes) + own, *cells))
    return Table(("reused within", "missed", *error, "miss ratio"), tuple(rows), corner="room")


def _size(number: int) -> str:
    return f"{number >> 10:,} KiB" if number % 1024 == 0 else f"{number:,} B"


def _map(one: CacheReuse) -> Iterator[Section]:
    """Yield the set map, several sets per character if there are many, then the worst sets."""
    listed = sorted(one.uses, key=lambda use: (-use.lost, -use.accesses, use.number))[:LISTED]
    together = -(-len(one.uses) // (WIDE * HIGH))
    lost = [use.lost for use in one.uses]
    parts = [sum(lost[at : at + together]) for at in range(0, len(lost), together)]
    if most := max(parts):
        sets = "a set" if together == 1 else f"{together} sets"
        drawn = "".join(SHADES[-(-9 * part // most)] for part in parts)
        yield [
            Note(f"lost, {sets} a character, 9 is {most:,}:"),
            listing(
                f"{at * together:>6}  {drawn[at : at + WIDE]}" for at in range(0, len(drawn), WIDE)
            ),
        ]
    rows = (row(u.number, *(f"{n:,}" for n in (u.accesses, u.cold, u.lost))) for u in listed)
    yield [Table(("asked", "first time", "lost"), tuple(rows), corner="set")]
