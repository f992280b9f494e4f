"""What the two kernels compute, in NumPy: same arguments, results written in place."""

from typing import Any

from numpy.typing import NDArray

THREADS = 64 * 256
Array = NDArray[Any]


def offset_copy(out: Array, values: Array, offset: int) -> None:
    """Every thread copies the word `offset` places after its own."""
    out[offset : offset + THREADS] = values[offset : offset + THREADS]


def stride_copy(out: Array, values: Array, stride: int) -> None:
    """Every thread copies a word, `stride` places after its neighbour's."""
    out[: THREADS * stride : stride] = values[: THREADS * stride : stride]
