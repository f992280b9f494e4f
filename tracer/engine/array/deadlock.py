"""Deadlock detection: a launch whose warps only wait, and whose state repeats.

Warps whose loops wait for one another may do all their work inside of them, a tree that is summed
up from its leaves, say: that they run such loops only is no reason to give up. What cannot go on
comes back to a state in which it was: registers, memory, and where every warp stands.
"""

from collections.abc import Sequence
from hashlib import blake2b

from ..memory.memory import Memory
from .wave import ArrayWave

FIRST_MARK, APART = 8, 4
"""Rounds after which the state is first noted; later ones lie so many times further each."""

WINDOW = 64
"""Rounds after a mark, at most, in which the state is compared with the one that was noted."""

LONG = 1 << 13
"""Rounds at which it is enough that memory has not changed: a loop that counts its turns never
comes back to the state in which it was."""


class Stillness:
    """Looks at a launch whose waves only wait, round after round of all of them."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.reset()

    def reset(self) -> None:
        """Begin anew: something has run that is no waiting loop."""
        self._round = 0
        self._mark, self._next = 0, FIRST_MARK
        self._noted = self._noted_memory = b""

    def lasts(self, resident: Sequence[ArrayWave]) -> bool:
        """Whether it is sure, after another round, that these waves wait for ever."""
        self._round += 1
        if self._round == self._next:
            before, self._noted_memory = self._noted_memory, self._digest_of_memory(resident)
            if self._round >= LONG and before == self._noted_memory:
                return True
            self._noted = self._digest(resident)
            self._mark, self._next = self._round, APART * self._round
            return False
        since = self._round - self._mark
        if not self._mark or not APART <= since <= WINDOW:
            return False
        return self._digest(resident) == self._noted

    def _digest(self, resident: Sequence[ArrayWave]) -> bytes:
        whole = blake2b(self._digest_of_memory(resident))
        for wave in resident:
            for part in wave.state():
                whole.update(part.data)
        return whole.digest()

    def _digest_of_memory(self, resident: Sequence[ArrayWave]) -> bytes:
        memory = blake2b(self._memory.global_.used.data)
        for wave in resident:
            memory.update(wave.shared.data)
        return memory.digest()
