"""CUTracer: NDJSON, plain or compressed with zstd; a record per line.

The first line, `kernel_metadata`, describes the launch: there is one per file. Of the other records
those with 32 addresses are read, `mem_addr_trace` and `mem_value_trace` (older: `mem_trace`).
Without `active_mask` a lane with address 0 is inactive.

Source: docs/Outputs-and-File-Formats.md and python/cutracer/validation/schemas of
github.com/facebookresearch/CUTracer.
"""

import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ...base.errors import CutraceError
from .reader_interface import Code, Event, Head, Ints, Rows, Words, number_rows
from .text import Chunk, chunks, start_of

NAME = "cutracer"
METADATA = "kernel_metadata"
MEMORY = ("mem_addr_trace", "mem_value_trace", "mem_trace")
LACKS = (
    "lanes that accessed address 0, where there is no active_mask",
    "what the warps ran besides memory instructions",
    "names of arrays and arguments",
)

_SCHEMA: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "type": pl.String,
    "grid_launch_id": pl.Int64,
    "cta": pl.List(pl.Int64),
    "warp": pl.Int64,
    "pc": pl.String,
    "sass": pl.String,
    "opcode_id": pl.Int64,
    "addrs": pl.List(pl.UInt64),
    "active_mask": pl.String,
}
_MARK = re.compile(r'"(kernel_checksum|cta)"')
_SASS = re.compile(r"\s*(?:@(!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)(.*?);?\s*", re.DOTALL)


def claims(path: Path) -> bool:
    """Return whether the first line is a record of CUTracer's."""
    first = start_of(path).partition("\n")[0]
    return first.startswith("{") and '"type"' in first and bool(_MARK.search(first))


