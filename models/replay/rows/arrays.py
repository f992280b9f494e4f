"""Attribution: which array an address belongs to.

The addresses of all spaces are put on one line, space in the upper bits, and cut at the ends of
the launch's arrays into *zones*: those of an array, and the gaps before, between and behind them.
"""

from collections.abc import Sequence

import numpy as np

from ....lazy_dataclass import dataclass
from ....traces.schema import Array
from ..seam import Ints

SPACE_SHIFT = 56
MIXED = "mixed"


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """`cuts` (zones - 1,) are where one zone ends and the next begins; `names` (zones,) are the
    arrays', or empty for a gap.
    """

    cuts: Ints
    names: tuple[str, ...]

    def find(self, places: Ints) -> Ints:
        """Return the zone of each place (n,), `space << SPACE_SHIFT | address`."""
        return np.searchsorted(self.cuts, places, side="right")


def cut_zones(arrays: Sequence[Array]) -> Zones:
    """Cut the address line at the arrays' ends; where two overlap, the later one begins."""
    cuts: list[int] = []
    names = [""]
    ordered = sorted(arrays, key=lambda array: (array.space, array.offset))
    for number, array in enumerate(ordered):
        start = (array.space << SPACE_SHIFT) + array.offset
        end = start + array.bytes
        if number + 1 < len(ordered):
            after = ordered[number + 1]
            end = min(end, (after.space << SPACE_SHIFT) + after.offset)
        if end > start:
            cuts += [start, end]
            names += [array.name, ""]
    return Zones(np.array(cuts, np.int64), tuple(names))
