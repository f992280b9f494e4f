"""What the kernels of tests/validate/lanes are run with, on a GPU and here."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCKS = (32, 48)
"""Threads of a block: a warp, and one and a half."""

WORDS = 512
"""Words of the result, of which a kernel writes some."""


def sources() -> NDArray[Any]:
    """Return what the threads load."""
    return 1000 + np.arange(64, dtype="<u4")


def untouched() -> NDArray[Any]:
    """Return the result before a kernel has written anything."""
    return np.full(WORDS, 0xEEEEEEEE, dtype="<u4")
