"""NumPy reference of the seven kernels: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


def reduce_divergent(sums: Array, values: Array) -> None:
    """Every block sums its share of consecutive values."""
    sums[:] = values.reshape(sums.size, -1).sum(axis=1)


reduce_strided = reduce_divergent
reduce_sequential = reduce_divergent
reduce_first_add = reduce_divergent
reduce_last_warp = reduce_divergent
reduce_unrolled = reduce_divergent


def reduce_many(sums: Array, values: Array, n: int) -> None:
    """A block of 128 threads sums its 128 neighbours, a grid apart."""
    sums[:] = values[:n].reshape(-1, sums.size, 128).sum(axis=(0, 2))
