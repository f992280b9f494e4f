"""NumPy reference of the three kernels: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


def transpose_naive(out: Array, values: Array, width: int, height: int) -> None:
    """`values` has `height` rows of `width`; `out` has `width` rows of `height`."""
    out[:] = values.T


transpose_shared = transpose_naive
transpose_padded = transpose_naive
