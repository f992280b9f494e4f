"""The device that a program is shown: numbers that it may ask for, and how many blocks fit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """`facts` has a number for each name of `wire.fact_names()`.

    `fits(registers, shared bytes, threads)` is how many blocks of such a kernel an SM holds.
    """

    name: str
    facts: Mapping[str, int]
    fits: Callable[[int, int, int], int]

    @property
    def capability(self) -> int:
        """90 for compute capability 9.0."""
        return 10 * self.facts["major"] + self.facts["minor"]
