"""Read one table of a trace in record batches.

A trace may come from an untrusted source: the schema, declared sizes and the buffers are validated
before any row is returned, batch by batch, so memory use does not depend on the length of the file.
Files are read, not mapped: pages of a mapped file count as the process's memory.
"""

import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .column import arrays_inside, list_lengths, list_values
from .schema import PATHS
from .table_file import BATCH_BYTES, BROKEN
from .trace_folder import Stamp, check_same, reason, stamp_of

MAGIC = b"ARROW1"
MOST_ROWS = 1 << 30
"""Maximum rows of a record batch: each has at least a byte per column, and a batch BATCH_BYTES."""
SURVEYS = 1 << 7
"""Number of tables whose batch positions are cached: those of a few launches."""
SMALL_BYTES, SMALL_ROWS = 1 << 16, 1 << 11
"""Maximum file size and rows of a table with one record batch that is cached whole."""
START = 8
"""Offset of the first message: after the magic and its padding."""


Check: TypeAlias = Callable[[pa.RecordBatch, int], None]
"""Validates a batch, given the number of its first row; raises ValueError."""


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


@dataclass(frozen=True, slots=True)
class Piece:
    """A record batch in a file: offset of its message, bytes, first row, number of rows."""

    place: int
    size: int
    first: int
    rows: int


class TableReader:
    """A table at `path`. CutraceError if the file is incomplete, has another schema, does not match
    `stamp`, or `check` rejects a record batch; `check` gets all columns and the number of the first
    row.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        check: Check | None = None,
        stamp: Stamp | None = None,
    ) -> None:
        self.path = path
        self._schema = schema
        self._check = check
        key = id(schema), *_stamp(path)
        self.file = _File(path, schema, stamp_of(path) if stamp is None else stamp, key)
        check_same(path, self.file.stamp)
        self._begins, self.pieces = _survey(self.file)
        self._whole: pa.RecordBatch | None = None

    @property
    def rows(self) -> int:
        """Return the number of rows of the table."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def _is_small(self) -> bool:
        few = len(self.pieces) == 1 and self.pieces[0].rows <= SMALL_ROWS
        return few and self.pieces[0].size <= SMALL_BYTES

    def batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the record batches one by one, each validated; only the named columns, if any."""
        if self._is_small:
            yield self.read(self.pieces[0], columns)
            return
        with self.file.opened() as file:
            for piece in self.pieces:
                yield self._read(file, piece, columns)

    def table(self) -> pa.Table:
        """Return all rows, each record batch validated."""
        return pa.Table.from_batches(self.batches(), self._schema)

    def read(self, piece: Piece, columns: Sequence[str] = ()) -> pa.RecordBatch:
        """Return one record batch. CutraceError if it declares wrong sizes, or is damaged.

        If columns are named, only these are unpacked. A small table is unpacked once and cached.
        """
        if self._whole is None:
            with self.file.opened() as file:
                batch = self._read(file, piece, () if self._is_small else columns)
            if not self._is_small:
                return batch
            self._whole = batch
        return self._whole.select(list(columns)) if columns else self._whole

    def _read(self, file: BufferedReader, piece: Piece, columns: Sequence[str]) -> pa.RecordBatch:
        """Read a message, prefixed by the schema's; unpack both as a stream of one record batch."""
        begin = len(self._begins)
        stream = pa.allocate_buffer(begin + piece.size)
        view = memoryview(stream).cast("B")
        view[:begin] = self._begins
        file.seek(piece.place)
        if file.readinto(view[begin:]) != piece.size:
            raise ValueError("its end is missing")
        if (size := declared_size(view[begin:])) > BATCH_BYTES:
            raise ValueError(f"a record batch declares {size} bytes; {BATCH_BYTES} at most")
        fields = [self._schema.get_field_index(name) for name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=fields or None, use_threads=False)
        with pa.ipc.open_stream(stream, options=options) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)
        _check_nulls(batch)
        if batch.num_rows != piece.rows:
            raise ValueError(f"a record batch of {batch.num_rows} rows declares {piece.rows}")
        if self._check and not columns:
            self._check(batch, piece.first)
        return batch


@dataclass(frozen=True, slots=True)
class _File:
    """A file that should have a schema; `key` is its identity, which changes when it is
    replaced."""

    path: Path = field(compare=False)
    schema: pa.Schema = field(compare=False)
    stamp: Stamp = field(compare=False)
    key: tuple[Hashable, ...]

    @contextmanager
    def opened(self) -> Iterator[BufferedReader]:
        """Open the file; CutraceError if it no longer matches the stamp, or is damaged."""
        try:
            with self.path.open("rb") as file:
                check_same(self.path, self.stamp)  # after opening: it may be replaced at any moment
                yield file
        except BROKEN as error:
            check_same(self.path, self.stamp)
            raise CutraceError(
                f"{self.path}: damaged or not from a trace: {reason(error)}"
            ) from error


