"""Dense numbers for keys: by a lookup table if the range is small, else by sorting."""

import numpy as np

from ....traces.table.unique import sorted_places
from ..seam import Ints

DENSE = 1 << 20
"""A table of this many entries is always worth numbering rows with; beyond, they are sorted."""


def number_rows(keys: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct keys, and for each row the index of its key; 0 <= keys < size."""
    if size > max(DENSE, 4 * len(keys)):
        if (keys[1:] > keys[:-1]).all():
            return keys, np.arange(len(keys))
        distinct, _, number = sorted_places(keys)
        return distinct, number
    seen = np.zeros(size, np.bool_)
    seen[keys] = True
    distinct = np.flatnonzero(seen)
    table = np.empty(size, np.int64)
    table[distinct] = np.arange(len(distinct))
    return distinct, table[keys]
