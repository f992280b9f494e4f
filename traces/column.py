"""Conversion of NumPy columns to Arrow record batches and back.

Columns of the schema's dtype are not copied; values out of range are rejected, not wrapped.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .identity_cache import cached_by_identity


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of a schema: values of type `inner`, `width` per row; 0: a list of any length."""

    name: str
    type: pa.DataType
    inner: pa.DataType
    dtype: np.dtype[Any]
    width: int


@cached_by_identity
def _fields_of(schema: pa.Schema) -> Sequence[_Field]:
    """Return the fields for making a batch, cached per schema: Arrow rebuilds its own at each
    access.
    """
    return [_field(name, kind) for name, kind in zip(schema.names, schema.types, strict=True)]


def _field(name: str, kind: pa.DataType) -> _Field:
    inner, width = kind, 1
    if pa.types.is_fixed_size_list(kind):
        inner, width = kind.value_type, kind.list_size
    elif pa.types.is_list(kind):
        inner, width = kind.value_type, 0
    return _Field(name, kind, inner, np.dtype(str(inner)), width)


def to_batch(schema: pa.Schema, columns: Sequence[npt.ArrayLike], where: str) -> pa.RecordBatch:
    """Return a record batch of columns in schema order; single values are broadcast to all rows.

    Raises CutraceError if lengths differ or a value does not fit its type.
    """
    values = [np.asarray(column) for column in columns]
    rows = rows_of(values)
    arrays = [
        _to_array(value, rows, field, where)
        for value, field in zip(values, _fields_of(schema), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows_of(columns: Sequence[npt.ArrayLike]) -> int:
    """Return the number of rows of columns: one if all are single values."""
    shapes = (np.shape(column) for column in columns)
    return max((shape[0] for shape in shapes if shape), default=1)


def to_list_batch(
    schema: pa.Schema, lengths: npt.ArrayLike, columns: Sequence[npt.ArrayLike], where: str
) -> pa.RecordBatch:
    """Return a record batch of list columns, all cut from flat values by the same n `lengths`."""
    each = np.asarray(lengths, np.int64)
    ends: npt.NDArray[np.int64] = np.zeros(len(each) + 1, np.int64)
    np.cumsum(each, out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max or each.min(initial=0) < 0:
        raise CutraceError(f"{where}: lengths are negative or come to 2**31 values and more")
    offsets = pa.py_buffer(ends.astype(np.int32))
    arrays = []
    for column, field in zip(columns, _fields_of(schema), strict=True):
        flat = _values(np.asarray(column), int(ends[-1]), field, where)
        arrays.append(pa.Array.from_buffers(field.type, len(each), [None, offsets], 0, 0, [flat]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def bytes_of(batch: pa.RecordBatch, schema: pa.Schema) -> int:
    """Return the `nbytes` of a batch made here (Arrow takes 50 us): offsets of a list count 4 per
    row.
    """
    return sum(_bytes_of(batch, number, field) for number, field in enumerate(_fields_of(schema)))


def _bytes_of(batch: pa.RecordBatch, number: int, field: _Field) -> int:
    rows: int = batch.num_rows
    if field.width:
        return rows * field.width * field.dtype.itemsize
    return 4 * rows + len(batch.column(number).values) * field.dtype.itemsize


def signed(batch: pa.RecordBatch, name: str) -> Any:
    """Return a column unchanged, (n,), except that uint64 is viewed as int64."""
    values: npt.NDArray[Any] = batch[name].to_numpy()
    return values.view(np.int64) if values.itemsize == 8 else values


def integers(batch: pa.RecordBatch, *names: str) -> "list[npt.NDArray[np.int64]]":
    """Return columns as int64, each (n,); 64-bit columns are not copied."""
    return [signed(batch, name).astype(np.int64, copy=False) for name in names]


def with_columns(table: Any, **columns: Any) -> Any:
    """Return a table or batch with the values of some columns replaced; types are kept."""
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        kind = table.schema.field(place)
        table = table.set_column(place, kind, pa.array(values, kind.type))
    return table


def _to_array(values: npt.NDArray[np.generic], rows: int, field: _Field, where: str) -> pa.Array:
    if field.type is field.inner:
        return _values(values, rows, field, where)
    flat = values.reshape(-1) if values.ndim > 1 else values
    inner = _values(flat, rows * field.width, field, where)
    return pa.Array.from_buffers(field.type, rows, [None], 0, 0, [inner])


def _values(values: npt.NDArray[np.generic], count: int, field: _Field, where: str) -> pa.Array:
    if values.ndim == 0:
        values = np.full(count, values)
    if values.shape != (count,):
        raise CutraceError(
            f"{where}: column `{field.name}`: shape {values.shape}, expected {count} values"
        )
    return to_arrow(_exact(values, field, where), field.inner)


def to_arrow(values: npt.NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    """Return contiguous values like `pa.array`, which would load numpy.ma for it: 15 ms."""
    if values.dtype == np.bool_:  # NumPy: a byte each; Arrow: a bit
        return pa.array(values)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)], 0)


def _exact(values: npt.NDArray[np.generic], field: _Field, where: str) -> npt.NDArray[np.generic]:
    """Return `values` contiguous in a column's dtype; CutraceError for a value out of its range."""
    dtype = field.dtype
    if values.dtype != dtype and values.size:
        where = f"{where}: column `{field.name}`"
        if values.dtype.kind not in "iu":
            raise CutraceError(f"{where}: {values.dtype} values, expected {dtype}")
        limits = np.iinfo(dtype)
        low, high = int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            raise CutraceError(f"{where}: values {low} to {high} do not fit {dtype}")
    return np.ascontiguousarray(values, dtype)


_NESTED = (pa.ListArray, pa.FixedSizeListArray, pa.StructArray)
"""Array types of a trace that contain other arrays."""


def list_lengths(column: pa.ListArray) -> npt.NDArray[np.int64]:
    """Return the length of each list (n,); for a null, the length by its offsets."""
    lengths: npt.NDArray[np.int64] = np.diff(column.offsets.to_numpy()).astype(np.int64)
    return lengths


def list_values(column: pa.ListArray | pa.FixedSizeListArray) -> pa.Array:
    """Return the concatenated values of all lists; those of nulls are left out."""
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
