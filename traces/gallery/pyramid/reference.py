"""NumPy reference of the kernel: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


def pyramid_max(above: Array, below: Array, width: int) -> None:
    """Each output is the maximum of four inputs."""
    above[:] = below.reshape(width, 2, width, 2).max(axis=(1, 3))
