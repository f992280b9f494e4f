"""Text files of other tools, compressed or not, as chunks of whole lines in bounded memory.

A decompression bomb does not fill the memory: lines have a maximum length, and thousands of empty
lines are refused.
"""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError

CHUNK_BYTES = 1 << 23
LINE_BYTES = 1 << 20
"""Maximum bytes of a line: no record of these formats is longer."""
LZMA_BYTES = 1 << 28
"""Memory limit of xz: its dictionaries have 64 MiB at most with default options."""
START_BYTES, START_PIECE = 1 << 14, 1 << 6
_EMPTY = b"\n" * 4096
_BROKEN = (OSError, lzma.LZMAError, zlib.error, pa.ArrowException)

_MAGIC = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some whole lines of a file; `first` is the number of the first, counted from 1."""

    path: Path
    first: int
    lines: list[str]

    def place(self, index: int) -> str:
        """Return `FILE:LINE` of a line."""
        return f"{self.path}:{self.first + index}"


def chunks(path: Path) -> Iterator[Chunk]:
    """Yield the lines of a file, which may be compressed by gzip, xz or zstd."""
    number, tail = 1, b""
    with _opened(path) as file:
        while piece := _read(path, file, number):
            whole, newline, tail = (tail + piece).rpartition(b"\n")
            if _EMPTY in whole or (len(whole) > LINE_BYTES and whole.isspace()):
                at = number + whole[: max(whole.find(_EMPTY), 0)].count(10)
                raise CutraceError(f"{path}:{at}: thousands of empty lines; this is no trace")
            if len(tail) > LINE_BYTES:
                raise CutraceError(
                    f"{path}:{number + whole.count(10) + len(newline)}: a line of more than "
                    f"{LINE_BYTES} bytes; no record is that long"
                )
            if newline:
                chunk = Chunk(path, number, _decoded(path, number, whole).split("\n"))
                number += len(chunk.lines)
                yield chunk
    if tail:
        yield Chunk(path, number, [_decoded(path, number, tail)])


def start_of(path: Path) -> str:
    """Return the first characters of a file's text; of a truncated one, those available."""
    data = b""
    with suppress(CutraceError, EOFError, *_BROKEN), _opened(path) as file:
        while len(data) < START_BYTES and (piece := file.read(START_PIECE)):
            data += piece
    return data.decode("utf-8", "replace")


def check_packing(path: Path) -> None:
    """Raise `CutraceError` if not even the beginning of a compressed file can be unpacked."""
    with _opened(path) as file:
        _read(path, file, 1)


def _opened(path: Path) -> IO[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(6)
    except OSError as error:
        raise CutraceError(f"{path}: cannot read it: {error.strerror or error}") from error
    kind = next((name for start, name in _MAGIC.items() if magic.startswith(start)), "")
    if kind == "gzip":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if kind == "xz":
        return cast(IO[bytes], io.BufferedReader(_Xz(path)))
    if kind == "zstd":
        return cast(IO[bytes], pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    return path.open("rb")


class _Xz(io.RawIOBase):
    """An xz file decompressed in bounded memory."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._unpacker = lzma.LZMADecompressor(memlimit=LZMA_BYTES)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Decompress some bytes; 0 at the end."""
        while True:
            if self._unpacker.eof:
                more = self._unpacker.unused_data.lstrip(b"\0") or self._file.read(1 << 16)
                if not more.strip(b"\0"):
                    return 0
                self._unpacker = lzma.LZMADecompressor(memlimit=LZMA_BYTES)
            else:
                more = self._file.read(1 << 16) if self._unpacker.needs_input else b""
                if not more and self._unpacker.needs_input:
                    raise EOFError("it ends in the middle")
            data = self._unpacker.decompress(more, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)

    def close(self) -> None:
        """Close the underlying file."""
        self._file.close()
        super().close()


def _read(path: Path, file: IO[bytes], number: int) -> bytes:
    try:
        return file.read(CHUNK_BYTES)
    except EOFError as error:
        raise CutraceError(
            f"{path}: cut off: the packed file ends behind line {number}; copy it again"
        ) from error
    except _BROKEN as error:
        problem = str(error).splitlines()[0]
        raise CutraceError(f"{path}: cannot unpack it behind line {number}: {problem}") from error


def _decoded(path: Path, number: int, text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = number + text[: error.start].count(10)
        raise CutraceError(f"{path}:{line}: not text: byte {text[error.start]:#04x}") from error
