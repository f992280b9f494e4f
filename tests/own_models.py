"""Models of a user's own: `model = "own_models:Sightings"`."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from cutrace.models.replay.interface.model import Batch, Step


@dataclass
class Sightings:
    """A cache that forgets nothing: rows that bring a new block of `unit` bytes, and others."""

    unit: int

    counters: ClassVar[tuple[str, ...]] = ("first_time", "again")
    period: ClassVar[int] = 0
    _seen: set[int] = field(default_factory=set, init=False)

    def step(self, batch: Batch) -> Step:
        """Look at each row's lowest active lane."""
        lanes = batch.active.argmax(axis=1)
        units = batch.addresses[np.arange(len(batch)), lanes] // self.unit
        new = np.zeros(len(batch), np.int64)
        for row, unit in enumerate(units.tolist()):
            new[row] = unit not in self._seen
            self._seen.add(unit)
        return Step({"first_time": new, "again": 1 - new})


@dataclass(frozen=True)
class Offsets:
    """Where in 96 bytes each row begins: its period is not a power of two."""

    counters: ClassVar[tuple[str, ...]] = ("place",)
    period: ClassVar[int] = 96

    def step(self, batch: Batch) -> Step:
        """Give the lowest active lane's address modulo 96."""
        lanes = batch.active.argmax(axis=1)
        return Step({"place": batch.addresses[np.arange(len(batch)), lanes] % 96})


@dataclass(frozen=True)
class Divided:
    """A model that raises in its first step."""

    width: int = 4

    counters: ClassVar[tuple[str, ...]] = ("each",)
    period: ClassVar[int] = 0

    def step(self, batch: Batch) -> Step:
        """Divide by zero."""
        lanes = self.width // 0
        return Step({"each": np.full(len(batch), lanes)})


class Countless:
    """A model that lacks what it must have."""

    counters: ClassVar[tuple[str, ...]] = ()
    period: ClassVar[int] = 0
