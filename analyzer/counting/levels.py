"""Levels: the totals of each cache and of memory, over all kinds of access.

A raw counter of a cache belongs to one kind of access: `global_load_l2_reads`. A level's counter,
`l2_reads`, is their sum, including those that stores, atomics and evictions cause.
"""

from collections.abc import Mapping
from functools import lru_cache

import polars as pl

from ...models.cache import Cache
from ...models.memory import Memory
from ...models.replay.seam import ACCESSES
from .with_columns import Added

COUNTED = (*Cache.counters, *Memory.counters)
PREFIXES = tuple(f"{space}_{access}_" for space in ACCESSES for access in ACCESSES[space])


@lru_cache(maxsize=64)
def find_levels(columns: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Return the raw counters behind each level's counter: `l2_reads` to all that end in it."""
    found: dict[str, list[str]] = {}
    for column in columns:
        for prefix in PREFIXES:
            own = column.removeprefix(prefix)
            if own != column and any(own.endswith(f"_{name}") for name in COUNTED):
                found.setdefault(own, []).append(column)
    return found


def with_levels(counts: pl.DataFrame) -> pl.DataFrame:
    """Add a column for each counter of each level that the device has."""
    return counts.hstack(counts.select(_sums(tuple(counts.columns))))


@lru_cache(maxsize=64)
def _sums(columns: tuple[str, ...]) -> Added:
    return Added(
        pl.sum_horizontal(each).cast(pl.Int64).alias(name)
        for name, each in find_levels(columns).items()
    )
