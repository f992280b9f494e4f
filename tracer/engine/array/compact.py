"""Registers of a few warps, gathered from the wave's and written back when other warps run.

While the same warps go from block to block together, what they computed stays here.
"""

import numpy as np
from numpy.typing import NDArray

from ....native.ufunc import select
from ..lanes import LANES, Array, Mask
from .invariant import require_alone
from .program import BlockPlan, Wave


class CompactRegisters:
    """Values of `warps` (n,), ascending, as (n or 1, 32 or 1) arrays by slot."""

    def __init__(self, wave: Wave, warps: NDArray[np.intp]) -> None:
        self._wave = wave
        self.warps = warps
        self.frame: list[Array] = list(wave.registers)
        self._here: set[int] = set()
        self._changed: set[int] = set()

    def enter(self, plan: BlockPlan, lanes: Mask | None) -> list[Array]:
        """Return the frame in which a block runs: a copy where only some lanes are active."""
        needed = plan.reads if lanes is None else plan.reads_and_commits
        for slot in needed:
            if slot not in self._here:
                self.frame[slot] = self._gather(self._wave.registers[slot])
                self._here.add(slot)
        return self.frame if lanes is None else list(self.frame)

    def leave(self, plan: BlockPlan, lanes: Mask | None, frame: list[Array]) -> None:
        """Keep what outlives the block.

        Other lanes of the warps may keep something else where the block has its temporaries.
        """
        self._here.update(plan.commits)
        self._changed.update(plan.commits)
        if lanes is None:
            self._here.difference_update(plan.temporaries)
            return
        for slot in plan.commits:
            if frame[slot] is not self.frame[slot]:
                self.frame[slot] = select(lanes, frame[slot], self.frame[slot])

    def write_back(self) -> None:
        """Put what has changed into the wave's registers."""
        registers = self._wave.registers
        for slot in sorted(self._changed):
            registers[slot] = self._scatter(slot, self.frame[slot])

    def _gather(self, value: Array) -> Array:
        wave = self._wave
        if value.size == 1:
            return value
        if value.shape[1] == 1:
            return value[wave.block_of_warp[self.warps]]
        by_warp = value.reshape(-1, LANES)
        if value.shape[0] == 1:
            return by_warp[self.warps % wave.warps_a_block]
        return by_warp[self.warps]

    def _scatter(self, slot: int, new: Array) -> Array:
        """Return the wave's value with the bits of the warps' in it; in place if it is its own."""
        wave = self._wave
        old = wave.registers[slot]
        if not wave.owns(slot):
            old = np.array(np.broadcast_to(old, (wave.blocks, wave.columns)), order="C")
            wave.own(slot, old)
        wave.facts.drop(old)
        if wave.asserts:
            registers = (r for n, r in enumerate(wave.registers) if n != slot)
            require_alone(old, (*registers, *wave.facts.values()))
        old.reshape(-1, LANES)[self.warps] = new.view(old.dtype)
        return old
