"""Where compiled code finds special registers: in tables of the launch, of blocks, of warps."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .....lazy_dataclass import dataclass
from ...array.special_register import block_values, special_values, thread_values
from ...lanes import LANES
from ...launch import Launch

LAUNCH, BLOCK, THREAD = "launch", "block", "thread"
"""Whose a special register is: a table has one row, one for each block of the wave, or one for each
warp of a block with 32 lanes side by side."""

ALIGN = 8


@dataclass(frozen=True, slots=True)
class SpecialPlace:
    """The table, bytes from the start of its row, and the bytes of a value."""

    table: str
    offset: int
    size: int


_OF_WORKSPACE = ("%envreg1", "%envreg2")
"""These hold the address of the workspace of cooperative groups, where a module has one."""


def _kinds() -> dict[str, tuple[str, int]]:
    """Return whose each special register is, and its bytes."""
    launch = Launch((1, 1, 1), (2 * LANES, 1, 1), 0, (), print)
    kinds = {
        name: (THREAD if value.shape[1] > 1 else LAUNCH, value.dtype.itemsize)
        for name, value in thread_values(launch).items()
    }
    blocks = block_values(launch, np.zeros(1, dtype=np.int64))
    for name in _OF_WORKSPACE:
        del kinds[name]
    del blocks["%warpid"]  # each warp of each block has its own: the array engine knows it
    return kinds | {name: (BLOCK, value.dtype.itemsize) for name, value in blocks.items()}


_KINDS = _kinds()


class Specials:
    """Places of the special registers `names`, as far as they are fixed for a thread."""

    def __init__(self, names: Iterable[str]) -> None:
        self.places: dict[str, SpecialPlace] = {}
        self.row_bytes = {LAUNCH: 0, BLOCK: 0, THREAD: 0}
        for name in names:
            if name in _KINDS:
                table, size = _KINDS[name]
                self.places[name] = SpecialPlace(table, self.row_bytes[table], size)
                row = size * LANES if table == THREAD else size
                self.row_bytes[table] += -(-row // ALIGN) * ALIGN

    def tables(self, launch: Launch, numbers: NDArray[np.int64]) -> dict[str, NDArray[np.uint8]]:
        """Return the tables of a wave of the blocks with these numbers."""
        rows = {LAUNCH: 1, BLOCK: len(numbers), THREAD: -(-launch.threads // LANES)}
        tables: dict[str, NDArray[np.uint8]] = {
            table: np.zeros((count, self.row_bytes[table]), dtype=np.uint8)
            for table, count in rows.items()
        }
        if self.places:
            values = special_values(launch, numbers)
            for name, place in self.places.items():
                value = values[name].reshape(rows[place.table], -1)
                bytes_ = np.ascontiguousarray(value).view(np.uint8)
                tables[place.table][:, place.offset : place.offset + bytes_.shape[1]] = bytes_
        return tables
