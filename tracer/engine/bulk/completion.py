"""What an mbarrier is told of bytes that have come (PTX ISA 9.7.13.15.5, complete-tx).

Bulk copies are done when they are issued, which is one of the times that the ISA allows.
"""

import numpy as np

from .bytes_of import Bytes

COUNT = (1 << 20) - 1
_BYTES = (1 << 21) - 1


def complete(barrier: Bytes, size: int) -> None:
    """Take `size` bytes off what a barrier's phase waits for; the word is as in mbarrier.py."""
    word = int(barrier.view.view(np.uint64)[0])
    pending, expected, phase = word & COUNT, word >> 20 & COUNT, word >> 61
    coming = (word >> 40 & _BYTES) - size & _BYTES
    if not pending and not coming:
        pending, phase = expected, phase + 1 & 7
    word = pending | expected << 20 | coming << 40 | phase << 61
    barrier.view.view(np.uint64)[0] = word
