"""A session for a program, which maps its memory and sends it launches, and the device it sees.

Device memory is one anonymous file that the program and its recorder both map. The file is
reserved once and is sparse: the kernel allocates a page on first touch and takes it back when an
array is freed. Global memory comes first, at the addresses that kernels see; constants and the
texels of arrays follow. Kernels reach those by offsets, the program by its mapping.
"""

import mmap
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...traces.schema import Space
from ...traces.writer import BoundedWriter
from ..front.source import Compiled
from ..session.module import Module
from ..session.recording import Recorder, Recording
from ..session.session import Session
from ..simt.kernel.launch import Chip
from ..simt.memory.memory import GLOBAL_BASE, Memory

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


class ProgramSession(Session):
    """A Session that loads compiled PTX and exposes its recording."""

    def __init__(self, path: Path, shared: SharedMemory) -> None:
        super().__init__(path)
        self._shared = shared
        self._writer: BoundedWriter | None = None

    def _make_writer(self, path: Path) -> BoundedWriter:
        self._writer = BoundedWriter(path, self._filter.max_bytes, self._options.threads)
        return self._writer

    @property
    def writer(self) -> BoundedWriter:
        """The writer of the trace, once it is open."""
        assert self._writer is not None
        return self._writer

    def _make_memory(self) -> Memory:
        return Memory(self._options.check_uninitialized, self._shared.arenas())

    @property
    def recording(self) -> Recording:
        """The state that all objects of the session share."""
        return self._recording

    def load(self, compiled: Compiled) -> Module:
        """Load a module of the program."""
        return self._load("program.ptx", compiled)


class Stopwatch(Protocol):
    """Computes a lower bound of the device time of launches, instead of writing a trace."""

    @property
    def recorder(self) -> Recorder:
        """The recorder of the launches."""

    def nanoseconds(self) -> float:
        """Return the bound for all launches so far; 0 if nothing is known."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device; `facts` holds a number for each name of `wire.fact_names()`.

    `fits(registers, shared bytes, threads)` returns how many blocks of a kernel an SM holds;
    `time()` makes a stopwatch for it, and `estimate(trace)` returns the nanoseconds of a trace's
    launches.
    """

    name: str
    facts: Mapping[str, int]
    fits: Callable[[int, int, int], int]
    time: Callable[[], Stopwatch]
    estimate: Callable[[Path], float]
    sms_per_cluster: int = 1
    shared_unit: int = 128

    @property
    def capability(self) -> int:
        """Compute capability as a number, 90 for 9.0."""
        return 10 * self.facts["major"] + self.facts["minor"]

    @property
    def chip(self) -> Chip:
        """The chip that kernels see."""
        return Chip(
            self.capability,
            self.facts["processors"],
            self.sms_per_cluster,
            self.facts["warps_per_sm"],
            self.shared_unit,
            self.facts["shared_reserved"],
            self.fits,
        )
