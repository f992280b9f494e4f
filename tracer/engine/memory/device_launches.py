"""Launches that kernels asked for, until they are run: when the kernel has ended."""

from dataclasses import dataclass, field

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


@dataclass
class DeviceLaunches:
    """What kernels prepared by buffers, and what of it they launched."""

    prepared: dict[int, DeviceLaunch] = field(default_factory=dict)
    launched: list[DeviceLaunch] = field(default_factory=list)

    def take(self) -> list[DeviceLaunch]:
        """Return what was launched since, in the order in which it is to run."""
        found, self.launched = self.launched, []
        return sorted(found, key=lambda each: each.stream == TAIL_STREAM)

    def clear(self) -> None:
        """Forget all of it: the kernel that asked for it has failed."""
        self.prepared.clear()
        self.launched.clear()
