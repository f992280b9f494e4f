"""Charts of one launch on many devices: one per counter, a bar per device, by compute
capability."""

from collections.abc import Iterator, Sequence
from html import escape
from math import log10

from ..counting.bounds import time_text, traffic_text
from ..counting.evaluate import Value
from ..launch_profile import LaunchProfile
from ..text.svg import box, short, text

FEWEST = 3
"""Minimum number of devices for a chart."""
CHARTS = (
    ("bound_time", "least time"),
    ("global_transactions", "transactions of global memory"),
    ("global_bytes_transferred", "bytes between the SMs and L1"),
    ("dram_bytes_read", "bytes read from DRAM"),
    ("shared_conflicts", "bank conflicts"),
)
WIDTH, NAME, LABEL, ROW, TOP = 520, 92, 78, 20, 30
STEEP = 50
"""Ratio of the largest to the smallest value from which bar lengths are logarithmic."""


def draw_charts(on: Sequence[LaunchProfile]) -> Iterator[str]:
    """Yield a chart per counter that differs between the devices."""
    running = sorted((p for p in on if not p.refusal), key=lambda p: (p.capability, p.device))
    if len(running) < FEWEST:
        return
    for counter, words in CHARTS:
        values = [(p.device, p.counters.get(counter)) for p in running]
        if len({value for _, value in values}) > 1:
            yield _chart(counter, words, values)


def _chart(counter: str, words: str, values: Sequence[tuple[str, Value]]) -> str:
    positives = [float(value) for _, value in values if value]
    steep = max(positives) > STEEP * min(positives)
    title = f"{words}, logarithmic" if steep else words
    height = TOP + ROW * len(values)
    most = max(positives)
    floor = log10(min(positives)) - 0.5
    parts = [text(0, 16, title, "name")]
    for number, (device, value) in enumerate(values):
        y = TOP + number * ROW
        parts.append(text(NAME - 8, y + 12, device, anchor="end"))
        if value is None:
            parts.append(text(NAME, y + 12, "not known", "soft"))
            continue
        part = float(value) / most
        if steep:
            part = (log10(value) - floor) / (log10(most) - floor) if value else 0.0
        length = part * (WIDTH - NAME - LABEL)
        parts.append(box(NAME, y + 2, max(length, 1), ROW - 7, "chart", 2))
        parts.append(text(NAME + length + 6, y + 12, _label(counter, value), "soft"))
    return (
        f'<svg viewBox="0 0 {WIDTH} {short(height)}" role="img">'
        f"<title>{escape(title)}, a bar a device</title>{''.join(parts)}</svg>"
    )


def _label(counter: str, value: float) -> str:
    if counter == "bound_time":
        return time_text(value)
    return traffic_text(int(value)) if "bytes" in counter else f"{int(value):,}"
