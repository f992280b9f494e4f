"""Miss-ratio curves: the share of sectors that a cache of each size misses."""

from collections.abc import Iterator, Sequence
from html import escape
from math import log2

from ..text.svg import count_bytes, short, text
from .reuse import CacheReuse, Point, percent

WIDE, HIGH = 380, 210
LEFT, RIGHT, TOP, BOTTOM = 54, 14, 14, 44


def draw_reuse(curves: Sequence[CacheReuse]) -> str:
    """Return a drawing per cache, with a mark at the device's own size; none for a flat curve."""
    return "".join(_draw(one) for one in curves if len({p.misses for p in one.points}) > 1)


def _draw(one: CacheReuse) -> str:
    first, last = one.points[0].bytes, one.points[-1].bytes
    own = next((p for p in one.points if p.bytes == one.own // one.line * one.line), None)
    caption = f"miss ratio of {one.cache} on {one.device} against its size"
    suffix = f", {percent(one.ratio(own.misses))} at its own, {count_bytes(one.own)}" if own else ""

    def place(point: Point) -> tuple[float, float]:
        across = log2(point.bytes / first) / max(log2(last / first), 1e-9)
        down = 1 - (one.ratio(point.misses) or 0)
        return LEFT + across * (WIDE - LEFT - RIGHT), TOP + down * (HIGH - TOP - BOTTOM)

    path = "L".join(f"{short(x)} {short(y)}" for x, y in map(place, one.points))
    return "\n".join(
        (
            f'<svg class="curve" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" role="img"'
            f' aria-label="{escape(caption + suffix)}">',
            *_axes(first, last, one.cache),
            f'<path class="line" d="M{path}"/>',
            *(_mark(*place(own), percent(one.ratio(own.misses))) if own else ()),
            "</svg>",
        )
    )


def _axes(first: int, last: int, cache: str) -> Iterator[str]:
    """Yield grid lines at the quarters, with numbers."""
    for quarter in range(5):
        y = TOP + (4 - quarter) * (HIGH - TOP - BOTTOM) / 4
        yield f'<path class="grid" d="M{LEFT} {short(y)}H{WIDE - RIGHT}"/>'
        yield text(LEFT - 8, y + 4, f"{25 * quarter} %", "soft", "end")
    yield text(LEFT, HIGH - BOTTOM + 18, count_bytes(first), "soft")
    yield text(WIDE - RIGHT, HIGH - BOTTOM + 18, count_bytes(last), "soft", "end")
    yield text((LEFT + WIDE - RIGHT) / 2, HIGH - 6, f"missed by size of {cache}", "soft", "middle")


def _mark(x: float, y: float, label: str) -> Iterator[str]:
    """Yield the mark of the device's own cache."""
    yield f'<circle class="here" cx="{short(x)}" cy="{short(y)}" r="5"/>'
    near_end = x > WIDE * 0.6
    side, anchor = (-10, "end") if near_end else (10, "start")
    yield text(x + side, max(y - 8, 12), f"its own: {label}", "mark", anchor)
