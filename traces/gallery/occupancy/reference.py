"""NumPy reference of the kernel."""

from typing import Any

import numpy as np


def number(out: Any) -> None:
    """Number the elements."""
    out[:] = np.arange(out.size)
