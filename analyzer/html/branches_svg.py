"""Drawings of divergent branches: which lanes of a warp took the branch, and which did not."""

from collections.abc import Iterator
from html import escape

from ...traces.reader import LaunchTrace
from ...traces.schema import LANES
from ..counting.paths import find_splits
from ..launch_profile import LaunchProfile
from ..text.svg import box, text

MOST, SPLITS = 4, 3
"""Maximum number of branches drawn, the most divergent first, and of splits of each."""
WIDTH, BOX, GAP, LEFT, ROW, TOP = 1200, 22, 6, 210, 30, 30


def draw_branches(launch: LaunchProfile, trace: LaunchTrace) -> Iterator[str]:
    """Yield a drawing per divergent branch; none if the trace has no control flow."""
    table = launch.instructions
    if launch.refusal or "divergent_branches" not in table.columns or not trace.count("control"):
        return
    rows = sorted(table.iter_rows(named=True), key=lambda row: -(row["divergent_branches"] or 0))
    rows = [row for row in rows[:MOST] if row["divergent_branches"]]
    splits = find_splits(trace) if rows else {}
    blocks = trace.instructions()["block"].to_pylist() if rows else []
    for row in rows:
        split_counts = splits.get(blocks[row["pc"]])
        if split_counts:
            place = f"{row['file']}:{row['line']}" if row["line"] else str(row["ptx"])
            caption = (
                f"{row['divergent_branches']:,} of {row['branches']:,} branches split their warp"
            )
            yield _draw(f"{place}: {caption}", split_counts.most_common(SPLITS))


def _draw(title: str, splits: list[tuple[tuple[int, int], int]]) -> str:
    parts = [text(0, 16, title, "name")]
    for number, ((active, branch_mask), times) in enumerate(splits):
        y = TOP + number * ROW
        parts.append(text(LEFT - 12, y + 15, f"{times:,} times", anchor="end"))
        for lane in range(LANES):
            style = (
                "lane" if branch_mask >> lane & 1 else "other" if active >> lane & 1 else "empty"
            )
            parts.append(box(LEFT + lane * (BOX + GAP), y, BOX, BOX, style, 3))
            if style != "empty":
                place = LEFT + lane * (BOX + GAP) + BOX / 2
                parts.append(text(place, y + 15, str(lane), "tiny on"))
    height = TOP + ROW * len(splits)
    return (
        f'<svg class="access" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{escape(title)}">{"".join(parts)}</svg>'
    )
