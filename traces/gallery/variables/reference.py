"""What the kernel computes, in NumPy: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray


def variables(versions: NDArray[Any]) -> None:
    """512 local variables and one shared one in each of 1000 blocks."""
    versions += (1000 * 512, 1000)
