"""Occupancy curve: resident warps against threads, registers or shared memory."""

from collections.abc import Iterator
from html import escape

from ..text.svg import short, text
from .occupancy import WORDS, Curve

STYLE = """
svg.curve .grid { stroke: #999 } svg.curve .line { fill: none; stroke: #3a6fb5; stroke-width: 2.5 }
svg.curve circle.here { fill: #d66014 } svg.curve path.here { stroke: #d66014 }
svg.curve text { font: 13px system-ui; fill: currentColor }
"""
"""The style of curves outside of the report's page."""
WIDE, HIGH = 380, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 14, 44


def draw_curve(curve: Curve, most: int) -> str:
    """Return the drawing; `most` is the maximum number of resident warps of an SM."""
    last = curve.stretches[-1].last
    here = next(
        (s for s in curve.stretches if curve.here is not None and s.first <= curve.here <= s.last),
        None,
    )
    caption = f"warps on an SM against {WORDS[curve.field]}"
    suffix = f", here {curve.here}: {here.warps} of {most} warps" if here else ""
    return "\n".join(
        (
            f'<svg class="curve" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" role="img"'
            f' aria-label="{escape(caption + suffix)}">',
            *_axes(last, most, WORDS[curve.field]),
            f'<path class="line" d="{_path(curve, last, most)}"/>',
            *(_mark(curve.here or 0, here.warps, last, most) if here else ()),
            "</svg>",
        )
    )


def _path(curve: Curve, last: int, most: int) -> str:
    """Return the SVG path of the curve's steps."""
    words = []
    for number, part in enumerate(curve.stretches):
        y = short(_y(part.warps, most))
        begin = f"V{y}" if number else f"M{short(_x(part.first, last))} {y}"
        following = (
            curve.stretches[number + 1].first if number + 1 < len(curve.stretches) else part.last
        )
        words.append(f"{begin}H{short(_x(following, last))}")
    return "".join(words)


def _axes(last: int, most: int, what: str) -> Iterator[str]:
    """Yield grid lines at the quarters, with numbers at the ends."""
    for quarter in range(5):
        warps = most * quarter // 4
        y = _y(warps, most)
        yield f'<path class="grid" d="M{LEFT} {short(y)}H{WIDE - RIGHT}"/>'
        yield text(LEFT - 8, y + 4, str(warps), "soft", "end")
    for value, anchor in ((0, "start"), (last // 2, "middle"), (last, "end")):
        yield text(_x(value, last), HIGH - BOTTOM + 18, str(value), "soft", anchor)
    yield text((LEFT + WIDE - RIGHT) / 2, HIGH - 6, what, "soft", "middle")


def _mark(value: int, warps: int, last: int, most: int) -> Iterator[str]:
    """Yield the mark of the launch."""
    x, y = _x(value, last), _y(warps, most)
    yield f'<path class="here" d="M{short(x)} {short(y)}V{HIGH - BOTTOM}"/>'
    yield f'<circle class="here" cx="{short(x)}" cy="{short(y)}" r="5"/>'
    near_end = x > WIDE * 0.6
    yield text(
        x + (-10 if near_end else 10),
        max(y - 8, 12),
        f"{value}: {warps} warps",
        "mark",
        "end" if near_end else "start",
    )


def _x(value: float, last: int) -> float:
    return LEFT + value * (WIDE - LEFT - RIGHT) / max(last, 1)


def _y(warps: float, most: int) -> float:
    return TOP + (most - warps) * (HIGH - TOP - BOTTOM) / max(most, 1)
