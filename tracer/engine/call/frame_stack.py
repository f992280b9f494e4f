"""Registers saved across recursive calls: a stack for each lane."""

import numpy as np
from numpy.typing import NDArray

from ..lanes import Array


class FrameStack:
    """What each lane of a wave has put aside: values by slot and depth, (levels, lanes)."""

    def __init__(self, lanes: int) -> None:
        self.depth: NDArray[np.int32] = np.zeros(lanes, dtype=np.int32)
        self._saved: dict[int, Array] = {}

    def push(self, lanes: NDArray[np.intp], values: dict[int, Array]) -> None:
        """Put aside values (n,) of `lanes` (n,), one array a slot, and go a level deeper."""
        depth = self.depth[lanes]
        for slot, value in values.items():
            self._room(slot, int(depth.max()) + 1, value)[depth, lanes] = value
        self.depth[lanes] += 1

    def pop(self, lanes: NDArray[np.intp], slots: tuple[int, ...]) -> list[Array]:
        """Come up a level; return what `lanes` (n,) had put aside, an array (n,) a slot."""
        self.depth[lanes] -= 1
        depth = self.depth[lanes]
        return [self._saved[slot][depth, lanes] for slot in slots]

    def _room(self, slot: int, levels: int, value: Array) -> Array:
        saved = self._saved.get(slot)
        if saved is None or len(saved) < levels:
            grown = np.zeros((max(2 * levels, 4), len(self.depth)), dtype=value.dtype)
            if saved is not None:
                grown[: len(saved)] = saved
            saved = self._saved[slot] = grown
        return saved.view(value.dtype)
