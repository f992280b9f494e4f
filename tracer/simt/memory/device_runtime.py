"""Device heap: memory that kernels allocate and free by `malloc` and `new`, in global memory.

Pieces are taken in the order in which lanes ask, each the first place that is large enough, and
stay taken from launch to launch until a kernel gives them back (CUDA C++ Programming Guide,
"Dynamic Global Memory Allocation": 8 MB unless a program asks for more, multiples of 16 bytes).
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
    """The part of memory that is `place`."""

    def __init__(self, place: _Place) -> None:
        self._free = [(place.address, place.address + place.size)]
        self._taken: dict[int, int] = {}

    def take(self, size: int) -> int:
        """Return the address of so many bytes, or 0 where there is no room for them."""
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        for number, (start, end) in enumerate(self._free):
            if start + size <= end:
                remainder = [(start + size, end)] if start + size < end else []
                self._free[number : number + 1] = remainder
                self._taken[start] = size
                return start
        return 0

    def give(self, address: int) -> bool:
        """Take a piece back; False if none begins at this address."""
        size = self._taken.pop(address, 0)
        if size:
            insort(self._free, (address, address + size))
            self._join(self._free.index((address, address + size)))
        return bool(size)

    def _join(self, number: int) -> None:
        """Join a free piece with the next, and with the one before."""
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
    """A launch that a kernel asked for; its parameters lie at the address `buffer`."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    buffer: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class DeviceCopy:
    """A copy of `size` bytes that a kernel asked for."""

    to: int
    source: int
    size: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """A request of a kernel to set each of `size` bytes to `value`."""

    to: int
    value: int
    size: int
    stream: int = 0


DeviceWork = DeviceLaunch | DeviceCopy | DeviceSet


@dataclass
class DeviceLaunches:
    """What kernels prepared by buffers, and what of it they launched."""

    prepared: dict[int, DeviceLaunch] = field(default_factory=dict)
    launched: list[DeviceWork] = field(default_factory=list)

    def take(self) -> list[DeviceWork]:
        """Return what was launched since, in the order in which it is to run."""
        launches = self.launched[:]
        self.launched.clear()
        return sorted(launches, key=lambda each: each.stream == TAIL_STREAM)

    def clear(self) -> None:
        """Forget all of it: the kernel that asked for it has failed."""
        self.prepared.clear()
        self.launched.clear()
