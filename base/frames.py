"""polars in forked children: its threads run only in the process that started them.

A query in a child that was forked after they were started waits for them for ever.
"""

import os
from functools import cache
from threading import Thread

from .errors import CutraceError

PATIENCE = 10.0
"""Seconds after which a query of three rows hangs; it takes less than a millisecond."""


def require_frames() -> None:
    """Raise CutraceError in a process in which queries of polars hang."""
    if _hangs(os.getpid()):
        raise CutraceError(
            f"polars gives no answer in process {os.getpid()}, a forked child of a process that "
            'has used it before: start this one anew (multiprocessing.get_context("spawn")), or '
            "fork before the first analysis"
        )


@cache
def _hangs(process: int) -> bool:
    """Return whether a query in this process ends; tried once, in a thread that may stay."""
    import polars as pl

    query = Thread(target=lambda: pl.DataFrame({"key": [3, 1, 2]}).sort("key"), daemon=True)
    query.start()
    query.join(PATIENCE)
    return query.is_alive()