def _stamp(path: Path) -> tuple[Hashable, ...]:
    """Return the identity of a file, equal for all its hard links, which changes when it is
    replaced.

    The path alone, if there is no file.
    """
    try:
        status = path.stat()
    except OSError:
        return (path,)
    place = path if status.st_nlink < 2 else status.st_dev
    return place, status.st_ino, status.st_size, status.st_mtime_ns or status.st_mtime


@lru_cache(SURVEYS)
def _survey(table: _File) -> tuple[bytes, tuple[Piece, ...]]:
    """Return the schema message of a table, and the positions of its record batches."""
    path, schema = table.path, table.schema
    check_whole(path)
    with table.opened() as file:
        length, first = file.seek(0, os.SEEK_END), 0
        messages = _find_messages(file, length)
        begins = _read_schema(file, messages, schema)
        pieces = []
        for place, size, header in messages:
            rows = declared_rows(header)
            if not 0 <= rows <= MOST_ROWS:
                raise ValueError(f"a record batch declares {rows} rows; {MOST_ROWS} at most")
            pieces.append(Piece(place, size, first, rows))
            first += rows
    return begins, tuple(pieces)


def _read_schema(
    file: BufferedReader, messages: Iterator[tuple[int, int, bytes]], schema: pa.Schema
) -> bytes:
    """Return the first message, after checking that its schema has the expected columns."""
    for place, size, _ in messages:
        file.seek(place)
        begins = file.read(size)
        _check_schema(pa.ipc.read_message(pa.py_buffer(begins)), schema)
        return begins
    return b""


_READ: OrderedDict[tuple[Hashable, ...], pa.Table] = OrderedDict()
"""LRU cache of `read_once`."""


def read_once(reader: TableReader) -> pa.Table:
    """Return a whole table; launches that share its file get the same object."""
    key = reader.file.key
    if key not in _READ:
        _READ[key] = reader.table()
        if len(_READ) > SURVEYS:
            _READ.popitem(last=False)
    return _READ[key]


