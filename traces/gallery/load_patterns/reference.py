"""NumPy reference of the kernel: same arguments, results written in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def load_pattern(out: Array, values: Array, stride: int, flipped: int, offset: int) -> None:
    """Lane i reads the word at (i xor flipped) x stride + offset."""
    out[:] = values[(np.arange(32) ^ flipped) * stride + offset]
