"""The sources of two variants side by side: aligned as a diff aligns them, with what lines cost."""

from collections.abc import Mapping, Sequence

from ...lazy_dataclass import dataclass
from ..comparison.comparison import align_lines
from ..profile import Profile
from .source import MEASURES, measure
from .value import SideBySide, TwinLine, TwinRow

MOST = 600
"""Rows of a page; what is far from any difference goes first."""
AROUND = 3
"""Lines that are shown beside one that differs or costs, if not all have room."""
Place = tuple[str, int]


def draw_twins(
    names: tuple[str, str], profiles: tuple[Profile, Profile], device: str
) -> SideBySide | None:
    """The page of two variants on a device; None where no source is known, or nothing counts."""
    costs = [_costs(profile, device) for profile in profiles]
    key = next((k for k in MEASURES if any(each.get(k) for each in costs)), "")
    rows = align_lines(profiles, 0) if key else []
    if not rows:
        return None
    most = max((count for each in costs for count in each.get(key, {}).values()), default=0) or 1
    left, right = (
        _Side(_texts(profile), cost.get(key, {}), most)
        for profile, cost in zip(profiles, costs, strict=True)
    )
    twins = [TwinRow(left.line(one), right.line(other)) for one, other in rows]
    return SideBySide(device, names, MEASURES[key][0], tuple(_shown(twins)))


@dataclass(frozen=True, slots=True)
class _Side:
    """A variant's lines and what they cost; `most` is the most that any line of both costs."""

    texts: Mapping[Place, str]
    costs: Mapping[Place, int]
    most: int

    def line(self, place: Place | None) -> TwinLine:
        """The line at a place, or an empty one."""
        if place is None:
            return TwinLine(None, "", 0, 0.0)
        cost = self.costs.get(place, 0)
        return TwinLine(place[1], self.texts.get(place, ""), cost, cost / self.most)


def _shown(rows: Sequence[TwinRow]) -> Sequence[TwinRow]:
    """All rows if they have room, else those near one that differs or costs."""
    if len(rows) <= MOST:
        return rows
    told = [n for n, row in enumerate(rows) if row.differs or row.left.cost or row.right.cost]
    near = {n for place in told for n in range(place - AROUND, place + AROUND + 1)}
    return [row for n, row in enumerate(rows) if n in near][:MOST]


def _costs(profile: Profile, device: str) -> dict[str, dict[Place, int]]:
    """The cost of each line by each measure, over all launches on the device."""
    found: dict[str, dict[Place, int]] = {key: {} for key in MEASURES}
    for launch in profile.launches:
        if launch.device != device or launch.refusal:
            continue
        for row in launch.lines.iter_rows(named=True):
            for key in MEASURES:
                if count := int(measure(row, key)):
                    place = str(row["file"]), int(row["line"])
                    found[key][place] = found[key].get(place, 0) + count
    return {key: lines for key, lines in found.items() if lines}


def _texts(profile: Profile) -> dict[Place, str]:
    return {
        (file, number): line
        for file, text in profile.manifest.sources.items()
        for number, line in enumerate(text.splitlines(), start=1)
    }
