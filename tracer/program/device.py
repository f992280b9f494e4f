"""The device that a program is shown: numbers that it may ask for, and how many blocks fit."""

from collections.abc import Callable, Mapping
from typing import Protocol

from ...base.dataclass import dataclass
from ..session.recording import Recorder
from ..simt.kernel.chip import Chip


class Stopwatch(Protocol):
    """Says of launches that it takes in place of a trace how long the device needs at least."""

    @property
    def recorder(self) -> Recorder:
        """What takes them."""

    def nanoseconds(self) -> float:
        """Of all that it took; 0 where nothing is known."""


@dataclass(frozen=True, slots=True)
class Device:
    """`facts` has a number for each name of `wire.fact_names()`.

    `fits(registers, shared bytes, threads)` is how many blocks of such a kernel an SM holds;
    `time()` makes a stopwatch for it.
    """

    name: str
    facts: Mapping[str, int]
    fits: Callable[[int, int, int], int]
    time: Callable[[], Stopwatch]
    sms_per_cluster: int = 1
    shared_unit: int = 128

    @property
    def capability(self) -> int:
        """90 for compute capability 9.0."""
        return 10 * self.facts["major"] + self.facts["minor"]

    @property
    def chip(self) -> Chip:
        """What kernels see of it."""
        return Chip(
            self.capability,
            self.facts["processors"],
            self.sms_per_cluster,
            self.facts["warps_per_sm"],
            self.shared_unit,
            self.facts["shared_reserved"],
            self.fits,
        )
