"""Named arrays that the waves of a session use in turn."""

import os
from collections.abc import Mapping
from mmap import ACCESS_COPY, ACCESS_DEFAULT, mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.machine_code import address
from ....jit.structure import Binding, Struct


class InitialArrays:
    """Named arrays in one buffer, which `begin` resets to their initial values."""

    def __init__(self, initial: Mapping[str, NDArray[Any]]) -> None:
        ends = np.cumsum([-(-array.nbytes // 64) * 64 for array in initial.values()]).tolist()
        self._bytes: NDArray[np.uint8] = np.zeros(ends[-1], np.uint8)
        self.arrays: dict[str, NDArray[Any]] = {}
        for (name, array), first in zip(initial.items(), [0, *ends], strict=False):
            self.arrays[name] = self._bytes[first : first + array.nbytes].view(array.dtype)
            self.arrays[name][:] = array
        self._initial = self._bytes.copy()
        self.nbytes = 2 * self._bytes.nbytes

    @property
    def span(self) -> tuple[int, int, int]:
        """The addresses of the arrays and of their initial values, and the bytes of either."""
        return address(self._bytes), address(self._initial), self._bytes.nbytes

    def begin(self) -> None:
        """Reset the arrays."""
        self._bytes[:] = self._initial


MOST_CLEARED = 1 << 22
"""Bytes that are cleared for a wave: new pages, which the system clears, take three times as
long."""


class Buffers:
    """Named arrays that waves use in turn."""

    def __init__(self) -> None:
        self._held: dict[str, NDArray[Any]] = {}
        self._bindings: dict[int, Binding] = {}

    @property
    def nbytes(self) -> int:
        """The total size in bytes."""
        return sum(buffer.nbytes for buffer in self._held.values())

    def take(self, name: str, size: int, dtype: str) -> NDArray[Any]:
        """Return an array of at least this size; it may hold data of the last wave."""
        buffer = self._held.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._held[name] = np.empty(size, dtype=dtype)
        return buffer

    def bind(self, structure: Struct, kinds: Mapping[str, str], size: int) -> None:
        """Give a structure arrays of at least this size, by the names and dtypes of its fields."""
        arrays = {name: self.take(name, size, kind) for name, kind in kinds.items()}
        binding = self._bindings.get(id(kinds))
        if binding is None or any(binding.arrays[n] is not arrays[n] for n in arrays):
            binding = self._bindings[id(kinds)] = Binding(type(structure), arrays)
        structure.bind(binding)

    def zeros(self, name: str, rows: int, columns: int) -> NDArray[np.uint8]:
        """Return zeros, (rows, columns): a large array is new, and takes memory only where it is
        written."""
        size = rows * columns
        if size > MOST_CLEARED:
            return np.zeros((rows, columns), np.uint8)
        array = self.take(name, size, "u1")[:size]
        array.fill(0)
        return array.reshape(rows, columns)

    def take_zeros(self, name: str, size: int, dtype: str) -> NDArray[Any]:
        """Return a new array of zeros, which takes memory only where it is written.

        NumPy would use pages of 2 MiB, and a warp that exits at once writes one of each.
        """
        buffer = self._held.get(name)
        if buffer is None or len(buffer) < size:
            own = ACCESS_COPY if os.name == "posix" else ACCESS_DEFAULT  # not a fork's, too
            pages = mmap(-1, size * np.dtype(dtype).itemsize, access=own)
            buffer = self._held[name] = np.frombuffer(pages, dtype=dtype)
        else:
            buffer[:size] = 0
        return buffer

    def widen(self, name: str, size: int) -> NDArray[Any]:
        """Return a larger array of this name with the same contents."""
        old = self._held[name]
        grown = self._held[name] = np.empty(size, dtype=old.dtype)
        grown[: len(old)] = old
        return grown
