"""One table of a trace as an Arrow IPC file: written in record batches, read in record batches.

A trace may come from anybody, so nothing is believed: schema, declared sizes and the buffers
themselves are checked before the rows are handed on, and batch after batch, so that the memory
taken does not depend on the length of the file.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from ..errors import CutraceError
from .folder import reason
from .message import SCHEMA, check_kind, declared_size

HELD_BYTES = 1 << 20
"""Batches smaller than this are gathered, since each costs some 700 bytes of headers."""

PIECE_BYTES = 1 << 26
"""Batches larger than this are cut: a reader holds one of them at a time."""

BATCH_BYTES = 1 << 30
"""A reader refuses a record batch that declares more than this."""

MAGIC = b"ARROW1"
_BROKEN = (pa.ArrowException, OSError, ValueError)


class TableFile:
    """Writes one table to `path`; errors of the disk are CutraceErrors that begin with `label`."""

    def __init__(self, path: Path, schema: pa.Schema, label: str) -> None:
        self.rows = 0
        self._label = label
        self._schema = schema
        self._held: list[pa.Buffer] = []
        with self._writing():
            path.parent.mkdir(exist_ok=True)
            self._file = pa.OSFile(str(path), "wb")
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_file(self._file, schema, options=options)

    def append(self, batch: pa.RecordBatch) -> int:
        """Append rows and return the number of the first; the caller may reuse its memory."""
        first = self.rows
        self.rows += batch.num_rows
        if batch.nbytes < HELD_BYTES:
            self._hold(batch)
        else:
            self._flush()
            self._write(batch)
        return first

    def _hold(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._held.append(batch.serialize())
        if sum(buffer.size for buffer in self._held) >= HELD_BYTES:
            self._flush()

    def _flush(self) -> None:
        held = [pa.ipc.read_record_batch(buffer, self._schema) for buffer in self._held]
        self._held.clear()
        for batch in pa.Table.from_batches(held, self._schema).combine_chunks().to_batches():
            self._write(batch)

    def _write(self, batch: pa.RecordBatch) -> None:
        for piece in _pieces(batch):
            if piece.nbytes > BATCH_BYTES:
                raise CutraceError(f"{self._label}: a row of {piece.nbytes} bytes; split it")
            with self._writing():
                self._writer.write_batch(piece)

    def close(self) -> None:
        """Write what is held and the footer: from now on the file is whole."""
        self._flush()
        with self._writing():
            self._writer.close()
            self._file.close()

    def abandon(self) -> None:
        """Close the file as it is."""
        try:
            self._file.close()
        except _BROKEN:
            return

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            raise CutraceError(f"{self._label}: cannot write it: {reason(error)}") from error


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in halves of halves, until each has at most PIECE_BYTES or one row."""
    if batch.nbytes <= PIECE_BYTES or batch.num_rows == 1:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _pieces(batch.slice(0, middle))
    yield from _pieces(batch.slice(middle))


def check_whole(path: Path) -> None:
    """Raise CutraceError unless `path` is a file with Arrow's magic at both ends."""
    if not path.is_file():
        raise CutraceError(f"{path}: missing; the trace is not whole")
    try:
        with path.open("rb") as file:
            head = file.read(len(MAGIC))
            file.seek(-min(len(MAGIC), path.stat().st_size), 2)
            tail = file.read()
    except OSError as error:
        raise CutraceError(f"{path}: cannot read it: {reason(error)}") from error
    if head != MAGIC:
        raise CutraceError(f"{path}: not an Arrow IPC file, or an empty one")
    if tail != MAGIC:
        raise CutraceError(f"{path}: truncated: its end is missing; record the trace again")


def count_rows(path: Path, schema: pa.Schema) -> int:
    """Return the number of rows without unpacking any."""
    return sum(declared_size(message)[0] for message in _messages(path, schema))


def read_batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a file one by one, each checked.

    Raises CutraceError if the file is not whole, has another schema, or lies about its sizes.
    """
    for message in _messages(path, schema):
        with _reading(path):
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate(full=True)
            _check_nulls(batch)
        yield batch


def _messages(path: Path, schema: pa.Schema) -> Iterator[pa.Message]:
    """Yield the record batch messages, after the schema's; bodies are mapped, not read."""
    check_whole(path)
    with _reading(path), pa.memory_map(str(path)) as file:
        file.seek(8)
        reader = pa.ipc.MessageReader.open_stream(file)
        _check_schema(next(reader, None), schema)
        for message in reader:
            _, size = declared_size(message)
            if size > BATCH_BYTES:
                raise ValueError(f"a record batch declares {size} bytes; {BATCH_BYTES} at most")
            yield message


def _check_schema(message: pa.Message | None, expected: pa.Schema) -> None:
    if message is None:
        raise ValueError("it holds no schema")
    check_kind(message, SCHEMA)
    found = pa.ipc.read_schema(message)
    if found.names != expected.names:
        raise ValueError(f"its columns are {found.names}, expected {expected.names}")
    for ours, theirs in zip(expected, found, strict=True):
        if not ours.equals(theirs):
            raise ValueError(f"its column is `{theirs}`, expected `{ours}`")


def _check_nulls(batch: pa.RecordBatch) -> None:
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise ValueError(f"{column.null_count} nulls in column `{field.name}`")
        if any(inner.null_count for inner in _inside(column)):
            raise ValueError(f"nulls inside column `{field.name}`")


def _inside(column: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays inside lists and structs, at any depth."""
    if not column.type.num_fields:
        return
    flat = column.flatten()
    for inner in flat if isinstance(flat, list) else [flat]:
        yield inner
        yield from _inside(inner)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise CutraceError(f"{path}: damaged or not from a trace: {reason(error)}") from error
