"""Limits of a launch: the bound of each resource as bars, and a roofline per memory level.

A memory level (DRAM, L2 or L1) limits a launch to its FLOP per byte times the level's bandwidth in
bytes per second. The roof of a level rises with that product up to the peak of the cores. The
launch has one mark per level: at its arithmetic intensity (FLOP per byte of that level), and at the
speed of its estimated time, or of its lower bound, which no roof is below. The level whose mark is
nearest to its roof is the limit.
"""

from collections.abc import Iterator, Sequence
from html import escape
from math import ceil, floor, log10

from ..counting.bounds import Bound, amount_text, peak_gflops, time_text
from ..launch_profile import LaunchProfile
from ..text.svg import box, short, text

WIDTH, NAME, LABEL, ROW, TOP = 640, 168, 250, 24, 30
MOST = 8
"""Maximum number of resources drawn, the slowest first."""
HIGH, LEFT, RIGHT, BOTTOM = 320, 64, 90, 44
LABEL_GAP = 12
"""Vertical distance of two labels."""


def draw_limits(launch: LaunchProfile) -> Iterator[str]:
    """Yield the bars, then the rooflines if the launch computes in floating point."""
    if launch.bounds:
        yield _bars(launch.bounds[:MOST])
    flops = launch.counters.get("flops")
    levels = [bound for bound in launch.bounds if bound.unit == "bytes" and bound.ns]
    if flops and levels:
        bound = launch.bounds[0].ns
        ns, what = (
            (bound, "the lower bound")
            if not launch.estimate
            else (max(bound, launch.estimate.ns), "the estimated time")
        )
        yield _rooflines(
            float(flops), levels, peak_gflops(launch.bounds, float(flops)), float(flops) / ns, what
        )


def _bars(bounds: Sequence[Bound]) -> str:
    height = TOP + ROW * len(bounds)
    parts = [text(0, 16, "lower bound per resource", "name")]
    for number, bound in enumerate(bounds):
        y = TOP + number * ROW
        length = max(1.0, bound.ns / bounds[0].ns * (WIDTH - NAME - LABEL))
        caption = f"{time_text(bound.ns)} for {amount_text(bound)}"
        parts.append(text(NAME - 8, y + 14, bound.resource, anchor="end"))
        parts.append(box(NAME, y + 3, length, ROW - 9, "chart" if number else "limit", 2))
        parts.append(text(NAME + length + 6, y + 14, caption, "soft"))
    return _svg(height, "lower bound per resource", parts)


def _rooflines(
    flops: float, levels: Sequence[Bound], peak: float | None, speed: float, what: str
) -> str:
    """Return the rooflines on logarithmic axes: FLOP per byte to the right, GFLOP/s upwards.

    The marks are at `speed`, that of the time that `what` names.
    """
    dots = [(level.resource, flops / level.amount) for level in levels]
    nearest = max(levels, key=lambda level: level.ns).resource
    marks = [intensity for _, intensity in dots]
    if peak:
        marks += [peak * level.ns / level.amount for level in levels]
    speeds = [speed, *([peak] if peak else [flops / level.ns for level in levels])]
    x = _Axis(marks, LEFT, WIDTH - RIGHT)
    y = _Axis(speeds, HIGH - BOTTOM, TOP)
    parts = [
        text(0, 16, f"roofline at each level; {_speed(speed)} GFLOP/s at {what}", "name"),
        *_grid(x, y),
    ]
    if peak:
        parts.append(_line(x.low, peak, x.high, peak, x, y))
        parts.append(text(x.end + 6, y.at(peak) + 4, "cores", "soft"))
    label_heights: list[float] = [y.at(peak)] if peak else []
    for level, (name, intensity) in zip(levels, dots, strict=True):
        rate = level.amount / level.ns
        last = min(peak / rate if peak else x.high, x.high, y.high / rate)
        first = max(x.low, y.low / rate)
        parts.append(_line(first, rate * first, last, rate * last, x, y))
        style = "here" if name == nearest else "other"
        roof = min(flops / level.ns, peak or flops / level.ns)
        caption = f"{name}: {intensity:.3g} FLOP/byte, {_speed(roof)} GFLOP/s at most"
        parts.append(
            f'<circle class="{style}" cx="{short(x.at(intensity))}" cy="{short(y.at(speed))}"'
            f' r="5"><title>{escape(caption)}</title></circle>'
        )
        place = _free(y.at(speed) + 18, label_heights)
        is_right = x.at(intensity) > (x.begin + x.end) / 2
        side, anchor = (-9, "end") if is_right else (9, "start")
        parts.append(text(x.at(intensity) + side, place, name, "mark", anchor))
    summary = ", ".join(f"{name} {intensity:.3g}" for name, intensity in dots)
    return _svg(HIGH, f"roofline, {_speed(speed)} GFLOP/s at FLOP per byte: {summary}", parts)


def _speed(speed: float) -> str:
    """Format with three significant digits, or with all digits before the point.

    >>> _speed(41021.7), _speed(2.3281)
    ('41,022', '2.33')
    """
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"


def _free(place: float, label_heights: list[float]) -> float:
    """Return a label height that overlaps no earlier label."""
    while any(abs(place - other) < LABEL_GAP for other in label_heights):
        place += LABEL_GAP
    label_heights.append(place)
    return place


class _Axis:
    """Powers of ten that enclose some numbers."""

    def __init__(self, numbers: Sequence[float], begin: float, end: float) -> None:
        self.first, self.last = floor(log10(min(numbers))), ceil(log10(max(numbers)) + 1e-9)
        self.low, self.high = 10.0**self.first, 10.0**self.last
        self.begin, self.end = begin, end

    def at(self, number: float) -> float:
        """Return the coordinate of a number."""
        part = (log10(number) - self.first) / max(1, self.last - self.first)
        return self.begin + part * (self.end - self.begin)


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    """Yield a grid line per power of ten."""
    for power in range(y.first, y.last + 1):
        place = short(y.at(10.0**power))
        yield f'<path class="grid" d="M{short(x.begin)} {place}H{short(x.end)}"/>'
        yield text(x.begin - 8, float(place) + 4, _power(power), "soft", "end")
    for power in range(x.first, x.last + 1):
        yield text(x.at(10.0**power), HIGH - BOTTOM + 18, _power(power), "soft", "middle")
    yield text((x.begin + x.end) / 2, HIGH - 6, "FLOP per byte; GFLOP/s upwards", "soft", "middle")


def _power(power: int) -> str:
    """Format a power of ten without an exponent.

    >>> _power(6), _power(-2)
    ('1,000,000', '0.01')
    """
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:.{-power}f}"


def _line(x1: float, y1: float, x2: float, y2: float, x: _Axis, y: _Axis) -> str:
    begin, end = ((x.at(a), y.at(b)) for a, b in ((x1, y1), (x2, y2)))
    return (
        f'<path class="line" d="M{short(begin[0])} {short(begin[1])}'
        f'L{short(end[0])} {short(end[1])}"/>'
    )


def _svg(height: float, caption: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH} {short(height)}" width="{WIDTH}" role="img"'
        f' aria-label="{escape(caption)}">{"".join(parts)}</svg>'
    )
