"""One table of several traces as a lazy frame of polars, which reads what is asked of it."""

import io
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import CutraceError, nearest
from .folder.archive import PackedPath
from .reader import LaunchTrace, read_trace
from .schema import TABLES

if TYPE_CHECKING:
    import polars as pl


def scan_traces(
    traces: Iterable[str | os.PathLike[str]], table: str = "accesses"
) -> "pl.LazyFrame":
    """Return a table of all launches of several traces, as one lazy frame of polars.

    `table` is one of traces/FORMAT.md: `accesses`, `patterns`, `instructions` and so on. Its
    columns stand behind `trace`, the path or address as it is given, and `launch`, the number.
    Raises CutraceError for a trace that cannot be read, and a table that there is not.
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
    import polars as pl

    path = launch.place / f"{table}.arrow"
    if isinstance(path, PackedPath):
        return pl.read_ipc(io.BytesIO(path.read_bytes())).lazy()
    return pl.scan_ipc(path)
