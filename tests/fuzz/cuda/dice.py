"""Chance that is the same on every machine and in every version of Python."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws by seed; only `getrandbits` of the Mersenne twister is used."""

    def __init__(self, seed: int) -> None:
        self._bits = random.Random(seed).getrandbits

    def below(self, count: int) -> int:
        """A whole number from 0, less than `count`."""
        return self._bits(32) * count >> 32

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + self.below(high - low + 1)

    def pick(self, things: Sequence[T]) -> T:
        """One of several."""
        return things[self.below(len(things))]

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.below(100) < percent
