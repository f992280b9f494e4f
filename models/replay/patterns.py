"""The address patterns of a launch, and rows rebuilt from them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .lanes import unpack_masks
from .numbering import number_rows
from .seam import Batch, Ints, Kind

if TYPE_CHECKING:
    from ...traces.pattern_store import Patterns as Store


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """All patterns at once: `active` (n,) uint32 masks, `offsets` (n, 32) int32, bytes.

    `lowest` and `highest` (n,) are the smallest and greatest offset of each.
    """

    active: NDArray[np.uint32]
    offsets: NDArray[np.int32]
    lowest: Ints
    highest: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """The patterns of a launch, of which only those asked about are in memory."""

    store: "Store"

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self.store)

    def reach(self, pattern: Ints) -> tuple[Ints, Ints]:
        """Return the smallest and the greatest offset of the pattern of each row, both (n,)."""
        if not len(pattern):
            return pattern, pattern
        first = int(pattern.min())
        distinct, number = number_rows(pattern - first, int(pattern.max()) - first + 1)
        offsets = self.store.take(distinct + first)[1]
        low, high = (end.astype(np.int64) for end in (offsets.min(axis=1), offsets.max(axis=1)))
        return low[number], high[number]

    def rebuild(self, kinds: tuple[Kind, ...], kind: Ints, base: Ints, pattern: Ints) -> Batch:
        """Return the batch of the rows with these kinds, bases and patterns, all (n,)."""
        active, offsets = self.store.take(pattern)
        rows = np.arange(len(kind))
        return Batch(kinds, kind, base[:, None] + offsets, unpack_masks(active), rows)


def read_patterns(active: NDArray[np.uint32], offsets: NDArray[np.int32]) -> Patterns:
    """Take the patterns as a trace gives them (offset 0 in inactive lanes)."""
    empty = np.zeros(0, np.int64)
    if not len(active):
        return Patterns(active, offsets, empty, empty)
    return Patterns(
        active, offsets, offsets.min(axis=1).astype(np.int64), offsets.max(axis=1).astype(np.int64)
    )
