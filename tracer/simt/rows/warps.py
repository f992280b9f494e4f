"""The interface of a group of warps that rows are written from."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Warps(Protocol):
    """Warps (indices in the wave, ascending) with their lanes in arrays (rows, columns).

    `place` (rows * warps per row) is each warp's index in the wave, `step` its running instruction
    number, `common_step` the one of all if they agree; `row_block` (rows,) is the thread block of
    each row.
    """

    warps: NDArray[np.intp]
    rows: int
    columns: int
    compacted: bool
    row_block: NDArray[np.intp]
    step: NDArray[np.uint32]
    common_step: int | None

    @property
    def warps_a_row(self) -> int:
        """Warps side by side in a row."""

    @property
    def blocks_in_wave(self) -> int:
        """Thread blocks of the wave."""

    @property
    def place(self) -> NDArray[np.intp]:
        """Each warp's index in the wave."""
