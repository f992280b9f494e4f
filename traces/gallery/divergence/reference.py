"""What the four kernels compute, in NumPy: same arguments, results written in place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def by_thread(out: Array, rounds: int) -> None:
    """Even and odd numbers go through different arithmetic."""
    _mix(out, rounds, ((3, 1009), (5, 2003)))


def ways_by_thread(out: Array, rounds: int) -> None:
    """Four kinds of arithmetic, by the number modulo four."""
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
