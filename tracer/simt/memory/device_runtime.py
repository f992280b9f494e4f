"""The device runtime: the heap of `malloc` and `new`, and launches and copies from a kernel.

The heap is in global memory. Lanes allocate in order, first-fit, and a block stays allocated across
launches until a kernel frees it (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation":
by default 8 MB, multiples of 16 bytes).
"""

from bisect import insort
from dataclasses import field
from typing import Protocol

from ....base.dataclass import dataclass

BYTES = 8 << 20
ALIGNMENT = 16


class _Place(Protocol):
    @property
    def address(self) -> int: ...
    @property
    def size(self) -> int: ...


class Heap:
    """A first-fit allocator over the addresses of `place`."""

    def __init__(self, place: _Place) -> None:
        self._free = [(place.address, place.address + place.size)]
        self._taken: dict[int, int] = {}

    def take(self, size: int) -> int:
        """Allocate `size` bytes; return their address, or 0 if there is no room."""
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        for number, (start, end) in enumerate(self._free):
            if start + size <= end:
                remainder = [(start + size, end)] if start + size < end else []
                self._free[number : number + 1] = remainder
                self._taken[start] = size
                return start
        return 0

    def give(self, address: int) -> bool:
        """Free the block at an address; False if none begins there."""
        size = self._taken.pop(address, 0)
        if size:
            insort(self._free, (address, address + size))
            self._join(self._free.index((address, address + size)))
        return bool(size)

    def _join(self, number: int) -> None:
        """Coalesce a free block with the next, and with the one before."""
        for index in (number, number - 1):
            if (
                0 <= index < len(self._free) - 1
                and self._free[index][1] == self._free[index + 1][0]
            ):
                self._free[index : index + 2] = [(self._free[index][0], self._free[index + 1][1])]


TAIL_STREAM = 3
"""cudaStreamTailLaunch (CUDA's cuda_device_runtime_api.h)."""


@dataclass(frozen=True, slots=True)
class DeviceLaunch:
    """A kernel launch by a kernel; its parameters are at the address `buffer`."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    buffer: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class DeviceCopy:
    """A copy of `size` bytes by a kernel."""

    to: int
    source: int
    size: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """A memset by a kernel: `size` bytes, each to `value`."""

    to: int
    value: int
    size: int
    stream: int = 0


DeviceWork = DeviceLaunch | DeviceCopy | DeviceSet


@dataclass
class DeviceLaunches:
    """Parameter buffers that kernels prepared, by address, and the work that they launched."""

    prepared: dict[int, DeviceLaunch] = field(default_factory=dict)
    launched: list[DeviceWork] = field(default_factory=list)

    def take(self) -> list[DeviceWork]:
        """Return the work launched since the last call, in execution order; tail launches last."""
        launches = self.launched[:]
        self.launched.clear()
        return sorted(launches, key=lambda each: each.stream == TAIL_STREAM)

    def clear(self) -> None:
        """Discard all work: the kernel that launched it has failed."""
        self.prepared.clear()
        self.launched.clear()
