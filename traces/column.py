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


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table: its columns in the schema's types, flat; for lists, the `lengths` (rows,) by
    which all columns are cut.
    """

    count: int
    columns: Sequence[npt.NDArray[Any]]
    lengths: npt.NDArray[np.int64] | None = None

    def copy(self) -> "Rows":
        """Return rows with arrays of their own."""
        lengths = None if self.lengths is None else self.lengths.copy()
        return Rows(self.count, [column.copy() for column in self.columns], lengths)


def to_rows(schema: pa.Schema, columns: Sequence[npt.ArrayLike], where: str) -> Rows:
    """Return rows from columns in schema order; single values are broadcast to all rows.

    Columns of lists come after the lengths of the lists. Raises CutraceError if lengths differ or a
    value does not fit its type.
    """
    fields, lengths = _fields_of(schema), None
    if not fields[0].width:
        lengths, columns = np.asarray(columns[0], np.int64), columns[1:]
        count, sizes = len(lengths), [int(lengths.sum())] * len(fields)
        if sizes[0] > np.iinfo(np.int32).max or lengths.min(initial=0) < 0:
            raise CutraceError(f"{where}: lengths are negative or come to 2**31 values and more")
    else:
        count = rows_of(columns)
        sizes = [count * field.width for field in fields]
    flat = [
        _values(np.asarray(column), size, field, where)
        for column, size, field in zip(columns, sizes, fields, strict=True)
    ]
    return Rows(count, flat, lengths)


def rows_of(columns: Sequence[npt.ArrayLike]) -> int:
    """Return the number of rows of columns: one if all are single values."""
    return max([each.shape[0] for each in map(np.asarray, columns) if each.ndim], default=1)


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Return all rows of some parts of a table."""
    if len(parts) == 1:
        return parts[0]
    lengths = [part.lengths for part in parts if part.lengths is not None]
    columns = zip(*(part.columns for part in parts), strict=True)
    return Rows(
        sum(part.count for part in parts),
        [np.concatenate(pieces) for pieces in columns],
        np.concatenate(lengths) if lengths else None,
    )


def to_batch(schema: pa.Schema, rows: Rows) -> pa.RecordBatch:
    """Return rows as a record batch; no value is copied."""
    offsets = None
    if rows.lengths is not None:
        ends: npt.NDArray[np.int32] = np.zeros(rows.count + 1, np.int32)
        np.cumsum(rows.lengths, out=ends[1:])
        offsets = pa.py_buffer(ends)
    arrays = []
    for values, field in zip(rows.columns, _fields_of(schema), strict=True):
        array = to_arrow(values, field.inner)
        if field.type is not field.inner:
            buffers = [None] if field.width else [None, offsets]
            array = pa.Array.from_buffers(field.type, rows.count, buffers, 0, 0, [array])
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def size_of(schema: pa.Schema, rows: int, values: int = 0) -> int:
    """Return the `nbytes` of a batch with so many rows; if they are lists, with so many values in
    each column.
    """
    of_row, of_value = _sizes_of(schema)
    return of_row * rows + of_value * values


@cached_by_identity
def _sizes_of(schema: pa.Schema) -> tuple[int, int]:
    """Return the bytes of a row, and of a value in each list."""
    fields = _fields_of(schema)
    rows = sum(field.dtype.itemsize * field.width if field.width else 4 for field in fields)
    return rows, sum(field.dtype.itemsize for field in fields if not field.width)


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


def _values(
    values: npt.NDArray[np.generic], count: int, field: _Field, where: str
) -> npt.NDArray[np.generic]:
    """Return the values of a column, flat and in its type."""
    if values.ndim != 1:
        values = values.reshape(-1) if values.ndim else np.full(count, values)
    if values.shape != (count,):
        raise CutraceError(
            f"{where}: column `{field.name}`: shape {values.shape}, expected {count} values"
        )
    return _exact(values, field, where)


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
