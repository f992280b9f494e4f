"""Write one table of a trace as an Arrow IPC file, in record batches of bounded size.

`TableFile` merges small batches and splits large ones; `BackgroundWriter` runs the writes in a
thread.
"""

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
"""Smaller batches are merged, since each costs some 700 bytes of headers, and time."""

SEQUENCE = 4
"""Factor on that threshold for a table that is read sequentially."""

PIECE_BYTES = 1 << 26
"""Larger batches are split: a reader holds one of them at a time."""

BATCH_BYTES = 1 << 30
"""A reader refuses a record batch that declares more than this."""

BROKEN = (pa.ArrowException, OSError, ValueError)
"""Exceptions of Arrow and the operating system for an unreadable or unwritable file."""


class TableFile:
    """Writes table `name` into `folder`; disk errors become CutraceErrors prefixed by `label`.

    Its bytes are subtracted from `limit`. A table of less than HELD_BYTES is written in one go by
    `close`, into an existing folder; any other is written as rows arrive.
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
        """Append rows; the caller must not change their memory any more."""
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
        """Return the buffered batches as one, and clear the buffer."""
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
        """Set the contents of the whole file, as `table_bytes` makes it."""
        self._whole = data

    def held_bytes(self) -> bytes | pa.Buffer | None:
        """Return bytes that identify the rows; None if some are on disk already."""
        if self._whole is not None:
            return self._whole
        if self._is_begun:
            return None
        self._held = self._take_held()
        return self._held[0].serialize() if self._held else b""

    def close(self) -> None:
        """Write the buffered rows and the footer, which completes the file."""
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
        """Return the file contents of the buffered rows."""
        batches = self._take_held()
        if not batches:
            return _bytes_of_none(self._schema, self._codec)
        return table_bytes(self._schema, batches, self._codec)

    @property
    def _is_begun(self) -> bool:
        return "_stream" in self.__dict__

    def _grow(self) -> None:
        """Subtract the growth of the file from the limit."""
        with self._naming_itself():
            size = self._stream.tell()
        grown, self._size = size - self._size, size
        self._limit.take(grown)

    def abandon(self) -> None:
        """Close the file without completing it."""
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
    """Return the file of a table: a small one is written by one system call instead of many."""
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
    """Open a writer that compresses columns sequentially: threads cost a fifth more processor time
    than they save, as measured.
    """
    options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
    return pa.ipc.new_file(stream, schema, options=options)


def pieces(batch: pa.RecordBatch, label: str) -> Iterator[pa.RecordBatch]:
    """Yield a batch, halved recursively until each piece has at most PIECE_BYTES or one row."""
    if batch.nbytes > PIECE_BYTES and batch.num_rows > 1:
        middle = batch.num_rows // 2
        yield from pieces(batch.slice(0, middle), label)
        yield from pieces(batch.slice(middle), label)
    elif batch.nbytes > BATCH_BYTES:
        raise CutraceError(f"{label}: a row of {batch.nbytes} bytes; split it")
    else:
        yield batch


WAITING_BYTES = 1 << 23
"""Maximum bytes in the queue."""

WORTH_BYTES = 1 << 20
"""Bytes in the queue that justify waking the thread; for fewer, waking takes longer than it
saves."""

CALLS = 1 << 12
"""Number of queued calls that wakes the thread in any case."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A queued call that holds `size` bytes; `is_due` calls run even after an error."""

    make: Callable[[], object]
    size: int = 0
    is_due: bool = False


class BackgroundWriter:
    """Runs calls in order, in a separate thread; all at the end, if they hold few bytes.

    After a call has raised an error, later ones are dropped, except those added by `always`; the
    next caller of `submit` or `finish` gets the error.
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
        """Queue a call that holds `size` bytes; block while the queue is full."""
        self._check()
        self._gather(_Call(call, size))
        # Calls are handed over in groups: waking the thread for each would cost more than it saves.
        if self._gathered_bytes < WORTH_BYTES and len(self._gathered) < CALLS:
            return
        self._hand_over()
        while self._waiting and (self._waiting_bytes > WAITING_BYTES or self._waiting[0][0].done()):
            self._wait_for_first()
        self._check()

    def always(self, call: Callable[[], object]) -> None:
        """Queue a call that raises nothing and runs even after an error; run it at once if the
        thread was never started, or is stopped.
        """
        if not self._owner.is_here:
            return
        if self._is_stopped or self._thread is None:
            call()
        else:
            self._gather(_Call(call, is_due=True))

    def finish(self) -> None:
        """Wait until all calls have run."""
        self._check()
        while self._waiting:
            self._wait_for_first()
        self._make(self._take())
        self._check()

    def stop(self) -> None:
        """Drop the queue, except calls added by `always`; accept no more. No effect in a forked
        child, which does not have the thread, and whose files belong to the parent process.
        """
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
        """Pass the queued calls to the thread."""
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