def _find_messages(file: BufferedReader, length: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield offset, bytes and header of each message up to the end mark."""
    place = START
    while (head := read_head(file, place, length)) is not None:
        yield place, head.size, head.header
        place += head.size


def _check_schema(message: pa.Message | None, expected: pa.Schema) -> None:
    if message is None:
        raise ValueError("it holds no schema")
    check_kind(bytes(message.metadata), SCHEMA)
    schema = pa.ipc.read_schema(message)
    if schema.names != expected.names:
        raise ValueError(f"its columns are {schema.names}, expected {expected.names}")
    for ours, theirs in zip(expected, schema, strict=True):
        if not ours.equals(theirs):
            raise ValueError(f"its column is `{theirs}`, expected `{ours}`")


def _check_nulls(batch: pa.RecordBatch) -> None:
    for number, column in enumerate(batch.columns):
        if column.null_count and not (field := batch.schema.field(number)).nullable:
            raise ValueError(f"{column.null_count} nulls in column `{field.name}`")
        if any(inner.null_count for inner in arrays_inside(column)):
            raise ValueError(f"nulls inside column `{batch.schema.field(number).name}`")


SCHEMA = 1
RECORD_BATCH = 3
_LEFT_PLAIN = -1
_MARK = 0xFFFFFFFF


class Head(NamedTuple):
    """The header of a message, and the bytes of the whole message."""

    header: bytes
    size: int


def read_head(file: BinaryIO, place: int, length: int) -> Head | None:
    """Read the header of the message at `place` of a file of `length` bytes; None at the end.

    Raises ValueError if there is no message, or its size exceeds the file.
    """
    file.seek(place)
    with _sound():
        mark, size = struct.unpack("<Ii", file.read(8))
        if mark != _MARK:
            raise ValueError(f"no message at byte {place}")
        if size == 0:
            return None
        _check_fits(place + 8, size, length)
        header = file.read(size)
        field = _field(header, _reference(header, 0), 3)
        body: int = struct.unpack_from("<q", header, field)[0] if field else 0
    _check_fits(place + 8 + size, body, length)
    return Head(header, 8 + size + body)


def _check_fits(place: int, size: int, length: int) -> None:
    if size < 0 or place + size > length:
        raise ValueError(f"{size} bytes at {place} in a file of {length}")


def declared_rows(header: bytes) -> int:
    """Return the rows of a record batch. ValueError unless it is the header of one."""
    check_kind(header, RECORD_BATCH)
    with _sound():
        batch = _reference(header, _field(header, _reference(header, 0), 2))
        field = _field(header, batch, 0)
        return struct.unpack_from("<q", header, field)[0] if field else 0


def check_kind(header: bytes, kind: int) -> None:
    """Raise ValueError unless a message has the given kind; Arrow itself may crash on unknown
    kinds.
    """
    with _sound():
        field = _field(header, _reference(header, 0), 1)
        message_kind = header[field] if field else 0
    if message_kind != kind:
        raise ValueError(f"a message of kind {message_kind} where kind {kind} belongs")


def declared_size(message: memoryview) -> int:
    """Return the unpacked bytes of a record batch's buffers, as declared by its header.

    Raises ValueError if the message contradicts itself.
    """
    with _sound():
        (size,) = struct.unpack_from("<i", message, 4)
        header, body = bytes(message[8 : 8 + size]), message[8 + size :]
        batch = _reference(header, _field(header, _reference(header, 0), 2))
        buffers, packed = _buffers(header, batch), bool(_field(header, batch, 3))
        return sum(_unpacked(*buffer, body, packed) for buffer in buffers if buffer[1])


@contextmanager
def _sound() -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError) as error:
        raise ValueError(f"broken message header: {error}") from error


def _buffers(header: bytes, batch: int) -> list[tuple[int, int]]:
    field = _field(header, batch, 2)
    if not field:
        return []
    vector = _reference(header, field)
    (count,) = struct.unpack_from("<I", header, vector)
    return list(struct.iter_unpack("<qq", header[vector + 4 : vector + 4 + 16 * count]))


def _unpacked(offset: int, length: int, body: memoryview, packed: bool) -> int:
    if offset < 0 or length < 0 or offset + length > len(body):
        raise ValueError(f"a buffer at {offset} of {length} bytes lies outside its message")
    if not packed:
        return length
    size: int = struct.unpack_from("<q", body, offset)[0]
    if size < _LEFT_PLAIN:
        raise ValueError(f"a buffer declares {size} bytes")
    # A buffer starts with its unpacked size; -1 marks one that is stored uncompressed.
    return length - 8 if size == _LEFT_PLAIN else size


def _reference(header: bytes, position: int) -> int:
    """Follow the flatbuffer offset at `position`."""
    return position + int(struct.unpack_from("<I", header, position)[0])


def _field(header: bytes, table: int, number: int) -> int:
    """Return the position of field `number` of a flatbuffer table, 0 if it is absent."""
    vtable = table - struct.unpack_from("<i", header, table)[0]
    (size,) = struct.unpack_from("<H", header, vtable)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", header, vtable + 4 + 2 * number)
    return table + int(offset) if offset else 0


def check_instructions(batch: pa.RecordBatch, first: int) -> None:
    """Check that row i has pc i, and that basic blocks are numbered in order of pc, without gaps.

    `first` is the number of the batch's first row; raises ValueError.
    """
    pc = batch["pc"].to_numpy()
    _refuse(pc != np.arange(first, first + len(pc)), first, "pc is not the row's number")
    block = batch["block"].to_numpy().astype(np.int64)
    steps = np.diff(block, prepend=-1 if first == 0 else block[:1])
    text = "its basic block is not this one's or the next"
    _refuse((steps < 0) | (steps > 1), first, text)


def check_paths(batch: pa.RecordBatch, first: int, blocks: int) -> None:
    """Check that the lists of a path have one nonzero length, and refer to some of `blocks` basic
    blocks.

    `first` is the number of the batch's first row; raises ValueError.
    """
    lengths = list_lengths(batch["blocks"])
    _refuse(lengths == 0, first, "a path without basic blocks")
    for name in PATHS.names[1:]:
        differs = list_lengths(batch[name]) != lengths
        _refuse(differs, first, f"`{name}` and `blocks` have different lengths")
    unknown = np.flatnonzero(list_values(batch["blocks"]).to_numpy() >= blocks)
    if len(unknown):
        row = int(np.searchsorted(np.cumsum(lengths), unknown[0], "right"))
        entry = unknown[0] - int(lengths[:row].sum())
        raise ValueError(f"row {first + row}: entry {entry}: there are {blocks} basic blocks")


def _refuse(bad: "np.ndarray[tuple[int], np.dtype[np.bool_]]", first: int, text: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ValueError(f"row {first + int(rows[0])}: {text}")
