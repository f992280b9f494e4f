"""The address patterns of a launch, some at a time: memory does not grow with their number."""

from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ...lazy_dataclass import dataclass
from ..schema import LANES
from .dictionary import Dictionary

Unpacked: TypeAlias = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]
"""Active masks (n,) and offsets (n, 32)."""


class Patterns(Protocol):
    """The patterns of a launch, by identifier."""

    def __len__(self) -> int:
        """Return the number of patterns."""

    def take(self, identifiers: npt.NDArray[np.int64]) -> Unpacked:
        """Return active masks (n,) and offsets (n, 32), bytes, of identifiers (n,) that exist."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldPatterns:
    """Patterns that are all in memory: active masks (n,) and offsets (n, 32)."""

    active: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self.active)

    def take(self, identifiers: npt.NDArray[np.int64]) -> Unpacked:
        """Return those of identifiers (n,)."""
        return self.active[identifiers], self.offsets.take(identifiers, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class StoredPatterns:
    """Patterns on disk, of which only some are in memory."""

    table: Dictionary

    def __len__(self) -> int:
        """Return the number of patterns."""
        return len(self.table)

    def take(self, identifiers: npt.NDArray[np.int64]) -> Unpacked:
        """Return those of identifiers (n,)."""
        active = np.empty(len(identifiers), np.uint32)
        offsets = np.empty((len(identifiers), LANES), np.int32)
        for batch, place, which in self.table.parts(identifiers):
            rows = _as_slice(place)
            masks = batch["active"].to_numpy()[rows]
            lanes = batch["offsets"].values.to_numpy().reshape(-1, LANES)[rows]
            if len(which) == len(identifiers):
                return masks, lanes
            into = _as_slice(which)
            active[into], offsets[into] = masks, lanes
        return active, offsets


def _as_slice(places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | slice:
    """Return places that follow one another as a slice, which copies nothing."""
    follow = bool((places[1:] - places[:-1] == 1).all())
    return slice(int(places[0]), int(places[-1]) + 1) if follow else places
