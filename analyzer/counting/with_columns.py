"""Further columns for the counts of a launch, of which there are hundreds: only what the new ones
read is touched."""

from collections.abc import Sequence

import polars as pl


def widen(counts: pl.DataFrame, by_pc: pl.DataFrame, columns: Sequence[pl.Expr]) -> pl.DataFrame:
    """The counts with columns beside them that read the counts and what is known `by_pc`."""
    read = {name for column in columns for name in column.meta.root_names()}
    own = [name for name in counts.columns if name in read and name != "pc"]
    narrow = counts.select("pc", *own).join(by_pc, on="pc", how="left", maintain_order="left")
    return counts.hstack(narrow.select(columns))
