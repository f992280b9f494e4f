"""Derived columns of a launch's counts.

Counts have hundreds of columns: only those that a new column reads are selected, and expressions
are built once for all launches.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import polars as pl

WHOSE = " launch"
"""The column that tells several launches apart."""


class Added(tuple[pl.Expr, ...]):
    """Expressions of new columns, and the columns that they read: `reads`."""

    reads: frozenset[str]

    def __new__(cls, columns: Iterable[pl.Expr]) -> "Added":
        """Find what they read."""
        made = super().__new__(cls, columns)
        made.reads = frozenset(name for column in made for name in column.meta.root_names())
        return made


def widen(counts: pl.DataFrame, by_pc: pl.DataFrame, added: Added) -> pl.DataFrame:
    """The counts with further columns, computed from the counts and the facts `by_pc`."""
    own = [name for name in counts.columns if name in added.reads and name != "pc"]
    narrow = counts.select("pc", *own).join(by_pc, on="pc", how="left", maintain_order="left")
    return counts.hstack(narrow.select(added))


@lru_cache(maxsize=64)
def zeros(names: tuple[str, ...]) -> Added:
    """Columns of zeros."""
    return Added(pl.lit(0, pl.Int64).alias(name) for name in names)


def sums_of_each(counts: pl.DataFrame, launches: int) -> Sequence[Mapping[str, int]]:
    """The sum of each raw counter over the rows of each launch, numbered in WHOSE."""
    names = [name for name, kind in counts.schema.items() if kind == pl.Int64]
    sums = counts.group_by(WHOSE).agg(pl.col(names).sum())
    whose = sums.drop_in_place(WHOSE).to_list()
    found = dict(zip(whose, sums.iter_rows(named=True), strict=True))
    return [found.get(number) or dict.fromkeys(names, 0) for number in range(launches)]
