"""Flame graph of a launch: a box per line, as wide as its share, above the line it is inlined into.

The lowest box is the launch; a line's self cost is the width not covered by boxes above. Costs are
bytes moved, or warp instructions if a kernel moves none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from html import escape

from ...base.dataclass import dataclass
from ...base.sanitize import sanitize
from ..counting.vocabulary import find_counters
from ..launch_profile import LaunchProfile
from ..profilers.stacks import Place, read_stacks
from ..text.svg import short, text

COUNTERS = (
    ("global_bytes_transferred", "bytes moved"),
    ("cutrace.instructions", "warp instructions"),
)
WIDTH, ROW, TOP = 1280, 22, 26
LETTER = 7.2
"""The width of a character, which is also the minimum width of a box."""
LEAST = 0.002


@dataclass
class _Frame:
    """A line with the lines inlined into it."""

    count: int = 0
    inner: dict[Place, "_Frame"] = field(default_factory=dict)

    def add(self, places: Sequence[Place], count: int) -> None:
        """Add a stack and its count."""
        self.count += count
        if places:
            self.inner.setdefault(places[0], _Frame()).add(places[1:], count)

    @property
    def depth(self) -> int:
        """Return the height of the tree in boxes."""
        return 1 + max((inner.depth for inner in self.inner.values()), default=0)


def draw_flame(launch: LaunchProfile) -> str:
    """Return the drawing; empty if no line is known or none is inlined into another."""
    for name, words in COUNTERS:
        root = _Frame()
        for stack in read_stacks(launch, find_counters([name])):
            if stack.places[-1][1]:
                root.add(stack.places, stack.counts[0])
        if root.count:
            return _draw(root, words) if root.depth > 2 else ""
    return ""


def _draw(root: _Frame, words: str) -> str:
    height = TOP + ROW * root.depth
    title = f"{words} by line, lines stand on those that they are inlined into"
    boxes = _boxes(root, "the launch", 0, 0, root.count, height)
    return (
        f'<svg class="flame" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{escape(title)}">{text(0, 16, title, "name")}{"".join(boxes)}</svg>'
    )


def _boxes(
    frame: _Frame, name: str, begin: int, level: int, total: int, height: int
) -> Iterator[str]:
    """Yield a frame's box, then those above it, the widest first."""
    start, width = begin / total * WIDTH, frame.count / total * WIDTH
    if frame.count < LEAST * total:
        return
    y = height - ROW * (level + 1)
    caption = f"{name}: {frame.count:,}, {100 * frame.count / total:.1f} %"
    letters = int((width - 8) / LETTER)
    shown = name if len(name) <= letters else name.rpartition("/")[2][-letters:] * (letters > 2)
    yield (
        f'<g><title>{escape(sanitize(caption))}</title><rect x="{short(start)}" y="{y}"'
        f' width="{short(max(width - 1, 0.5))}" height="{ROW - 2}" rx="2"'
        f' class="flame{level % 3}"/>{text(start + 4, y + 14, shown)}</g>'
    )
    for (file, line), inner in sorted(frame.inner.items(), key=lambda each: -each[1].count):
        yield from _boxes(inner, f"{file}:{line}", begin, level + 1, total, height)
        begin += inner.count
