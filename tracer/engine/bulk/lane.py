"""Lanes that start bulk copies, one after another, with the values of their operands."""

from collections.abc import Iterator, Sequence

import numpy as np

from ....lazy_dataclass import dataclass
from ..array.program import Group
from ..array.slot import Fetch
from ..lanes import Array, Mask


@dataclass(frozen=True, slots=True)
class Lane:
    """An active lane of a group: its place in the group's shape, the block of the wave that it is
    of, and the values of its operands."""

    group: Group
    place: int
    block: int
    values: tuple[int, ...]


def lanes_of(group: Group, guard: Fetch | None, values: Sequence[Array]) -> Iterator[Lane]:
    """Yield the active lanes in order of block, warp and lane; `values` are integers."""
    lanes = group.guarded(None if guard is None else guard(group.frame))
    shape = (group.rows, group.columns)
    active: Mask = np.broadcast_to(np.bool_(True) if lanes is None else lanes, shape)
    spread = [np.broadcast_to(value, shape).reshape(-1) for value in values]
    for place in np.flatnonzero(active).tolist():
        block = int(group.row_block[place // group.columns])
        yield Lane(group, place, block, tuple(int(value[place]) for value in spread))
