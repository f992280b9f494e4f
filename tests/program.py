"""A program of tests/programs while it runs: a session, the compiled source, and what came out.

`NAME.py` beside `NAME.cu` has one function, `run(program)`, which launches the kernels and says
what NumPy computes instead. It may also have TEMPLATES (name expressions), ARCH and OPTIONS.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Dimension = int | tuple[int, ...]
Array = NDArray[Any]


class Program:
    """`gpu` has the methods of cutrace.Session, `module` those of what its `compile` returns."""

    def __init__(self, gpu: Any, module: Any) -> None:
        self.gpu = gpu
        self.module = module
        self.random = np.random.default_rng(2025)
        self.results: list[Array] = []

    def launch(
        self, kernel: str, grid: Dimension, block: Dimension, *arguments: Any, shared: int = 0
    ) -> None:
        """Launch a kernel by its name in the source."""
        self.module.get_function(kernel)[grid, block, 0, shared](*arguments)

    def to_device(self, values: ArrayLike) -> Any:
        """Copy an array to the device."""
        return self.gpu.to_device(values)

    def zeros(self, shape: Dimension, dtype: DTypeLike) -> Any:
        """Reserve an array that holds zeros."""
        array = self.gpu.device_array(shape, dtype)
        array.fill(0)
        return array

    def write(self, symbol: str, values: Array) -> None:
        """Copy to a `__constant__` or `__device__` variable."""
        self.module.get_global(symbol).copy_to_device(values)

    def integers(self, low: int, high: int, size: Dimension, dtype: DTypeLike = np.int32) -> Array:
        """Random integers from `low` to `high`, exclusive."""
        return self.random.integers(low, high, size, dtype=np.dtype(dtype).type)

    def floats(self, size: Dimension, dtype: DTypeLike = np.float32) -> Array:
        """Random numbers from 0 to 1."""
        return self.random.random(size).astype(dtype)

    def same(self, array: Any, expected: ArrayLike) -> None:
        """Require every element of a device array to equal `expected`."""
        found = self._copy(array)
        np.testing.assert_array_equal(found, np.asarray(expected).reshape(found.shape))

    def close(self, array: Any, expected: ArrayLike, bound: float = 1e-5) -> None:
        """Require a device array within `bound`, relative or to the largest expected value."""
        found = self._copy(array)
        wanted = np.asarray(expected).reshape(found.shape)
        slack = bound * float(np.abs(wanted.astype(np.float64)).max(initial=0))
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=bound, atol=slack
        )

    def _copy(self, array: Any) -> Array:
        found: Array = array.copy_to_host()
        self.results.append(found)
        return found
