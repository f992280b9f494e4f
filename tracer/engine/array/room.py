"""Where waves of one shape stand, one after another: arrays over their warps."""

import numpy as np
from numpy.typing import NDArray

from ..lanes import LANES, Mask
from .program import Program
from .split import SplitStacks


class Room:
    """Arrays over the warps of so many thread `blocks`; `begin` makes them those of a new wave."""

    def __init__(self, program: Program, blocks: int) -> None:
        launch = program.launch
        self.blocks = blocks
        self.warps_a_block = -(-launch.threads // LANES)
        self.warps = blocks * self.warps_a_block
        self.all_blocks = np.arange(blocks)
        self.all_warps = np.arange(self.warps)
        self.block_of_warp = self.all_warps // self.warps_a_block
        self.warp_of_block = (self.all_warps % self.warps_a_block).astype(np.uint16)
        self.step: NDArray[np.uint32] = np.zeros(self.warps, dtype=np.uint32)
        self.fenced: Mask = np.zeros(self.warps, dtype=np.bool_)
        columns = self.warps_a_block * LANES
        lanes = np.arange(columns).reshape(self.warps_a_block, LANES) < launch.threads
        ends = len(program.kernel.blocks)
        self.stacks = SplitStacks(
            program.entry, program.exit, ends, lanes, blocks, blocks_that_meet(program)
        )

    def begin(self) -> None:
        """Let a new wave start: nothing has run, and all warps stand at the entry."""
        self.step.fill(0)
        self.fenced.fill(False)
        self.stacks.begin()


def blocks_that_meet(program: Program) -> int:
    """Blocks that meet at a barrier of clusters: 1 if only some blocks are run, for then those of
    a cluster do not depend on one another."""
    launch = program.launch
    return 1 if launch.chosen else launch.blocks_a_cluster
