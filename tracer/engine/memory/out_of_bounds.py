"""Out-of-bounds accesses of a wave to mapped memory: counted, with the first lane of each."""

import numpy as np
from numpy.typing import NDArray

from ..lanes import LANES, Array, Mask
from ..launch import Sink
from ..rows.warps import Warps
from .memory import GLOBAL_BASE


class OutsideRows:
    """Counts lanes by instruction, and keeps the first lane of the first warp that did so.

    The wave's warps lie in `block` and `warp` (W,). Both engines run the instructions of a warp in
    the same order, so that what comes first of a warp does not depend on them.
    """

    def __init__(self, sink: Sink, block: NDArray[np.uint64], warp: NDArray[np.uint16]) -> None:
        self._sink = sink
        self._block = block
        self._warp = warp
        self._found: dict[int, tuple[int, int, int, int]] = {}

    def add(self, pc: int, group: Warps, lanes: Mask, addresses: Array) -> None:
        """Count `lanes` (rows, columns) of a group, which are outside at `addresses`."""
        places = np.flatnonzero(lanes)
        if len(places):
            warps = group.place[places // LANES]
            first = int(places[warps.argmin()])
            address = int(addresses.reshape(-1)[first])
            self.note(pc, len(places), int(warps.min()), first % LANES, address)

    def note(self, pc: int, lanes: int, warp: int, lane: int, address: int) -> None:
        """Count lanes, the first of which is `lane` of the wave's warp of this number."""
        before, *first = self._found.get(pc, (0, warp, lane, address))
        if warp < first[0]:
            first = [warp, lane, address]
        self._found[pc] = (before + lanes, first[0], first[1], first[2])

    def flush(self) -> None:
        """Hand everything over."""
        if not self._found:
            return
        pcs = sorted(self._found)
        lanes, warps, lane, address = np.array([self._found[pc] for pc in pcs], np.int64).T
        self._sink.put(
            "outside",
            pc=np.array(pcs, np.uint32),
            lanes=lanes,
            block=self._block[warps],
            thread=self._warp[warps].astype(np.int64) * LANES + lane,
            address=address - GLOBAL_BASE,
        )
