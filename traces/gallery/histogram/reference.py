"""NumPy reference of the two kernels: same arguments, results written in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def histogram_static(bins: Array, values: Array, n: int) -> None:
    """Count the values modulo 256."""
    bins += np.bincount(values[:n] % 256, minlength=256).astype(bins.dtype)


def histogram_dynamic(bins: Array, values: Array, n: int, count: int) -> None:
    """Count the values modulo `count`."""
    bins += np.bincount(values[:n] % count, minlength=count).astype(bins.dtype)
