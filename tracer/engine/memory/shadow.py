"""Maps of written bytes: which bytes of a wave's memory anybody wrote (see initialized.py)."""

import numpy as np
from numpy.typing import NDArray

from ....traces.schema import Space
from .memory import Memory


class Shadow:
    """The maps of a wave's shared and local memory, and of global memory."""

    def __init__(self, shared: NDArray[np.uint8], local: NDArray[np.uint8], memory: Memory) -> None:
        self._own = {Space.SHARED: np.zeros_like(shared), Space.LOCAL: np.zeros_like(local)}
        self._memory = memory

    def of(self, space: Space) -> NDArray[np.uint8] | None:
        """Return the map of a space, None if it is not watched."""
        return self._memory.global_.written if space == Space.GLOBAL else self._own.get(space)
