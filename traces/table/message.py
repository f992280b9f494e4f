"""Where a message ends and how large a record batch will become, before anything is unpacked.

An encapsulated Arrow IPC message is a mark of four bytes, the length of its header (0: the end),
the header, and the body. The header is a flatbuffer. Of the two tables needed here (Arrow columnar
format, `Message.fbs`): Message {1 header_type, 2 header, 3 body length} and RecordBatch {0 length,
2 buffers, 3 compression}; a buffer is (int64 offset, int64 length) in the body, and a compressed
one begins with its unpacked length as int64, -1 meaning that it was left as it is.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

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

    Raises ValueError if there is no message, or one that does not fit.
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
    """Raise ValueError unless a message is of a kind; Arrow itself may crash on unknown ones."""
    with _sound():
        field = _field(header, _reference(header, 0), 1)
        found = header[field] if field else 0
    if found != kind:
        raise ValueError(f"a message of kind {found} where kind {kind} belongs")


def declared_size(message: memoryview) -> int:
    """Return the bytes that the buffers unpack to of a record batch, which its header says it is.

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
    return length - 8 if size == _LEFT_PLAIN else size


def _reference(header: bytes, position: int) -> int:
    """Follow the flatbuffer offset that is stored at `position`."""
    return position + int(struct.unpack_from("<I", header, position)[0])


def _field(header: bytes, table: int, number: int) -> int:
    """Return where field `number` of a flatbuffer table lies, 0 if it is absent."""
    vtable = table - struct.unpack_from("<i", header, table)[0]
    (size,) = struct.unpack_from("<H", header, vtable)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", header, vtable + 4 + 2 * number)
    return table + int(offset) if offset else 0
