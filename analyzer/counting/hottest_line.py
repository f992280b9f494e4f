"""Which source line costs most: of what limits the launch, if that is a unit of the SM for some
accesses alone; else the one whose global and local accesses move the most bytes.
"""

from dataclasses import dataclass
from functools import reduce

import polars as pl

MOVED = tuple(
    f"{access}_bytes_moved"
    for access in ("global_load", "global_store", "global_atomic", "local_load", "local_store")
)
OF_LIMIT = {
    "shared memory": ("passes over the banks", "shared_passes"),
    "texture units": ("texture requests", "texture_requests"),
}
"""By the resource that limits a launch, what a line costs of it, and the counter."""


@dataclass(frozen=True, slots=True)
class Costliest:
    """A source line, the text on it, and its part of the launch's total, 0 to 1.

    `what` is what was added up: as in OF_LIMIT, else `bytes moved`, or `instructions` where nothing
    is moved.
    """

    file: str
    line: int
    text: str
    share: float
    what: str


def costliest(lines: pl.DataFrame, limited_by: str = "") -> Costliest | None:
    """The costliest row of a launch's lines; None where no line is known or none costs anything.

    Of lines that cost the same the first in the file is taken.
    """
    known = lines.filter(pl.col("line") > 0)
    moved = reduce(pl.Expr.__add__, (pl.col(name).fill_null(0) for name in MOVED))
    costs = [("bytes moved", moved), ("instructions", pl.col("instructions"))]
    if limited_by in OF_LIMIT:
        what, counter = OF_LIMIT[limited_by]
        costs.insert(0, (what, pl.col(counter)))
    for what, cost in costs:
        total = lines.select(cost.sum()).item()
        if total and known.height:
            row = known.with_columns(cost=cost).sort("cost", descending=True, maintain_order=True)
            top = row.row(0, named=True)
            if top["cost"]:
                return Costliest(
                    top["file"], top["line"], top["text"].strip(), top["cost"] / total, what
                )
    return None
