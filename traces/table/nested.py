"""What is inside columns of lists and structs.

Arrow's own functions for this (`flatten`, `value_lengths`) import `pyarrow.compute`, which takes as
long as a small trace takes to be replayed.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_NESTED = (pa.ListArray, pa.FixedSizeListArray, pa.StructArray)
"""The arrays of a trace that have others inside."""


def list_lengths(column: pa.ListArray) -> npt.NDArray[np.int64]:
    """Return the length of each list (n,); that of a null is what its offsets say."""
    lengths: npt.NDArray[np.int64] = np.diff(column.offsets.to_numpy()).astype(np.int64)
    return lengths


def list_values(column: pa.ListArray | pa.FixedSizeListArray) -> pa.Array:
    """Return the values of all lists one after another; those of nulls are left out."""
    if column.null_count:
        return column.flatten()
    if isinstance(column, pa.FixedSizeListArray):
        size = column.type.list_size
        return column.values.slice(column.offset * size, len(column) * size)
    offsets = column.offsets.to_numpy()
    return column.values[int(offsets[0]) : int(offsets[-1])] if len(column) else column.values[:0]


def arrays_inside(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays inside lists and structs, at any depth."""
    if not isinstance(column, _NESTED):
        return
    is_struct = isinstance(column, pa.StructArray)
    for inner in column.flatten() if is_struct else [list_values(column)]:
        yield inner
        yield from arrays_inside(inner)
