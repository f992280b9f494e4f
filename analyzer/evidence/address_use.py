"""Address use: the distinct addresses and the contention of each instruction, over all rows."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...models.replay.interface.model import Bools, Ints
from ...models.replay.rows.lanes import Masks, count_distinct, count_lanes, unpack_masks
from ...models.replay.rows.sites import SPACES
from ...traces.column import integers
from ...traces.reader import LaunchTrace
from ...traces.schema import Space

Key = tuple[int, Space]


@dataclass(slots=True)
class AddressUse:
    """Sums over the rows of an instruction in one space: rows, active lanes, distinct addresses per
    row, and the lanes on the most wanted address of each row (`crowd`).

    `first` is the only address of all lanes and rows, or None if there are several.
    """

    rows: int = 0
    lanes: int = 0
    distinct: int = 0
    crowd: int = 0
    first: int | None = None


def read_address_use(trace: LaunchTrace) -> Mapping[Key, AddressUse]:
    """Measure all accesses of a launch in one pass."""
    uses: dict[Key, AddressUse] = {}
    store = trace.pattern_store()
    for batch in trace.access_batches():
        pc, space, base, pattern = integers(batch, "pc", "space", "base", "pattern")
        patterns, number = np.unique(pattern, return_inverse=True)
        key, group = np.unique(pc * SPACES + space, return_inverse=True)
        shapes = _measure(*store.take(patterns)) if len(patterns) else np.zeros((0, 3), np.int64)
        for index, which in enumerate(key.tolist()):
            rows = np.flatnonzero(group == index)
            at = which // SPACES, Space(which % SPACES)
            _add(uses, at, base[rows], shapes[number[rows]])
    return uses


def _add(uses: dict[Key, AddressUse], at: Key, base: Ints, shapes: Ints) -> None:
    """Add rows with these bases and measures, (n,) and (n, 3)."""
    same = bool((shapes[:, 1] == 1).all() and (base == base[0]).all())
    only = int(base[0]) if same else None
    use = uses.setdefault(at, AddressUse(first=only))
    use.first = only if use.first == only else None
    lanes, distinct, crowd = shapes.sum(axis=0).tolist()
    use.rows += len(base)
    use.lanes += lanes
    use.distinct += distinct
    use.crowd += crowd


def _measure(active: Masks, offsets: NDArray[np.int32]) -> Ints:
    """Return active lanes, distinct addresses, and the crowd of each pattern, (n, 3)."""
    on, values = unpack_masks(active), offsets.astype(np.int64)
    columns = (count_lanes(active), count_distinct(values, on), _crowd(values, on))
    return np.stack(columns, axis=1)


def _crowd(offsets: Ints, active: Bools) -> Ints:
    """Return the number of lanes on the most wanted address of each row, (n,)."""
    same = (offsets[:, :, None] == offsets[:, None, :]) & active[:, None, :]
    return np.asarray((same.sum(axis=2) * active).max(axis=1), np.int64)
