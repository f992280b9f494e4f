"""The device that a program sees: its attributes, and how many blocks fit on an SM."""

from collections.abc import Callable, Mapping
from typing import Protocol

from ...base.dataclass import dataclass
from ..session.recording import Recorder
from ..simt.kernel.chip import Chip


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
