"""Device memory that a program and its recorder both have mapped: one file without a name.

It is reserved once and sparse: pages come as they are touched, and go when an array is freed.
Global memory lies first, at the addresses that kernels see; behind it the constants and the texels
of arrays, which kernels reach by offsets and the program by its mapping.
"""

import mmap
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...traces.schema import Space
from ..simt.memory.memory import GLOBAL_BASE

GLOBAL_BYTES = 1 << 38
CONSTANT_BYTES = 1 << 23
TEXEL_BYTES = 1 << 36
"""Addresses that are reserved, not memory."""

CONSTANTS = GLOBAL_BYTES
TEXELS = GLOBAL_BYTES + (1 << 30)
BASE = GLOBAL_BASE
_BYTES = TEXELS + TEXEL_BYTES
_PAGE = mmap.PAGESIZE


class SharedRoom:
    """A part of the file, as the arena of a state space takes it."""

    def __init__(self, mapped: mmap.mmap, start: int, size: int) -> None:
        self._mapped = mapped
        self._start = start
        self.bytes: NDArray[np.uint8] = np.frombuffer(mapped, np.uint8, size, start)

    def wipe(self, start: int, end: int) -> None:
        """Make bytes zeros again, and give whole pages back to the machine."""
        first, last = -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
        if first >= last:
            self.bytes[start:end] = 0
            return
        self.bytes[start:first] = 0
        self.bytes[last:end] = 0
        self._mapped.madvise(mmap.MADV_REMOVE, self._start + first, last - first)


class SharedMemory:
    """The file, open in this process: `file` is its descriptor, which processes are handed."""

    def __init__(self) -> None:
        self.file = os.memfd_create("cutrace", os.MFD_CLOEXEC)
        os.ftruncate(self.file, _BYTES)
        self._mapped = mmap.mmap(self.file, _BYTES)

    @property
    def size(self) -> int:
        """Bytes that the program maps."""
        return _BYTES

    def arenas(self) -> Mapping[Space, Any]:
        """Where the arenas of a session's memory lie."""
        return {
            Space.GLOBAL: SharedRoom(self._mapped, 0, GLOBAL_BYTES),
            Space.CONST: SharedRoom(self._mapped, CONSTANTS, CONSTANT_BYTES),
            Space.SURFACE: SharedRoom(self._mapped, TEXELS, TEXEL_BYTES),
        }

    def close(self) -> None:
        """Close the file; what is mapped goes with the last array over it."""
        os.close(self.file)
