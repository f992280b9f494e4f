"""NumPy reference of the kernel: same arguments, results written in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

TABLE = np.array([int(digit) for digit in "31415926535897932384626433832795"])


def constant_table(out: NDArray[Any], stride: int) -> None:
    """Lane i reads entry i x stride."""
    out[:] = TABLE[np.arange(32) * stride]
