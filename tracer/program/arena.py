"""Device memory as one anonymous file that the program and its recorder both map.

The file is reserved once and is sparse: the kernel allocates a page on first touch and takes it
back when an array is freed. Global memory comes first, at the addresses that kernels see; constants
and the texels of arrays follow. Kernels reach those by offsets, the program by its mapping.
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
"""Reserved address space in bytes, not resident memory."""

CONSTANTS = GLOBAL_BYTES
TEXELS = GLOBAL_BYTES + (1 << 30)
BASE = GLOBAL_BASE
_BYTES = TEXELS + TEXEL_BYTES
_PAGE = mmap.PAGESIZE


class SharedRoom:
    """One region of the file, as storage for a state space's arena."""

    def __init__(self, mapped: mmap.mmap, start: int, size: int) -> None:
        self._mapped = mapped
        self._start = start
        self.bytes: NDArray[np.uint8] = np.frombuffer(mapped, np.uint8, size, start)

    def wipe(self, start: int, end: int) -> None:
        """Zero a range of bytes and return whole pages to the operating system."""
        first, last = -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
        if first >= last:
            self.bytes[start:end] = 0
            return
        self.bytes[start:first] = 0
        self.bytes[last:end] = 0
        # MADV_REMOVE punches a hole into the file: the pages read as zeros in both processes.
        self._mapped.madvise(mmap.MADV_REMOVE, self._start + first, last - first)


class SharedMemory:
    """The shared file, open in this process; `file` is its descriptor, which processes receive."""

    def __init__(self) -> None:
        self.file = os.memfd_create("cutrace", os.MFD_CLOEXEC)
        os.ftruncate(self.file, _BYTES)
        self._mapped = mmap.mmap(self.file, _BYTES)

    @property
    def size(self) -> int:
        """Number of bytes that the program maps."""
        return _BYTES

    def arenas(self) -> Mapping[Space, Any]:
        """Return the region for each state space of a session's memory."""
        return {
            Space.GLOBAL: SharedRoom(self._mapped, 0, GLOBAL_BYTES),
            Space.CONST: SharedRoom(self._mapped, CONSTANTS, CONSTANT_BYTES),
            Space.SURFACE: SharedRoom(self._mapped, TEXELS, TEXEL_BYTES),
        }

    def close(self) -> None:
        """Close the file; the mapping itself is released with the last array over it."""
        os.close(self.file)
