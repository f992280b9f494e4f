"""Launches, copies and sets that kernels asked for, until they are run: when those have ended."""

from dataclasses import field

from ....lazy_dataclass import dataclass

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
        found = self.launched[:]
        self.launched.clear()
        return sorted(found, key=lambda each: each.stream == TAIL_STREAM)

    def clear(self) -> None:
        """Forget all of it: the kernel that asked for it has failed."""
        self.prepared.clear()
        self.launched.clear()
