"""Launches that did nothing: no thread passed the bounds check, or none stored a result."""

import polars as pl

NOTHING = (
    "no thread loaded or stored anything; if the kernel checks its bounds, none passed: give other"
    " numbers, or another shape"
)
NOT_KEPT = "no thread stored anything to global memory"
KEEPING = ("global_store", "global_atomic", "global_reduction", "surface_store")
"""Accesses by which a launch leaves anything behind."""
READING = ("const_",)
"""What a bounds check itself may read."""


def did_nothing(counts: pl.DataFrame) -> bool:
    """Whether no thread of a launch accessed memory, constants aside."""
    return not any(not name.startswith(READING) for name in _used(counts))


def kept_nothing(counts: pl.DataFrame) -> bool:
    """Whether no thread changed memory that outlives the launch."""
    return not any(name.startswith(KEEPING) for name in _used(counts))


def _used(counts: pl.DataFrame) -> list[str]:
    """The raw counters of requests that are not zero."""
    names = [name for name in counts.columns if name.endswith("_requests")]
    if not counts.height or not names:
        return []
    sums = counts.select(pl.col(names).sum()).row(0, named=True)
    return [name for name, requests in sums.items() if requests]
