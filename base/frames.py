"""Where polars waits for ever: queries in forked children, and pickles of wide frames.

Its threads run only in the process that started them: a query in a child that was forked later
waits for them. polars 2.1 also waits while it writes a frame of some 400 columns into a pickle, so
frames are pickled as Arrow tables.
"""

import copyreg
import os
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any

from .errors import CutraceError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

PATIENCE = 10.0
"""Seconds after which a query of three rows hangs; it takes less than a millisecond."""


def require_frames() -> None:
    """Make frames safe to pickle; raise CutraceError in a process in which queries hang."""
    _pickle_as_arrow()
    if _hangs(os.getpid()):
        raise CutraceError(
            f"polars gives no answer in process {os.getpid()}, a forked child of a process that "
            'has used it before: start this one anew (multiprocessing.get_context("spawn")), or '
            "fork before the first analysis"
        )


@cache
def _hangs(process: int) -> bool:
    """Return whether a query in this process hangs; tried once, in a thread that may stay."""
    import polars as pl

    def ask() -> None:  # a sort would do, but with one thread polars sorts in the caller's
        pl.DataFrame({"key": [3, 1, 2]}).group_by("key").len()

    query = Thread(target=ask, daemon=True)
    query.start()
    query.join(PATIENCE)
    return query.is_alive()


@cache
def _pickle_as_arrow() -> None:
    import polars as pl

    copyreg.pickle(pl.DataFrame, _to_arrow)


def _to_arrow(frame: "pl.DataFrame") -> tuple[Any, tuple["pa.Table"]]:
    return _from_arrow, (frame.to_arrow(),)


def _from_arrow(table: "pa.Table") -> "pl.DataFrame | pl.Series":
    import polars as pl

    return pl.from_arrow(table)
