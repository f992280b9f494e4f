"""Memory data flow: boxes from the warps to memory, arrows labelled with bytes."""

from collections.abc import Collection, Iterator
from html import escape

from ..counting.bounds import traffic_text
from ..counting.memory_flow import NEEDED, Box, Flow, Link
from ..text.svg import box, short, text

WIDE, LINE, HEAD, GAP, REACH = 188, 18, 26, 22, 104
"""Box width, line height, title height; vertical gap and horizontal distance of boxes."""
THICK, THIN = 12.0, 1.5
"""Width of the arrow with most bytes, and minimum width."""
MARGIN = 8
LEAST = 62
"""Minimum height of a box: it has room for an arrow in each direction."""
APART = 17
"""Distance between the arrows of loads and of stores."""
Spot = tuple[float, float, float]
"""Left, top and height of a box."""


def draw_flow(flow: Flow, title: str, bad: Collection[str] = ()) -> str:
    """Return the drawing, to embed in a page with the style sheet.

    `bad` are the units with advice: their minimum traffic is highlighted.
    """
    spots = dict(_place(flow))
    width = max(x + WIDE for x, _, _ in spots.values()) + MARGIN
    height = max(y + high for _, y, high in spots.values()) + MARGIN
    most = max((max(link.loads, link.stores) for link in flow.links), default=1) or 1
    parts = [part for link in flow.links for part in _link(link, spots, most)]
    parts += [part for one in flow.boxes for part in _box(one, spots[one.name], one.name in bad)]
    return "\n".join(
        (
            f'<svg class="flow" viewBox="0 0 {short(width)} {short(height)}" width="{short(width)}"'
            f' role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            *parts,
            "</svg>",
        )
    )


def _place(flow: Flow) -> Iterator[tuple[str, Spot]]:
    """Yield box positions: spaces in a column; each unit level with its neighbours, to keep arrows
    straight.

    Units of one column that would overlap are pushed apart.
    """
    spots: dict[str, Spot] = {}
    y = float(MARGIN)
    for one in (one for one in flow.boxes if one.column == 1):
        spots[one.name] = (_left_edge(one), y, _height(one))
        y += _height(one) + GAP
    last = max((one.column for one in flow.boxes), default=0)
    # Column 1 (the state spaces) is fixed; the columns to its right are placed from left to right,
    # then the warps in column 0. Thus all neighbours of a box already have positions.
    for column in (*range(2, last + 1), 0):
        free = float(MARGIN)
        for one in (one for one in flow.boxes if one.column == column):
            tied = [link.far if column == 0 else link.near for link in flow.links]
            mine = [link.near if column == 0 else link.far for link in flow.links]
            neighbors = [spots[o] for o, m in zip(tied, mine, strict=True) if m == one.name]
            top = max(min((spot[1] for spot in neighbors), default=free), free)
            end = max((spot[1] + spot[2] for spot in neighbors), default=top)
            spots[one.name] = (_left_edge(one), top, max(_height(one), end - top))
            free = top + spots[one.name][2] + GAP
    yield from spots.items()


def _left_edge(one: Box) -> float:
    return MARGIN + one.column * (WIDE + REACH)


def _height(one: Box) -> float:
    return max(HEAD + LINE * len(one.lines) + 12, LEAST)


def _box(one: Box, spot: Spot, is_bad: bool) -> Iterator[str]:
    x, y, high = spot
    yield box(x, y, WIDE, high, "unit")
    yield text(x + 12, y + HEAD - 5, one.title, "name")
    for number, line in enumerate(one.lines):
        style = "bad" if is_bad and line.endswith(NEEDED) else "soft"
        yield text(x + 12, y + HEAD + LINE * (number + 1) - 6, line, style, most=WIDE - 24)


def _link(link: Link, spots: dict[str, Spot], most: int) -> Iterator[str]:
    """Yield up to two arrows: loads on top, towards the warps; stores below, away from them."""
    near, far = spots[link.near], spots[link.far]
    both = bool(link.loads and link.stores)
    for bytes_, style, shift in ((link.loads, "load", -1), (link.stores, "store", 1)):
        if bytes_:
            off = shift * APART / 2 if both else 0.0
            yield from _arrow(near, far, off, bytes_, style, most)


def _arrow(near: Spot, far: Spot, off: float, bytes_: int, style: str, most: int) -> Iterator[str]:
    """Yield a curve between boxes with its bytes, above it for a load and below it for a store."""
    x1, x2 = near[0] + WIDE + 2, far[0] - 2
    y1, y2 = _middle(near, far) + off, _middle(far, near) + off
    thick = max(THIN, THICK * (bytes_ / most) ** 0.5)
    tip = 5 + thick / 2
    to_left = style == "load"
    start, end = (x1 + tip, x2) if to_left else (x1, x2 - tip)
    middle = (start + end) / 2
    stops = ((start, y1), (middle, y1), (middle, y2), (end, y2))
    first, *tail = (f"{short(x)} {short(y)}" for x, y in stops)
    path = f"M{first}C{' '.join(tail)}"
    head_x, head_y, way = (x1, y1, 1) if to_left else (x2, y2, -1)
    head = (
        f"M{short(head_x)} {short(head_y)}l{short(way * tip)} {short(-tip * 0.75)}"
        f"v{short(tip * 1.5)}z"
    )
    yield f'<g class="{style}"><title>{bytes_} bytes {"loaded" if to_left else "stored"}</title>'
    yield f'<path class="way" stroke-width="{short(thick)}" d="{path}"/>'
    yield f'<path class="tip" d="{head}"/>'
    above = -(thick / 2 + 4) if to_left else thick / 2 + 13
    yield text(middle, (y1 + y2) / 2 + above, traffic_text(bytes_), "bytes", "middle")
    yield "</g>"


def _middle(one: Spot, other: Spot) -> float:
    """Return the height at which a link leaves a box: level with the lower of both, within its
    side.
    """
    _, y, high = one
    low = min(one, other, key=lambda spot: spot[2])
    return min(max(low[1] + low[2] / 2, y + 20), y + high - 20)