def read(path: Path) -> Iterator[Event]:
    """Yield the launch and its rows."""
    reader = _Reader(path)
    for chunk in chunks(path):
        yield from reader.read(chunk)
    reader.finish()


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._head: Head | None = None
        self._sass: dict[int, str] = {}
        self._launch: int | None = None
        self._rows = 0
        self._types: dict[str, None] = {}

    def read(self, chunk: Chunk) -> Iterator[Event]:
        """Yield the launch, if this is the first chunk, and all rows of the chunk."""
        if self._head is None:
            self._head = self._begin(chunk.lines[0], chunk.place(0))
            yield self._head
            chunk = Chunk(chunk.path, chunk.first + 1, chunk.lines[1:])
        lines = [(n, line) for n, line in enumerate(chunk.lines) if line and not line.isspace()]
        if lines:
            yield from self._consume(
                _table([line for _, line in lines], lines, chunk), lines, chunk
            )

    def finish(self) -> None:
        """Reject a file without addresses."""
        if not self._rows:
            types = ", ".join(self._types) or "no"
            raise CutraceError(
                f"{self._path}: {types} records, which have no addresses: trace with CUTracer's "
                "mem_addr_trace"
            )

    def _begin(self, line: str, place: str) -> Head:
        try:
            record = json.loads(line)
            if record["type"] != METADATA:
                raise CutraceError(
                    f"{place}: a {str(record['type'])[:40]} record; the first line of a file is "
                    f"{METADATA}, which says grid and block: trace again with a newer CUTracer"
                )
            static, dynamic = int(record["shmem_static"]), int(record["shmem_dynamic"])
            for number, code in record.get("instructions", {}).items():
                self._sass[int(number)] = str(code["sass"])
            return Head(
                kernel=str(record["mangled_name"]),
                signature=str(record["unmangled_name"]),
                grid=_triple(record["grid"]),
                block=_triple(record["block"]),
                tool="CUTracer",
                registers=int(record["nregs"]),
                shared_bytes=static + dynamic,
                shared_dynamic=dynamic,
                lacks=LACKS,
            )
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            problem = f"no {error}" if isinstance(error, KeyError) else str(error)[:100]
            raise CutraceError(f"{place}: not as CUTracer describes a launch: {problem}") from None

    def _consume(
        self, table: pl.DataFrame, lines: list[tuple[int, str]], chunk: Chunk
    ) -> Iterator[Rows]:
        self._types.update(dict.fromkeys(table["type"].unique(maintain_order=True).drop_nulls()))
        table = table.with_row_index("n").filter(pl.col("type").is_in(MEMORY))
        if not len(table):
            return
        self._check(table, lines, chunk)
        self._rows += len(table)
        yield self._to_rows(table, chunk.place(lines[table["n"][0]][0]))

    def _check(self, table: pl.DataFrame, lines: list[tuple[int, str]], chunk: Chunk) -> None:
        """Check that every record is complete and belongs to the same launch."""
        if self._launch is None:
            self._launch = table["grid_launch_id"][0]
        broken = {
            "no cta of three numbers": _lacks("cta", 3),
            "not 32 addresses": _lacks("addrs", 32),
            "no warp": pl.col("warp").is_null() | (pl.col("warp") < 0),
            "an instruction without sass": (pl.col("sass").fill_null("") == "")
            & ~pl.col("opcode_id").is_in([*self._sass]).fill_null(False),
            f"not of launch {self._launch}, which the file began with": pl.col(
                "grid_launch_id"
            ).ne_missing(self._launch),
        }
        for problem, expr in broken.items():
            if len(rows := table.filter(expr)):
                place = chunk.place(lines[rows["n"][0]][0])
                raise CutraceError(f"{place}: a {rows['type'][0]} record with {problem}")

    def _to_rows(self, table: pl.DataFrame, place: str) -> Rows:
        assert self._head is not None
        keys = table.select("pc", "sass", "opcode_id")
        which, first = number_rows(keys)
        codes = [self._code(row, place) for row in keys[first].iter_rows(named=True)]
        x, y, z = table["cta"].explode().to_numpy().reshape(-1, 3).T
        grid = self._head.grid
        addresses: Words = table["addrs"].explode().to_numpy().astype(np.uint64).reshape(-1, 32)
        on = ((addresses != 0).astype(np.int64) << np.arange(32)).sum(axis=1)
        masks = table["active_mask"].map_elements(_mask, pl.Int64).to_numpy()
        mask = np.where(np.isnan(masks.astype(float)), on, masks).astype(np.int64)
        block: Ints = x + grid[0] * (y + grid[1] * z)
        warp = table["warp"].to_numpy()
        return Rows(codes, which, block, warp, mask, np.arange(len(table)), addresses, place)

    def _code(self, row: Mapping[str, Any], place: str) -> Code:
        sass = row["sass"] or self._sass[row["opcode_id"]]
        match = _SASS.fullmatch(sass)
        try:
            pc = int(str(row["pc"]), 0)
        except ValueError:
            raise CutraceError(f"{place}: pc {str(row['pc'])[:40]!r} is no number") from None
        if not match or pc < 0:
            raise CutraceError(f"{place}: {sass[:60]!r} is no machine instruction")
        return Code(pc, match[2], f"{match[2]}{match[3].rstrip()};", predicate=match[1] or "")


def _lacks(name: str, many: int) -> pl.Expr:
    """Return whether a list column has another number of values."""
    numbers = pl.col(name).list
    return (numbers.len().fill_null(0) != many) | numbers.contains(None).fill_null(True)


def _table(texts: list[str], lines: list[tuple[int, str]], chunk: Chunk) -> pl.DataFrame:
    """Parse records as a table; on an error, find the first broken record by bisection."""
    try:
        return _parsed(texts)
    except pl.exceptions.PolarsError as error:
        problem = str(error).splitlines()[0]
    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _parsed(texts[low:middle])
            low = middle
        except pl.exceptions.PolarsError as error:
            high, problem = middle, str(error).splitlines()[0]
    raise CutraceError(f"{chunk.place(lines[low][0])}: not a record of CUTracer's: {problem[:120]}")


def _parsed(texts: list[str]) -> pl.DataFrame:
    return pl.read_ndjson(io.BytesIO("\n".join(texts).encode()), schema=_SCHEMA)


def _mask(text: str) -> int | None:
    try:
        return int(text, 0) & 0xFFFFFFFF
    except ValueError:
        return None


def _triple(values: list[Any]) -> tuple[int, int, int]:
    x, y, z = map(int, values)
    return x, y, z
