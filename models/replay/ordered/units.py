"""The units that serve a block: its SM, its cluster, or some SMs, one for each scope of a stage.

A row has them as one word, in which they lie side by side.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ..seam import Ints
from ..tally.accesses import Track

WORD = 8
"""Bytes of a word at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Of each place that a block can have (`turns.place_of`) a word, (places,), which says its unit
    in each of the scopes; or where one has no room for them, the place itself: `tables`.
    """

    words: NDArray[np.integer]
    layout: np.dtype[np.void]
    tables: Mapping[str, Ints]

    def split(self, words: NDArray[np.integer]) -> Mapping[str, Ints]:
        """Return the units of rows that have these words, (n,), by scope."""
        if self.tables:
            return {scope: unit[words] for scope, unit in self.tables.items()}
        each = words.view(self.layout)
        return {scope: each[scope] for scope in self.layout.names or ()}


def pack_units(track: Track) -> Units:
    """Return the units of a launch's blocks in all scopes that a stage of a device has."""
    order, blocks = track.order, np.arange(track.placement.blocks)
    units = {"sm": order.by_place(order.sm)}
    for scope in sorted({wire.stage.scope for wire in track.lasting}):
        if scope == "cluster":
            units[scope] = order.by_place(track.placement.cluster(blocks))
        elif scope.isdecimal():
            units[scope] = order.by_place(blocks % track.device.chip.sms // int(scope))
    each = np.min_scalar_type(max(int(unit.max(initial=0)) for unit in units.values()))
    size = 1 << (len(units) * each.itemsize - 1).bit_length()
    layout = np.dtype({"names": [*units], "formats": [each] * len(units), "itemsize": size})
    if size > WORD:
        return Units(np.arange(len(units["sm"])), layout, units)
    found = np.zeros(len(units["sm"]), layout)
    for scope, unit in units.items():
        found[scope] = unit
    return Units(found.view(f"i{size}"), layout, {})
