"""Distributed shared memory: accesses to other blocks of a cluster (PTX ISA 5.1.7.2).

A block has its own shared memory at offsets from 0 on. Behind it follow windows of 16 MB for the
blocks of the cluster, in order of rank: `mapa` returns addresses there, which any shared or generic
access takes. The ISA leaves the numbers open. Bit 24 of an address tells the two blocks of a pair
apart, as on the hardware: programs clear it to reach the first one (`mapa.leader`).
"""

from ....traces.schema import Space
from ..memory.memory import WINDOWS
from ..warp.program import Wave

START, SPAN = 0x1000_0000, 1 << 24
"""Shared address of the window of rank 0, and the size of a window."""

MOST_BLOCKS = 16
"""Maximum blocks per cluster: more than 8 are not portable (CUDA C++ Programming Guide, Thread
Block Clusters).
"""

_FIRST = WINDOWS[Space.SHARED][0] + START
GENERIC = (_FIRST, _FIRST + MOST_BLOCKS * SPAN)
"""Range of these windows in generic addresses: first address, end."""


def locate(wave: Wave, block: int, address: int) -> tuple[int, int]:
    """Return the block of the wave that owns a shared address of a block, -1 if its cluster has
    none there, and the offset in that block's memory.
    """
    if address < START:
        return block, address
    size = wave.program.launch.blocks_a_cluster
    rank, offset = divmod(address - START, SPAN)
    return block // size * size + rank if rank < size else -1, offset
