"""Derived columns of a launch's counts.

Counts have hundreds of columns: only those that a new column reads are selected, and expressions
are built once for all launches. What polars is asked it does in threads of its own: one question of
several steps waits for them once.
"""

from collections.abc import Iterable, Mapping, Sequence

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
    narrow = counts.lazy().select("pc", *own)
    wide = narrow.join(by_pc.lazy(), on="pc", how="left", maintain_order="left")
    return counts.hstack(wide.select(added).collect())


def with_zeros(counts: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """The counts with further columns of zeros."""
    zeros = pl.zeros(counts.height, pl.Int64, eager=True)
    return counts.hstack([zeros.alias(name) for name in names])


def sums_of_each(counts: pl.DataFrame, launches: int) -> Sequence[Mapping[str, int]]:
    """The sum of each raw counter over the rows of each launch, numbered in WHOSE."""
    names = [name for name, kind in counts.schema.items() if kind == pl.Int64]
    if launches == 1:
        return [{name: int(counts[name].sum()) for name in names}]
    sums = counts.group_by(WHOSE).agg(pl.col(names).sum())
    whose = sums.drop_in_place(WHOSE).to_list()
    found = dict(zip(whose, sums.iter_rows(named=True), strict=True))
    return [found.get(number) or dict.fromkeys(names, 0) for number in range(launches)]
