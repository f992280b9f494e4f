"""One table of a trace as an Arrow IPC file, written in record batches of bounded size."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from ..base.claim import Owner
from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .column import bytes_of
from .identity_cache import cached_by_identity
from .trace_folder import SizeLimit, reason, write_file

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
        batches, self._held, self._held_bytes = self._held, [], 0
        if len(batches) > 1:
            batches = pa.Table.from_batches(batches, self._schema).combine_chunks().to_batches()
        return batches

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
        batches = self._take_held()
        if not batches:
            return _bytes_of_none(self._schema, self._codec)
        return table_bytes(self._schema, batches, self._codec)

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


@cached_by_identity
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


WAITING_BYTES = 1 << 23
"""Bytes that wait to be written at most."""

WORTH_BYTES = 1 << 20
"""Bytes that calls hold when the thread is given them: for fewer, to wake it takes longer than it
saves."""

CALLS = 1 << 12
"""Calls after which it is given them anyhow."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that holds `size` bytes; `is_due` whatever went wrong before."""

    make: Callable[[], object]
    size: int = 0
    is_due: bool = False


class BackgroundWriter:
    """Makes calls one after the other, in a thread of its own; all at the end, if they hold little.

    Once a call has raised an error, later ones are not made, but those that have to be made
    `always`; whoever asks for one, or waits, gets the error.
    """

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._gathered: list[_Call] = []
        self._gathered_bytes = 0
        self._waiting: deque[tuple[Future[None], int]] = deque()
        self._waiting_bytes = 0
        self._error: BaseException | None = None
        self._is_stopped = False
        self._owner = Owner()

    def submit(self, call: Callable[[], object], size: int = 0) -> None:
        """Have a call made that holds `size` bytes; wait where too many wait already."""
        self._check()
        self._gather(_Call(call, size))
        if self._gathered_bytes < WORTH_BYTES and len(self._gathered) < CALLS:
            return
        self._hand_over()
        while self._waiting and (self._waiting_bytes > WAITING_BYTES or self._waiting[0][0].done()):
            self._wait_for_first()
        self._check()

    def always(self, call: Callable[[], object]) -> None:
        """Have a call made that raises nothing, whatever went wrong before; at once if nothing was
        begun, or it is stopped."""
        if not self._owner.is_here:
            return
        if self._is_stopped or self._thread is None:
            call()
        else:
            self._gather(_Call(call, is_due=True))

    def finish(self) -> None:
        """Wait until all calls are made."""
        self._check()
        while self._waiting:
            self._wait_for_first()
        self._make(self._take())
        self._check()

    def stop(self) -> None:
        """Drop what waits, except what has to be done always; take no more. Nothing in a forked
        child, which has no such thread, and whose files are the process's that made this."""
        if not self._owner.is_here:
            return
        self._is_stopped = True
        if self._error is None:
            self._error = CutraceError("the trace is closed")
        if self._thread is not None:
            self._thread.shutdown()
        self._make(self._take())

    def _gather(self, call: _Call) -> None:
        self._gathered.append(call)
        self._gathered_bytes += call.size

    def _take(self) -> list[_Call]:
        calls, self._gathered, self._gathered_bytes = self._gathered, [], 0
        return calls

    def _hand_over(self) -> None:
        """Give the thread what was asked for until now."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "cutrace-background")
        size = self._gathered_bytes
        self._waiting.append((self._thread.submit(self._make, self._take()), size))
        self._waiting_bytes += size

    def _wait_for_first(self) -> None:
        future, size = self._waiting.popleft()
        future.result()
        self._waiting_bytes -= size

    def _make(self, calls: list[_Call]) -> None:
        for call in calls:
            if self._error is not None and not call.is_due:
                continue
            try:
                call.make()
            except BaseException as error:
                self._error = error

    def _check(self) -> None:
        self._owner.require("this trace")
        if self._error is not None:
            raise self._error
