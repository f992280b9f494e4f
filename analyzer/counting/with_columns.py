"""Further columns for the counts of a launch, of which there are hundreds: only what the new ones
read is touched, and their expressions are made once for all launches."""

from collections.abc import Iterable
from functools import lru_cache

import polars as pl


class Added(tuple[pl.Expr, ...]):
    """Expressions of new columns, and the columns that they read: `reads`."""

    reads: frozenset[str]

    def __new__(cls, columns: Iterable[pl.Expr]) -> "Added":
        """Find what they read."""
        made = super().__new__(cls, columns)
        made.reads = frozenset(name for column in made for name in column.meta.root_names())
        return made


def widen(counts: pl.DataFrame, by_pc: pl.DataFrame, added: Added) -> pl.DataFrame:
    """The counts with columns beside them that read the counts and what is known `by_pc`."""
    own = [name for name in counts.columns if name in added.reads and name != "pc"]
    narrow = counts.select("pc", *own).join(by_pc, on="pc", how="left", maintain_order="left")
    return counts.hstack(narrow.select(added))


@lru_cache(maxsize=64)
def zeros(names: tuple[str, ...]) -> Added:
    """Columns of zeros."""
    return Added(pl.lit(0, pl.Int64).alias(name) for name in names)
