"""One table of a trace as an Arrow IPC file, written in record batches of bounded size."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from ...errors import CutraceError
from ..folder.folder import reason, write_file
from ..folder.size_limit import SizeLimit
from .column import bytes_of
from .remembered import remembered

HELD_BYTES = 1 << 20
"""Batches smaller than this are gathered, since each costs some 700 bytes of headers, and time."""

SEQUENCE = 4
"""As many times more bytes are gathered of a table that is read from its beginning to its end."""

PIECE_BYTES = 1 << 26
"""Batches larger than this are cut: a reader holds one of them at a time."""

BATCH_BYTES = 1 << 30
"""A reader refuses a record batch that declares more than this."""

BROKEN = (pa.ArrowException, OSError, ValueError)
"""What Arrow and the operating system raise for a file that they cannot read or write."""


class TableFile:
    """Writes table `name` into `folder`; errors of the disk are CutraceErrors with `label` first.

    Its bytes are taken from `limit`. A table of less than HELD_BYTES is written at once when it is
    closed, into a folder that is there; any other as it comes.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        schema: pa.Schema,
        label: str,
        limit: SizeLimit,
        codec: str | pa.Codec = "lz4",
        is_sequence: bool = False,
    ) -> None:
        self._folder = folder
        self._name = name
        self._codec = codec
        self._gathered = HELD_BYTES * SEQUENCE if is_sequence else HELD_BYTES
        self._limit = limit
        self._size = 0
        self._label = label
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._whole: pa.Buffer | None = None

    @property
    def _path(self) -> str:
        return f"{self._folder}{os.sep}{self._name}.arrow"

    @cached_property
    def _stream(self) -> pa.OSFile:
        self._folder.mkdir(exist_ok=True)
        return pa.OSFile(self._path, "wb")

    @cached_property
    def _writer(self) -> pa.ipc.RecordBatchFileWriter:
        return _open_writer(self._stream, self._schema, self._codec)

    def append(self, batch: pa.RecordBatch) -> None:
        """Append rows, whose memory nobody changes from now on."""
        size = bytes_of(batch, self._schema)
        if size < min(self._gathered, PIECE_BYTES):
            self._held.append(batch)
            self._held_bytes += size
            if self._held_bytes >= self._gathered:
                self._flush()
        else:
            self._flush()
            self._write(batch)

    def _flush(self) -> None:
        for batch in self._take_held():
            self._write(batch)

    def _take_held(self) -> list[pa.RecordBatch]:
        """Return the batches that are held as one, and hold none."""
        held, self._held, self._held_bytes = self._held, [], 0
        if len(held) > 1:
            held = pa.Table.from_batches(held, self._schema).combine_chunks().to_batches()
        return held

    def _write(self, batch: pa.RecordBatch) -> None:
        for piece in pieces(batch, self._label):
            with self._naming_itself():
                self._writer.write_batch(piece)
            self._grow()

    def put(self, data: pa.Buffer) -> None:
        """Hold the whole file, as `table_bytes` makes it."""
        self._whole = data

    def held_bytes(self) -> bytes | pa.Buffer | None:
        """Return what says which rows it holds; None if some are in the file already."""
        if self._whole is not None:
            return self._whole
        if self._is_begun:
            return None
        self._held = self._take_held()
        return self._held[0].serialize() if self._held else b""

    def close(self) -> None:
        """Write the held rows and the footer: from now on the file is whole."""
        if not self._is_begun:
            self._write_whole(self._small() if self._whole is None else self._whole)
            return
        self._flush()
        with self._naming_itself():
            self._writer.close()
        self._grow()
        with self._naming_itself():
            self._stream.close()

    def _write_whole(self, data: pa.Buffer) -> None:
        with self._naming_itself():
            write_file(self._path, data)
        self._limit.take(len(data))

    def _small(self) -> pa.Buffer:
        """Return the file of the held rows."""
        held = self._take_held()
        if not held:
            return _bytes_of_none(self._schema, self._codec)
        return table_bytes(self._schema, held, self._codec)

    @property
    def _is_begun(self) -> bool:
        return "_stream" in self.__dict__

    def _grow(self) -> None:
        """Take what the file has grown by from the limit that is left."""
        with self._naming_itself():
            size = self._stream.tell()
        grown, self._size = size - self._size, size
        self._limit.take(grown)

    def abandon(self) -> None:
        """Close the file as it is."""
        try:
            if self._is_begun:
                self._stream.close()
        except BROKEN:
            return

    @contextmanager
    def _naming_itself(self) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            raise CutraceError(f"{self._label}: cannot write it: {reason(error)}") from error


def table_bytes(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], codec: str | pa.Codec = "lz4"
) -> pa.Buffer:
    """Return the file of a table: one of a few rows takes a system call, not one for each part."""
    stream = pa.BufferOutputStream()
    with _open_writer(stream, schema, codec) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return stream.getvalue()


@remembered
def _bytes_of_none(schema: pa.Schema, codec: str | pa.Codec) -> pa.Buffer:
    """Return the file of a table without rows."""
    return table_bytes(schema, (), codec)


def _open_writer(
    stream: pa.NativeFile, schema: pa.Schema, codec: str | pa.Codec
) -> pa.ipc.RecordBatchFileWriter:
    """Columns are compressed one after another: handing them to threads costs a fifth more
    processor time than it saves, as measured."""
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
    return pa.ipc.new_file(stream, schema, options=options)


def pieces(batch: pa.RecordBatch, label: str) -> Iterator[pa.RecordBatch]:
    """Yield a batch in halves of halves, until each has at most PIECE_BYTES or one row."""
    if batch.nbytes > PIECE_BYTES and batch.num_rows > 1:
        middle = batch.num_rows // 2
        yield from pieces(batch.slice(0, middle), label)
        yield from pieces(batch.slice(middle), label)
    elif batch.nbytes > BATCH_BYTES:
        raise CutraceError(f"{label}: a row of {batch.nbytes} bytes; split it")
    else:
        yield batch
