"""Distributed shared memory: accesses to other blocks of a cluster (PTX ISA 5.1.7.2).

A block has its own shared memory at offsets from 0 on. Behind it follow windows of 16 MB for the
blocks of the cluster, in order of rank: `mapa` returns addresses there, which any shared or generic
access takes. The ISA leaves the numbers open.
"""

import numpy as np

from ....traces.schema import Space
from ..memory.memory import WINDOWS
from ..ops.lanes import Array
from ..warp.program import Group, Wave

START, SPAN = 0x0F00_0000, 1 << 24
"""Shared address of the window of rank 0, and the size of a window."""

MOST_BLOCKS = 16
"""Maximum blocks per cluster: more than 8 are not portable (CUDA C++ Programming Guide, Thread
Block Clusters).
"""

_FIRST = WINDOWS[Space.SHARED][0] + START
GENERIC = (_FIRST, _FIRST + MOST_BLOCKS * SPAN)
"""Range of these windows in generic addresses: first address, end."""


def owner_and_offset(group: Group, addresses: Array) -> tuple[Array, Array]:
    """Return for shared addresses (rows, columns) the owning blocks of the wave, -1 if the cluster
    has no such block, and the offsets in these blocks' memory.
    """
    size = group.wave.program.launch.blocks_a_cluster
    own = group.row_block[:, None]
    elsewhere = addresses >= START
    rank = (addresses - START) // SPAN
    owner = np.where(elsewhere, own // size * size + rank, own)
    owner = np.where(elsewhere & (rank >= size), -1, owner)
    return owner, np.where(elsewhere, (addresses - START) % SPAN, addresses)


def locate(wave: Wave, warp: int, address: int) -> tuple[int, int]:
    """Return the block of the wave that owns a shared address of a warp, and the offset there."""
    size, own = wave.program.launch.blocks_a_cluster, int(wave.block_of_warp[warp])
    rank, offset = divmod(address - START, SPAN)
    return own // size * size + rank, offset
