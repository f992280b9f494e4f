"""NVBit's tool mem_trace: its output, a line per launch and a line per access of a warp.

    MEMTRACE: CTX 0x... - LAUNCH - Kernel pc 0x... - Kernel name NAME - grid launch id N
      - grid size x,y,z - block size x,y,z - nregs N - shmem N - cuda stream id N      (one line)
    MEMTRACE: CTX 0x... - grid_launch_id N - CTA x,y,z - warp N - LDG.E.64 - 32 addresses

Other lines are output of the program, and skipped. A lane with address 0 is inactive. The tool
prints no program counter: all instructions with the same mnemonic count as one.

Source: tools/mem_trace of NVBit's releases; its output in github.com/NVlabs/NVBit/issues/66.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from ...base.errors import CutraceError
from .reader_interface import Code, Event, Fields, Head, Ints, Rows, Words, number_rows
from .text import Chunk, chunks, start_of

NAME = "mem_trace"
START = "MEMTRACE:"
LACKS = (
    "what the warps ran besides memory instructions",
    "which instruction of the code a row is of",
    "lanes that accessed address 0",
    "names of arrays and arguments",
)

_LAUNCH = re.compile(
    r"MEMTRACE: CTX \S+ - LAUNCH - Kernel pc \S+ - Kernel name (?P<name>.+?)"
    r" - grid launch id (?P<id>\d+) - grid size (?P<grid>\d+,\d+,\d+)"
    r" - block size (?P<block>\d+,\d+,\d+) - nregs (?P<nregs>\d+) - shmem (?P<shmem>\d+)\b.*"
)
_ROW = "- grid_launch_id "
_ID, _CTA, _WARP, _OPCODE, _ADDRESSES = 5, 8, 11, 13, 15
"""Indices of words in a line."""
WORDS = _ADDRESSES + 32
_WORD_BYTES = 19
"""Bytes of an address with 16 digits, its 0x prefix and a blank."""
_TAIL_BYTES = 32 * _WORD_BYTES - 1
_HEAD_BYTES = 1 << 10
"""Maximum bytes of a line before its addresses."""
_DIGITS = np.full(256, 255, np.uint8)
_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_DIGITS[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def claims(path: Path) -> bool:
    """Return whether a file has such lines near its start."""
    return any(line.startswith(START) for line in start_of(path).splitlines())


def read(path: Path) -> Iterator[Event]:
    """Yield launches and their rows."""
    reader = _Reader()
    for chunk in chunks(path):
        yield from reader.read(chunk)


class _Reader:
    def __init__(self) -> None:
        self._launch = ""  # id of the open launch
        self._grid = (0, 0, 0)

    def read(self, chunk: Chunk) -> Iterator[Event]:
        """Parse a chunk; the rows between two launches are parsed at once."""
        rows: list[int] = []
        for index, line in enumerate(chunk.lines):
            if not line.startswith(START):
                continue
            if _ROW in line:
                rows.append(index)
            elif " - LAUNCH - " in line:
                yield from self._rows(rows, chunk)
                rows = []
                yield self._begin(line, chunk.place(index))
        yield from self._rows(rows, chunk)

    def _begin(self, line: str, place: str) -> Head:
        match = _LAUNCH.fullmatch(line.strip())
        if not match:
            raise CutraceError(f"{place}: {line[:80]!r}: not as mem_trace writes a launch")
        self._launch = match["id"]
        self._grid = _triple(match["grid"])
        return Head(
            kernel=match["name"].partition("(")[0],
            signature=match["name"],
            grid=self._grid,
            block=_triple(match["block"]),
            tool="NVBit mem_trace",
            registers=int(match["nregs"]),
            shared_bytes=int(match["shmem"]),
            lacks=LACKS,
        )

    def _rows(self, rows: list[int], chunk: Chunk) -> Iterator[Rows]:
        if not rows:
            return
        lines = [chunk.lines[row] for row in rows]
        matrix = _of_fixed_width(lines)
        if matrix is not None:
            lines = [line[:_HEAD_BYTES].partition(" - 0x")[0] for line in lines]
        fields = Fields(pl.Series(lines), lambda n: chunk.place(rows[n]))
        if matrix is None and len(short := np.flatnonzero(fields.counts != WORDS)):
            words = fields.counts[short[0]]
            fields.refuse(int(short[0]), f"{words} words, expected {WORDS}: is the line cut off?")
        at = np.zeros(len(rows), np.int64)
        other = (fields.texts(at + _ID) != self._launch).to_numpy()
        if other.any():
            row = int(np.flatnonzero(other)[0])
            owner = f"that of launch {self._launch}" if self._launch else "no line `LAUNCH`"
            fields.refuse(row, f"a row of another launch, but above it is {owner}")
        yield self._to_rows(fields, at, matrix, chunk.place(rows[0]))

    def _to_rows(self, fields: Fields, at: Ints, matrix: Words | None, place: str) -> Rows:
        x, y, z = fields.lists(at + _CTA, 3).T
        opcode = fields.texts(at + _OPCODE)
        which, first = number_rows(pl.DataFrame({"opcode": opcode}))
        if matrix is None:
            words = fields.words(np.arange(len(at)), at + _ADDRESSES, at + 32)
            matrix = words.reshape(-1, 32)
        addresses = matrix
        mask = ((addresses != 0).astype(np.int64) << np.arange(32)).sum(axis=1)
        return Rows(
            [Code(-1, opcode[row], f"{opcode[row]};") for row in first.tolist()],
            which,
            x + self._grid[0] * (y + self._grid[1] * z),
            fields.integers(at + _WARP),
            mask,
            np.arange(len(at)),
            addresses,
            place,
        )


def _of_fixed_width(lines: list[str]) -> Words | None:
    """Return the addresses (n, 32) if all have 16 digits, as the tool prints them; else None."""
    tails = [line.rstrip()[-_TAIL_BYTES:] for line in lines]
    text = " ".join((*tails, "")).encode("ascii", "replace")
    if len(text) != len(lines) * (_TAIL_BYTES + 1):
        return None
    letters = np.frombuffer(text, np.uint8).reshape(-1, _WORD_BYTES)
    digits = _DIGITS[letters[:, 2:-1]]
    form = (letters[:, 0] == ord("0")) & (letters[:, 1] == ord("x")) & (letters[:, -1] == ord(" "))
    if not form.all() or (digits > 15).any():
        return None
    pairs = digits[:, 0::2] << 4 | digits[:, 1::2]
    return np.ascontiguousarray(pairs).view(">u8").astype(np.uint64).reshape(-1, 32)


def _triple(text: str) -> tuple[int, int, int]:
    x, y, z = map(int, text.split(","))
    return x, y, z
