"""Write one table of a trace as an Arrow IPC file, in record batches of bounded size.

`TableFile` merges small batches and splits large ones; `BackgroundWriter` runs the writes in a
thread.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from hashlib import sha256
from pathlib import Path
from struct import pack

import pyarrow as pa

from ..base.claim import Owner
from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .column import Rows, concatenate, to_batch
from .identity_cache import cached_by_identity
from .trace_folder import SizeLimit, reason, write_file

HELD_BYTES = 1 << 20
"""Smaller batches are merged, since each costs some 700 bytes of headers, and time."""

SEQUENCE = 2
"""Factor on that threshold for a table that is read sequentially."""

PIECE_BYTES = 1 << 26
"""Larger batches are split: a reader holds one of them at a time."""

BATCH_BYTES = 1 << 30
"""A reader refuses a record batch that declares more than this."""

BROKEN = (pa.ArrowException, OSError, ValueError)
"""Exceptions of Arrow and the operating system for an unreadable or unwritable file."""


class Packers:
    """Threads that compress record batches; with one, the caller does it."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._owner = Owner()

    def submit(self, make: Callable[[], list[pa.Buffer]]) -> Callable[[], list[pa.Buffer]]:
        """Call `make`, now or on a thread; return a function that waits for its result."""
        if self.threads == 1:
            made = make()
            return lambda: made
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, "cutrace-pack")
        return self._pool.submit(make).result

    def stop(self) -> None:
        """End the threads, once they have done what they began; a forked child has none."""
        if self._pool is not None and self._owner.is_here:
            self._pool.shutdown(cancel_futures=True)


@dataclass(slots=True)
class _Stream:
    """A file of several record batches, begun: `blocks` are where its messages lie and how long
    their metadata and bodies are; `waiting` are messages being made, and the blocks reached by
    their rows.
    """

    file: pa.OSFile
    size: int = 0
    blocks: list[tuple[int, int, int]] = field(default_factory=list)
    waiting: deque[tuple[Callable[[], list[pa.Buffer]], int]] = field(default_factory=deque)


