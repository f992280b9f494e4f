"""NumPy reference of the kernel: same arguments, results written in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def stride_read(out: Array, stride: int) -> None:
    """Lane i reads word i x stride, which holds three times its index."""
    out[:] = 3 * stride * np.arange(32)
