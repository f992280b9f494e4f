"""NumPy reference of the kernel: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray


def variables(versions: NDArray[Any]) -> None:
    """Each of 1000 blocks has 512 local variables and a shared one."""
    versions += (1000 * 512, 1000)