class TableFile:
    """Writes table `name` into `folder`; disk errors become CutraceErrors prefixed by `label`.

    Its bytes are subtracted from `limit`. A table of less than HELD_BYTES is written in one go by
    `close`, into an existing folder; any other is written as rows arrive, and compressed by
    `packers`.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        schema: pa.Schema,
        label: str,
        limit: SizeLimit,
        packers: Packers,
        codec: str | pa.Codec = "lz4",
        is_sequence: bool = False,
    ) -> None:
        self._folder = folder
        self._name = name
        self._codec = codec
        self._gathered = HELD_BYTES * SEQUENCE if is_sequence else HELD_BYTES
        self._limit = limit
        self._packers = packers
        self._label = label
        self._schema = schema
        self._held: list[Callable[[], Rows]] = []
        self._held_bytes = 0
        self._reached = 0
        self._whole: pa.Buffer | None = None
        self._stream: _Stream | None = None

    @property
    def _path(self) -> str:
        return f"{self._folder}{os.sep}{self._name}.arrow"

    def append(self, make: Callable[[], Rows], size: int, reached: int = 0) -> None:
        """Append rows that `make` returns, `size` bytes, of blocks up to `reached`; drop them once
        the trace is full. The caller must not change their memory any more.
        """
        if self._limit.full_at is not None:
            return
        if size >= min(self._gathered, PIECE_BYTES):
            self._flush()
        self._held.append(make)
        self._held_bytes += size
        self._reached = max(self._reached, reached)
        if self._held_bytes >= min(self._gathered, PIECE_BYTES):
            self._flush()

    def _flush(self) -> None:
        """Have the buffered rows compressed, and write what is ready."""
        if not self._held:
            return
        if self._stream is None:
            self._stream = self._begin()
        parts, self._held, self._held_bytes = self._held, [], 0
        make = partial(_pack, parts, self._schema, self._codec, self._label)
        self._stream.waiting.append((self._packers.submit(make), self._reached))
        self._drain(self._stream, self._packers.threads - 1)

    def _begin(self) -> _Stream:
        with self._naming_itself():
            self._folder.mkdir(exist_ok=True)
            stream = _Stream(pa.OSFile(self._path, "wb"))
        self._write(stream, [pa.py_buffer(MAGIC), _schema_message(self._schema, self._codec)])
        return stream

    def _drain(self, stream: _Stream, most: int) -> None:
        """Write messages in order until at most so many are waiting."""
        while len(stream.waiting) > most:
            wait, reached = stream.waiting.popleft()
            with self._naming_itself():
                messages = wait()
            self._limit.reach(reached)
            for message in messages:
                head = 8 + int.from_bytes(message[4:8].to_pybytes(), "little")
                stream.blocks.append((stream.size, head, len(message) - head))
                self._write(stream, [message])

    def _write(self, stream: _Stream, data: list[pa.Buffer]) -> None:
        """Write bytes, and subtract them from the limit."""
        for each in data:
            with self._naming_itself():
                stream.file.write(each)
            stream.size += len(each)
        self._limit.take(sum(map(len, data)))

    def put(self, data: pa.Buffer) -> None:
        """Set the contents of the whole file, as `table_bytes` makes it."""
        self._whole = data

    def digest(self) -> bytes | None:
        """Return a hash of the rows; None if some are on disk already.

        Processors have instructions for SHA-256: it takes half as long as BLAKE2.
        """
        if self._stream is not None:
            return None
        whole = sha256(self._whole or b"")
        if self._held:
            rows = concatenate([make() for make in self._held])
            self._held = [lambda: rows]
            whole.update(rows.count.to_bytes(8, "little"))
            for values in rows.columns if rows.lengths is None else (rows.lengths, *rows.columns):
                whole.update(values.data)
        return whole.digest()

    def close(self) -> None:
        """Write the buffered rows and the footer, which completes the file."""
        self._limit.reach(self._reached)
        if self._stream is None:
            self._write_whole(self._small() if self._whole is None else self._whole)
            return
        self._flush()
        self._drain(self._stream, 0)
        self._write(self._stream, [_footer(self._schema, self._codec, self._stream.blocks)])
        with self._naming_itself():
            self._stream.file.close()

    def _write_whole(self, data: pa.Buffer) -> None:
        with self._naming_itself():
            write_file(self._path, data)
        self._limit.take(len(data))

    def _small(self) -> pa.Buffer:
        """Return the file contents of the buffered rows."""
        if not self._held:
            return _bytes_of_none(self._schema, self._codec)
        batch = to_batch(self._schema, concatenate([make() for make in self._held]))
        return table_bytes(self._schema, [batch], self._codec)

    def abandon(self) -> None:
        """Close the file without completing it."""
        try:
            if self._stream is not None:
                self._stream.file.close()
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
    with pa.ipc.new_file(stream, schema, options=_options(codec)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return stream.getvalue()


@cached_by_identity
def _bytes_of_none(schema: pa.Schema, codec: str | pa.Codec) -> pa.Buffer:
    """Return the file of a table without rows."""
    return table_bytes(schema, (), codec)


def _options(codec: str | pa.Codec) -> pa.ipc.IpcWriteOptions:
    """Return options that compress columns sequentially: threads cost a fifth more processor time
    than they save, as measured.
    """
    return pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)


MAGIC = b"ARROW1\0\0"
END = b"\xff\xff\xff\xff\0\0\0\0"
"""What an IPC file begins with, and what ends its messages (Arrow Columnar Format, "IPC File
Format")."""


def _pack(
    parts: Sequence[Callable[[], Rows]], schema: pa.Schema, codec: str | pa.Codec, label: str
) -> list[pa.Buffer]:
    """Return rows as messages of an IPC file; batches of an IPC stream are the same bytes."""
    batch = to_batch(schema, concatenate([make() for make in parts]))
    return [_message(schema, piece, codec) for piece in pieces(batch, label)]


def _message(schema: pa.Schema, batch: pa.RecordBatch, codec: str | pa.Codec) -> pa.Buffer:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, schema, options=_options(codec)) as writer:
        writer.write_batch(batch)
    data, head = stream.getvalue(), len(_schema_message(schema, codec))
    return data.slice(head, len(data) - head - len(END))


@cached_by_identity
def _schema_message(schema: pa.Schema, codec: str | pa.Codec) -> pa.Buffer:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, schema, options=_options(codec)):
        pass
    data = stream.getvalue()
    return data.slice(0, len(data) - len(END))


def _footer(
    schema: pa.Schema, codec: str | pa.Codec, blocks: Sequence[tuple[int, int, int]]
) -> pa.Buffer:
    """Return the end of a file with these messages.

    It is that of a file with as many empty batches, with the places of its own messages.
    """
    none = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    empty = table_bytes(schema, none[:1] * len(blocks), codec).to_pybytes()
    message = len(_message(schema, none[0], codec))
    first = len(MAGIC) + len(_schema_message(schema, codec))
    body = message - 8 - int.from_bytes(empty[first + 4 : first + 8], "little")
    its = [(first + n * message, message - body, body) for n in range(len(blocks))]
    end = empty[first + len(blocks) * message :]
    return pa.py_buffer(end.replace(_packed(its), _packed(blocks), 1))


def _packed(blocks: Sequence[tuple[int, int, int]]) -> bytes:
    """Return blocks as a footer has them."""
    return b"".join(pack("<qiiq", place, head, 0, body) for place, head, body in blocks)


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
