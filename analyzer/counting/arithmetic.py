"""Floating-point operations: how many an instruction is, and how many threads ran it.

An `add`, `sub`, `mul`, `div`, reciprocal, root or other elementary function is one operation, an
`fma` or floating `mad` two, and packed types do that in each half. Lanes whose predicate is off
are left out. Conversions, comparisons, minima, negations, atomics and matrix instructions are not
counted.

Source: definition of the ratio in a textbook chapter on CUDA memories; for the list of operations
nvprof's flop_count metrics (Profiler User's Guide 7.5).
"""

import polars as pl
import pyarrow as pa

from ...traces.table.remembered import remembered
from .with_columns import WHOSE, Added, widen

COLUMNS = tuple(f"flops_{name}" for name in ("half", "single", "double"))
FLOPS = Added((pl.col(name).fill_null(0) * pl.col("lanes")).alias(name) for name in COLUMNS)


@remembered
def flops_of(instructions: pa.Table) -> pl.DataFrame:
    """The instructions that compute: `pc`, `predicated`, and COLUMNS, operations of one lane."""
    table = pl.DataFrame(instructions.select(["pc", "predicate", "class", "flops"]))
    each = [
        pl.when(pl.col("class") == name.removeprefix("flops_"))
        .then("flops")
        .otherwise(0)
        .cast(pl.Int64)
        .alias(name)
        for name in COLUMNS
    ]
    predicated = (pl.col("predicate") != "").alias("predicated")
    return table.filter(pl.col("flops") > 0).select("pc", predicated, *each)


def with_lanes(
    counts: pl.DataFrame, lanes_on: pl.DataFrame, instructions: pa.Table
) -> pl.DataFrame:
    """The counts of launches with `lanes` beside them: those that ran an instruction.

    They are the models' `thread_instructions`, or for predicated instructions (other than those of
    memory and branches, which have 0) the lanes whose predicate was on: `lanes_on`. Both frames
    tell the launches apart by WHOSE.
    """
    predicated = _predicated(instructions).lazy()
    lanes = lanes_on.lazy().join(predicated, on="pc").select(WHOSE, "pc", "scope", "lanes")
    joined = (
        counts.lazy()
        .select(WHOSE, "pc", "array", "scope", "thread_instructions")
        .join(predicated, on="pc", how="left", maintain_order="left")
        .join(lanes, on=[WHOSE, "pc", "scope"], how="left", maintain_order="left")
    )
    on = pl.when("predicated").then(pl.col("lanes").fill_null(0)).otherwise("thread_instructions")
    own = pl.when(pl.col("array") == "").then(on).otherwise(0)
    return counts.hstack(joined.select(lanes=own).collect())


@remembered
def _predicated(instructions: pa.Table) -> pl.DataFrame:
    """The `pc` of each instruction with a predicate, `predicated`."""
    table = pl.DataFrame(instructions.select(["pc", "predicate"]))
    return table.filter(pl.col("predicate") != "").select("pc", predicated=pl.lit(True))


def with_flops(counts: pl.DataFrame, instructions: pa.Table) -> pl.DataFrame:
    """The counts of a launch with COLUMNS beside them: operations of a lane, times `lanes`."""
    return widen(counts, flops_of(instructions), FLOPS)
