"""One table of a trace as an Arrow IPC file, written in record batches of bounded size."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from ..errors import CutraceError
from .folder import reason
from .room import Room

HELD_BYTES = 1 << 20
"""Batches smaller than this are gathered, since each costs some 700 bytes of headers."""

PIECE_BYTES = 1 << 26
"""Batches larger than this are cut: a reader holds one of them at a time."""

BATCH_BYTES = 1 << 30
"""A reader refuses a record batch that declares more than this."""

BROKEN = (pa.ArrowException, OSError, ValueError)
"""What Arrow and the operating system raise for a file that they cannot read or write."""


class TableFile:
    """Writes one table to `path`; errors of the disk are CutraceErrors that begin with `label`.

    Its bytes are taken from `room`. A batch's columns are compressed one after another: handing
    them to threads costs a fifth more processor time than it saves, as measured. The file appears
    with its first bytes, at the latest when it is closed.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, label: str, room: Room, codec: str | pa.Codec = "lz4"
    ) -> None:
        self._path = path
        self._codec = codec
        self._room = room
        self._size = 0
        self._label = label
        self._schema = schema
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0

    @cached_property
    def _stream(self) -> pa.OSFile:
        self._path.parent.mkdir(exist_ok=True)
        return pa.OSFile(str(self._path), "wb")

    @cached_property
    def _writer(self) -> pa.ipc.RecordBatchFileWriter:
        options = pa.ipc.IpcWriteOptions(compression=self._codec, use_threads=False)
        return pa.ipc.new_file(self._stream, self._schema, options=options)

    def append(self, batch: pa.RecordBatch) -> None:
        """Append rows, whose memory nobody changes from now on."""
        size = batch.nbytes
        if size < HELD_BYTES:
            self._held.append(batch)
            self._held_bytes += size
            if self._held_bytes >= HELD_BYTES:
                self._flush()
        else:
            self._flush()
            self._write(batch)

    def _flush(self) -> None:
        if not self._held:
            return
        held = pa.Table.from_batches(self._held, self._schema)
        self._held.clear()
        self._held_bytes = 0
        for batch in held.combine_chunks().to_batches():
            self._write(batch)

    def _write(self, batch: pa.RecordBatch) -> None:
        for piece in _pieces(batch):
            if piece.nbytes > BATCH_BYTES:
                raise CutraceError(f"{self._label}: a row of {piece.nbytes} bytes; split it")
            with self._naming_itself():
                self._writer.write_batch(piece)
            self._grow()

    def close(self) -> None:
        """Write what is held and the footer: from now on the file is whole."""
        self._flush()
        with self._naming_itself():
            self._writer.close()
        self._grow()
        with self._naming_itself():
            self._stream.close()

    def _grow(self) -> None:
        """Take what the file has grown by from the room that is left."""
        with self._naming_itself():
            size = self._stream.tell()
        grown, self._size = size - self._size, size
        self._room.take(grown)

    def abandon(self) -> None:
        """Close the file as it is."""
        try:
            if "_stream" in self.__dict__:
                self._stream.close()
        except BROKEN:
            return

    @contextmanager
    def _naming_itself(self) -> Iterator[None]:
        try:
            yield
        except BROKEN as error:
            raise CutraceError(f"{self._label}: cannot write it: {reason(error)}") from error


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch in halves of halves, until each has at most PIECE_BYTES or one row."""
    if batch.nbytes <= PIECE_BYTES or batch.num_rows == 1:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _pieces(batch.slice(0, middle))
    yield from _pieces(batch.slice(middle))
