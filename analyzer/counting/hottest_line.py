"""The most expensive source lines.

Cost is wavefronts or texture requests if shared memory or the texture units limit the launch;
otherwise it is the bytes that global and local accesses move.
"""

from functools import reduce

import polars as pl

from ...base.dataclass import dataclass

MOVED = tuple(
    f"{access}_bytes_transferred"
    for access in ("global_load", "global_store", "global_atomic", "local_load", "local_store")
)
OF_LIMIT = {
    "shared memory": ("wavefronts of shared memory", "shared_wavefronts"),
    "texture units": ("texture requests", "texture_requests"),
}
"""Limiting resource to the name of a line's cost, and its counter."""


@dataclass(frozen=True, slots=True)
class Costliest:
    """A source line, its text, and its share of the launch's total cost, 0 to 1.

    `what` names the cost: as in OF_LIMIT, else `bytes moved`, or `instructions` where nothing is
    moved.
    """

    file: str
    line: int
    text: str
    share: float
    what: str


def costliest(lines: pl.DataFrame, limited_by: str = "") -> Costliest | None:
    """Return the most expensive row of a launch's lines; None if no line is known or has a cost."""
    return next(iter(costliest_lines(lines, limited_by, 1)), None)


def costliest_lines(lines: pl.DataFrame, limited_by: str, most: int) -> list[Costliest]:
    """Return at most `most` rows of a launch's lines, most expensive first.

    Of lines with equal cost the first in the file comes first.
    """
    source_lines = lines.filter(pl.col("line") > 0)
    moved = reduce(pl.Expr.__add__, (pl.col(name).fill_null(0) for name in MOVED))
    costs = [("bytes moved", moved), ("instructions", pl.col("instructions"))]
    if limited_by in OF_LIMIT:
        what, counter = OF_LIMIT[limited_by]
        costs.insert(0, (what, pl.col(counter)))
    for what, cost in costs:
        total = lines.select(cost.sum()).item()
        if total and source_lines.height:
            rows = source_lines.with_columns(cost=cost).sort(
                "cost", descending=True, maintain_order=True
            )
            tops = [top for top in rows.head(most).iter_rows(named=True) if top["cost"]]
            if tops:
                return [
                    Costliest(t["file"], t["line"], t["text"].strip(), t["cost"] / total, what)
                    for t in tops
                ]
    return []
