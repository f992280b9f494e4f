"""Reuse as text for terminals and pipes: a table of sizes per cache, or a map of its sets."""

from collections.abc import Iterator, Sequence

from ..text.launch_text import launch_text
from ..text.layout import align, wrapped
from ..text.svg import count_bytes
from .reuse import CacheReuse

WIDE, HIGH, LISTED = 64, 8, 8
"""Characters of a map; sets that are listed."""
SHADES = ".123456789"
"""Shades of a part of a map: its lost sectors relative to the worst part."""


def render(
    reuses: Sequence[CacheReuse], by: str, width: int | None = None, first: str = "", last: str = ""
) -> str:
    """Return a table per cache, under the heading of its launch."""
    lines = [first, ""] if first else []
    heading = ""
    groups: dict[tuple[object, ...], list[CacheReuse]] = {}
    for one in reuses:
        same = launch_text(one.launch), one.device, one.cache, one.points, one.uses
        groups.setdefault(same, []).append(one)
    for one, *others in groups.values():
        times = f"  ({1 + len(others)} launches)" if others else ""
        if (text := launch_text(one.launch) + times) != heading:
            heading = text
            lines += [heading, ""]
        lines += [*_sentences(one, by, width), ""]
        lines += [*(_map(one) if by == "set" else align([*_table(one)], numbers=True)), ""]
    if not reuses:
        lines += ["no load reaches a cache", ""]
    return "\n".join((*lines, f"next: {last}" if last else "")).rstrip("\n") + "\n"


def sentence(one: CacheReuse) -> str:
    """Return a cache's requests, and the capacities that would hit on parts of them."""
    ninety, most = (count_bytes(one.room_for(part)) for part in (0.9, 1.0))
    again = one.accesses - one.cold
    part = "" if ninety == most else f"90 % of the rest, {most} "
    capacity_text = (
        f"; {ninety} of room find {part}all{' of the rest' * (not part)}" if again else ""
    )
    return (
        f"{one.device} {one.cache}: loads ask for {one.accesses:,} sectors,"
        f" {percent(one.ratio(one.cold))} of them for the first time{capacity_text}"
    )


def percent(ratio: float | None) -> str:
    """Format a ratio with three digits or more; empty if there is none."""
    return "" if ratio is None else f"{100 * ratio:.1f}".removesuffix(".0") + " %"


def _sentences(one: CacheReuse, by: str, width: int | None) -> Iterator[str]:
    texts = [sentence(one)]
    if one.sampled > 1:
        texts.append(f"one line in {one.sampled} was looked at; +- is right 95 times in 100")
    if by == "set":
        sets = f"{one.sets} sets" if one.sets > 1 else "one set"
        lost, beyond = sum(use.lost for use in one.uses), one.conflicts
        texts.append(
            f"{count_bytes(one.own)} in {sets}: {lost:,} sectors are lost before they are used"
            f" again, {abs(beyond):,} {'fewer' if beyond < 0 else 'more'} than in one set"
        )
    for text in texts:
        yield from wrapped(text, width, hang="")


def _table(one: CacheReuse) -> Iterator[tuple[str, ...]]:
    error = ("+-",) if one.sampled > 1 else ()
    yield "room", "reused within", "missed", *error, "miss ratio"
    for point in one.points:
        own = "  (its own)" if point.bytes == one.own // one.line * one.line else ""
        off = (f"{point.error:,}",) if error else ()
        ratio = percent(one.ratio(point.misses))
        yield f"{_size(point.bytes)}{own}", f"{point.reuses:,}", f"{point.misses:,}", *off, ratio


def _size(number: int) -> str:
    return f"{number >> 10:,} KiB" if number % 1024 == 0 else f"{number:,} B"


def _map(one: CacheReuse) -> Iterator[str]:
    """Yield the set map, several sets per character if there are many, then the worst sets."""
    listed = sorted(one.uses, key=lambda use: (-use.lost, -use.accesses, use.number))[:LISTED]
    together = -(-len(one.uses) // (WIDE * HIGH))
    lost = [use.lost for use in one.uses]
    parts = [sum(lost[at : at + together]) for at in range(0, len(lost), together)]
    if most := max(parts):
        sets = "a set" if together == 1 else f"{together} sets"
        yield f"lost, {sets} a character, 9 is {most:,}:"
        drawn = "".join(SHADES[-(-9 * part // most)] for part in parts)
        for at in range(0, len(drawn), WIDE):
            yield f"{at * together:>6}  {drawn[at : at + WIDE]}"
        yield ""
    rows = [(str(u.number), *(f"{n:,}" for n in (u.accesses, u.cold, u.lost))) for u in listed]
    yield from align([("set", "asked", "first time", "lost"), *rows], numbers=True)
