"""`barrier.cluster`: where the threads of all blocks of a cluster meet (PTX ISA 9.7.13.4).

A thread arrives, goes on, and waits later. A phase is complete when every lane of the cluster that
has not exited has arrived; then nobody has arrived at the next one. So a lane may go on from its
wait once its arrival is no longer among those that the phase collects.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..lanes import Bits, Mask
from .turn import Stacks


class Holder(Protocol):
    """What lets warps wait and go on: the barriers of the wave's blocks."""

    def hold(self, warps: NDArray[np.intp], after: int, pc: int) -> None:
        """Let warps wait that go to `after` then."""

    def let_go(self, warps: NDArray[np.intp]) -> None:
        """Let warps go on that wait."""


class ClusterBarrier:
    """Masks over the W warps of a wave, whose blocks form clusters of so many, side by side:
    lanes that have `arrived` in this phase, and that are `owed` a wait for their arrival."""

    def __init__(self, stacks: Stacks, holder: Holder, blocks_a_cluster: int) -> None:
        warps = len(stacks.state)
        self._stacks = stacks
        self._holder = holder
        self._warps = stacks.warps_a_block * blocks_a_cluster
        self._waiting: Mask = np.zeros(warps, dtype=np.bool_)
        self.arrived: Bits = np.zeros(warps, dtype=np.uint32)
        self.owed: Bits = np.zeros(warps, dtype=np.uint32)

    def arrive(self, warps: NDArray[np.intp], lanes: Bits, after: int) -> NDArray[np.intp]:
        """Let `lanes` of warps arrive, and all go on; return the warps that must not: they have
        arrived already and not waited for it."""
        wrong: NDArray[np.intp] = warps[(self.owed[warps] & lanes) != 0]
        if wrong.size:
            return wrong
        self.arrived[warps] |= lanes
        self.owed[warps] |= lanes
        self._stacks.go(warps, after)
        self.release()
        return wrong

    def wait(self, warps: NDArray[np.intp], lanes: Bits, after: int, pc: int) -> NDArray[np.intp]:
        """Let `lanes` of warps wait for the phase in which they arrived; return the warps that
        must not: they have not arrived."""
        wrong: NDArray[np.intp] = warps[(lanes & ~self.owed[warps]) != 0]
        if wrong.size:
            return wrong
        self.release()
        still = (self.arrived[warps] & lanes) != 0
        over = warps[~still]
        self.owed[over] &= ~lanes[~still]
        self._stacks.go(over, after)
        for warp, waiting in zip(warps[still].tolist(), lanes[still].tolist(), strict=True):
            if not self._others_go(warp, waiting):
                self.owed[warp] &= np.uint32(~waiting & 0xFFFF_FFFF)
                self._waiting[warp] = True
                self._holder.hold(np.array([warp]), after, pc)
        self.release()
        return wrong

    def _others_go(self, warp: int, lanes: int) -> bool:
        """Let lanes of a warp go first that are not here, if there are any: it asks again."""
        return self._stacks.step_aside(warp, lanes)

    def release(self) -> None:
        """Let the clusters go on of which everybody has arrived. A warp that waits has nobody left
        who could come: its other lanes have exited, or wait for these where they are to join."""
        if not self.arrived.any():
            return
        stacks = self._stacks
        live = np.where(stacks.ended() | self._waiting, np.uint32(0), stacks.live())
        missing = (live & ~self.arrived).reshape(-1, self._warps)
        come = self.arrived.reshape(-1, self._warps)
        complete = (missing == 0).all(axis=1) & (come != 0).any(axis=1)
        if not complete.any():
            return
        members = np.repeat(complete, self._warps)
        self.arrived[members] = 0
        free = np.flatnonzero(members & self._waiting)
        self._waiting[free] = False
        self._holder.let_go(free)
