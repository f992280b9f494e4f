"""NumPy columns as Arrow record batches, and back.

Nothing is copied where the dtype is the schema's, and what is written never wraps.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import CutraceError


def to_batch(schema: pa.Schema, columns: Sequence[npt.ArrayLike], where: str) -> pa.RecordBatch:
    """Return a record batch of columns in the schema's order; single values hold for all rows.

    Raises CutraceError if lengths differ or a value does not fit its type.
    """
    values = [np.asarray(column) for column in columns]
    rows = rows_of(values)
    arrays = [
        _to_array(value, rows, field.type, f"{where}: column `{field.name}`")
        for value, field in zip(values, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows_of(columns: Sequence[npt.ArrayLike]) -> int:
    """Return how many rows columns have: one if all are single values."""
    shapes = (np.shape(column) for column in columns)
    return max((shape[0] for shape in shapes if shape), default=1)


def to_list_batch(
    schema: pa.Schema, lengths: npt.ArrayLike, columns: Sequence[npt.ArrayLike], where: str
) -> pa.RecordBatch:
    """Return a record batch of list columns, all cut from flat values by the same n `lengths`."""
    ends = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])
    if ends[-1] > np.iinfo(np.int32).max or (np.diff(ends) < 0).any():
        raise CutraceError(f"{where}: lengths are negative or come to 2**31 values and more")
    offsets = to_arrow(ends.astype(np.int32), pa.int32())
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        label = f"{where}: column `{field.name}`"
        flat = _to_array(np.asarray(column), int(ends[-1]), field.type.value_type, label)
        arrays.append(pa.ListArray.from_arrays(offsets, flat, type=field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def signed(batch: pa.RecordBatch, name: str) -> Any:
    """Return a column as it is, (n,), but 64 bits as signed ones."""
    values: npt.NDArray[Any] = batch[name].to_numpy()
    return values.view(np.int64) if values.itemsize == 8 else values


def integers(batch: pa.RecordBatch, *names: str) -> "list[npt.NDArray[np.int64]]":
    """Return columns as int64, each (n,); those of 64 bits are not copied."""
    return [signed(batch, name).astype(np.int64, copy=False) for name in names]


def with_columns(table: Any, **columns: Any) -> Any:
    """Return a table or batch with other values in some columns, of the types that they had."""
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        kind = table.schema.field(place)
        table = table.set_column(place, kind, pa.array(values, kind.type))
    return table


def _to_array(
    values: npt.NDArray[np.generic], rows: int, kind: pa.DataType, where: str
) -> pa.Array:
    if pa.types.is_fixed_size_list(kind):
        flat = values.reshape(-1) if values.ndim > 1 else values
        inner = _to_array(flat, rows * kind.list_size, kind.value_type, where)
        return pa.FixedSizeListArray.from_arrays(inner, type=kind)
    if values.ndim == 0:
        values = np.full(rows, values)
    if values.shape != (rows,):
        raise CutraceError(f"{where}: shape {values.shape}, expected {rows} values")
    return to_arrow(_exact(values, _dtype(kind), where), kind)


def to_arrow(values: npt.NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    """What `pa.array` makes of contiguous values, which loads numpy.ma for that: 15 ms."""
    if pa.types.is_boolean(kind):
        return pa.array(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


@cache
def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    return np.dtype(str(kind))


def _exact(
    values: npt.NDArray[np.generic], dtype: np.dtype[Any], where: str
) -> npt.NDArray[np.generic]:
    """Return `values` contiguous in `dtype`; raise CutraceError for a value that it lacks."""
    if values.dtype != dtype and values.size:
        if values.dtype.kind not in "iu":
            raise CutraceError(f"{where}: {values.dtype} values, expected {dtype}")
        limits = np.iinfo(dtype)
        low, high = int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            raise CutraceError(f"{where}: values {low} to {high} do not fit {dtype}")
    return np.ascontiguousarray(values, dtype)
