"""NumPy reference of the two kernels: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


def product_plain(c: Array, a: Array, b: Array, n: int) -> None:
    """Compute c = a b, all of them n x n."""
    c[:] = a @ b


product_tiled = product_plain
product_padded = product_plain
