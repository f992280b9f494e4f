"""Access rows that the array engine makes while machine code waits: they go among its rows."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....traces.schema import Space
from ..access_rows import AccessRows
from ..array import Array, Mask

if TYPE_CHECKING:
    from ..group import Group
    from .wave import CompiledWave


class EscapeRows(AccessRows):
    """As AccessRows, of which each item becomes a run of the machine's rows."""

    def bind(self, wave: "CompiledWave") -> None:
        """Add to the rows of this wave."""
        self._wave = wave

    def add(
        self, group: "Group", position: int, pc: int, space: Space, part: int,
        base: Array, pattern: Array, keep: Mask | None,
    ) -> None:  # fmt: skip
        """Add a row for every warp of the group's shape that `keep` (rows, warps a row) leaves."""
        shape = (group.rows, group.warps_a_row)
        chosen = np.flatnonzero(np.broadcast_to(True if keep is None else keep, shape))
        if not chosen.size:
            return
        step = (group.step[chosen] + np.uint32(position)).astype(np.uint32)
        rows = (_of(base, shape, chosen), _of(pattern, shape, chosen))
        self._wave.add_rows((pc, int(space), part), group.place[chosen], step, *rows)

    def flush(self) -> None:
        """Nothing waits here."""


def _of(values: Array, shape: tuple[int, int], chosen: NDArray[np.intp]) -> Array:
    return np.broadcast_to(values, shape).reshape(-1)[chosen]
