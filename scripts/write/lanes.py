"""Draw docs/lanes.svg: the lanes of a warp before and after the change that README shows.

    python scripts/write/lanes.py

The kernels are README's own, recorded and replayed here; tests/golden/test_pictures.py compares.
"""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path

import cutrace
from cutrace.analyzer.why.explain import Explanation, explain
from cutrace.analyzer.why.svg import STYLE
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.tracer.session.source.record import record

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "lanes.svg"
BLOCK = re.compile(r"^```cuda (?P<name>\S+)\n(?P<text>.*?)^```$", re.M | re.S)
SHOWN = {"scale.cu": "before", "fixed.cu": "after"}
CHANGED = "int column"
"""How the line begins that the panel shows: the one that makes the difference."""

WIDTH, MARGIN = 1000, 24
BOX, DROP, CELLS = 22, 74, 20
PANEL = 236
LANES = 32
WORDS = """\
text.head { font: 600 23px system-ui, sans-serif } text.good { fill: var(--wanted) }
text.ill { fill: var(--bad) } text.code { font-size: 16px } text.note { font: 16px system-ui }
text.tiny { font-size: 12px }
"""


def sources() -> dict[str, str]:
    """The kernels of README by their names."""
    return {b["name"]: b["text"] for b in BLOCK.finditer((ROOT / "README.md").read_text("utf-8"))}


def explained(name: str, code: str, folder: Path) -> Explanation:
    """The worst load of a kernel on an H100."""
    source = folder / name
    source.write_text(code, "utf-8")
    trace = folder / f"{source.stem}.cutrace"
    record(source, out=trace)
    (found,) = explain(cutrace.read_trace(trace), None, ReplayOptions(device="h100"))
    (changed,) = (line.strip() for line in code.splitlines() if line.strip().startswith(CHANGED))
    return replace(found, source=changed)


def drawing(found: dict[str, Explanation]) -> str:
    """One picture of all: a panel each, the first above."""
    height = MARGIN + len(found) * PANEL
    panels = [part for n, (w, e) in enumerate(found.items()) for part in panel(w, e, n * PANEL)]
    said = "; ".join(f"{word}: {e.sentence}" for word, e in found.items())
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(said)}</title>",
            f"<style>{STYLE}{WORDS}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
            *panels,
            "</svg>\n",
        )
    )


def panel(word: str, found: Explanation, top: int) -> Iterator[str]:
    """Lanes, the sectors below them, and who wants which."""
    (group,) = found.groups
    pieces, access = group.pieces, found.access
    assert access is not None
    excess = access.cost > access.ideal
    yield text(
        MARGIN, top + 40, f"{word}: {sentence(found)}", f"head {'ill' if excess else 'good'}"
    )
    yield text(MARGIN, top + 66, found.source, "code soft")
    lanes, sectors = top + 84, top + 84 + BOX + DROP
    step = (WIDTH - 2 * MARGIN) / LANES
    start = MARGIN + (LANES - len(pieces)) / 2 * step
    for number, piece in enumerate(pieces):
        left = start + number * step
        for lane in piece.lanes:
            middle = MARGIN + (lane + 0.5) * step
            own = left + (piece.lanes.index(lane) + 0.5) * (step - 3) / len(piece.requested)
            yield (
                f'<path class="wire{" late" * excess}" d="M{middle:.1f} {lanes + BOX} '
                f'L{own:.1f} {sectors}"/>'
            )
        yield from cells(piece.requested, left, sectors, step - 3)
    for lane in range(LANES):
        left = MARGIN + lane * step
        yield (
            f'<rect class="lane" x="{left:.1f}" y="{lanes}" width="{step - 3:.1f}" '
            f'height="{BOX}" rx="3"/>'
        )
        yield text(left + (step - 3) / 2, lanes + 16, str(lane), "tiny on")
    wanted = sum(sum(piece.requested) for piece in pieces) * 4
    moved = sum(piece.size for piece in pieces)
    note = f"32 lanes above, sectors of 32 bytes below: {moved} bytes moved, {wanted} wanted"
    yield text(MARGIN, sectors + CELLS + 22, note, "note soft")


def cells(wanted: tuple[bool, ...], left: float, top: int, width: float) -> Iterator[str]:
    """A sector of 32 bytes: its eight words, the wanted ones coloured."""
    for number, on in enumerate(wanted):
        x = left + number * width / len(wanted)
        yield (
            f'<rect class="{"wanted" if on else "empty"}" x="{x:.1f}" y="{top}" '
            f'width="{width / len(wanted) - 0.4:.1f}" height="{CELLS}"/>'
        )


def sentence(found: Explanation) -> str:
    """What one load of a warp costs."""
    (group,) = found.groups
    return f"one load of a warp touches {len(group.pieces)} sectors of memory"


def text(x: float, y: float, words: str, style: str) -> str:
    """A line of words."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def picture() -> str:
    """The picture as it is to be today."""
    with tempfile.TemporaryDirectory() as folder:
        code, place = sources(), Path(folder)
        return drawing({word: explained(n, code[n], place) for n, word in SHOWN.items()})


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(), "utf-8")
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
