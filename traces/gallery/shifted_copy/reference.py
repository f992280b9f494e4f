"""NumPy reference of the two kernels: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray

THREADS = 64 * 256
Array = NDArray[Any]


def offset_copy(out: Array, values: Array, offset: int) -> None:
    """Every thread copies the word `offset` elements after its own."""
    out[offset : offset + THREADS] = values[offset : offset + THREADS]


def stride_copy(out: Array, values: Array, stride: int) -> None:
    """Every thread copies a word, `stride` elements after its neighbour's."""
    out[: THREADS * stride : stride] = values[: THREADS * stride : stride]
