"""Scan one table of several traces as a polars lazy frame, which reads the queried columns only."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..base.errors import CutraceError, nearest
from .reader import LaunchTrace, read_trace
from .schema import TABLES

if TYPE_CHECKING:
    import polars as pl


def scan_traces(
    traces: Iterable[str | os.PathLike[str]], table: str = "accesses"
) -> "pl.LazyFrame":
    """Return a table of all launches of several traces, as one polars lazy frame.

    `table` is one of traces/FORMAT.md: `accesses`, `patterns`, `instructions` and so on. Its
    columns follow `trace`, the path or URL as given, and `launch`, the number. Raises CutraceError
    for an unreadable trace and an unknown table.
    """
    import polars as pl

    if table not in TABLES:
        raise CutraceError(f"no table {table!r}{nearest(table, TABLES)}; there are {[*TABLES]}")
    frames = [
        _scan(launch, table).select(
            pl.lit(os.fspath(trace)).alias("trace"), pl.lit(launch.number).alias("launch"), pl.all()
        )
        for trace in traces
        for launch in read_trace(trace).launches
    ]
    if not frames:
        raise CutraceError("no trace is given, or no launch is in one")
    return pl.concat(frames)


def _scan(launch: LaunchTrace, table: str) -> "pl.LazyFrame":
    """Return a table that is read, batch by batch, when the frame is collected."""
    import polars as pl
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, predicate: "pl.Expr | None", rows: int | None, _: int | None
    ) -> "Iterator[pl.DataFrame]":
        for batch in launch.batches(table, columns or ()):
            frame = pl.DataFrame(pl.from_arrow(batch)).slice(0, rows)
            rows = None if rows is None else rows - frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if rows == 0:
                return

    empty = pl.DataFrame(pl.from_arrow(TABLES[table].empty_table()))
    return register_io_source(read, schema=empty.schema, is_pure=True)
