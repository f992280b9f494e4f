"""The address patterns of a launch, and rows rebuilt from them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .lanes import unpack_masks
from .seam import Batch, Ints, Kind


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """`active` (n,) uint32 masks and `offsets` (n, 32) int32 bytes from the base.

    `lowest` and `highest` (n,) are the smallest and greatest offset of each.
    """

    active: NDArray[np.uint32]
    offsets: NDArray[np.int32]
    lowest: Ints
    highest: Ints

    def rebuild(self, kinds: tuple[Kind, ...], kind: Ints, base: Ints, pattern: Ints) -> Batch:
        """Return the batch of the rows with these kinds, bases and patterns, all (n,)."""
        return Batch(
            kinds,
            kind,
            base[:, None] + self.offsets[pattern],
            unpack_masks(self.active[pattern]),
            np.arange(len(kind)),
        )


def read_patterns(active: NDArray[np.uint32], offsets: NDArray[np.int32]) -> Patterns:
    """Take the patterns as a trace gives them (offset 0 in inactive lanes)."""
    empty = np.zeros(0, np.int64)
    if not len(active):
        return Patterns(active, offsets, empty, empty)
    return Patterns(
        active, offsets, offsets.min(axis=1).astype(np.int64), offsets.max(axis=1).astype(np.int64)
    )
