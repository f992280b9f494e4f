"""Which source line costs most: the one whose global and local accesses move the most bytes."""

from dataclasses import dataclass
from functools import reduce

import polars as pl

MOVED = tuple(
    f"{access}_bytes_moved"
    for access in ("global_load", "global_store", "global_atomic", "local_load", "local_store")
)


@dataclass(frozen=True, slots=True)
class Costliest:
    """A source line, the text on it, and its part of the launch's total, 0 to 1.

    `what` is what was added up: `bytes moved`, or `instructions` where a launch moves none.
    """

    file: str
    line: int
    text: str
    share: float
    what: str


def costliest(lines: pl.DataFrame) -> Costliest | None:
    """The costliest row of a launch's lines; None where no line is known or none costs anything.

    Of lines that cost the same the first in the file is taken.
    """
    known = lines.filter(pl.col("line") > 0)
    moved = reduce(pl.Expr.__add__, (pl.col(name).fill_null(0) for name in MOVED))
    for what, cost in (("bytes moved", moved), ("instructions", pl.col("instructions"))):
        total = lines.select(cost.sum()).item()
        if total and known.height:
            row = known.with_columns(cost=cost).sort("cost", descending=True, maintain_order=True)
            top = row.row(0, named=True)
            if top["cost"]:
                return Costliest(
                    top["file"], top["line"], top["text"].strip(), top["cost"] / total, what
                )
    return None
