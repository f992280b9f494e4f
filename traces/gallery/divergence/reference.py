"""NumPy reference of the four kernels: same arguments, results written in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def by_thread(out: Array, rounds: int) -> None:
    """Apply different arithmetic to even and odd thread numbers."""
    _mix(out, rounds, ((3, 1009), (5, 2003)))


def ways_by_thread(out: Array, rounds: int) -> None:
    """Apply four kinds of arithmetic, by the thread number modulo four."""
    _mix(out, rounds, ((3, 1009), (5, 2003), (7, 3001), (11, 4001)))


def _mix(out: Array, rounds: int, kinds: tuple[tuple[int, int], ...]) -> None:
    identity = np.arange(out.size, dtype=out.dtype)
    for kind, (factor, modulus) in enumerate(kinds):
        value = identity[kind :: len(kinds)]
        for k in range(rounds):
            value = (value * factor + k) % modulus
        out[kind :: len(kinds)] = value


by_warp = by_thread
ways_by_warp = ways_by_thread
