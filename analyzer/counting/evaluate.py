"""Counters from raw counts: formulas evaluated over the counts of a launch, grouped at will.

The counts are a table with a row for each (pc, array, scope) and one Int64 column for each raw
counter of the models. A counter that counts one SM or one cluster sees the other rows as zeros, so
that every line, array or instruction of the launch keeps its row in every grouping.
"""

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import field
from functools import cache
from typing import ClassVar

import polars as pl

from ...base.dataclass import dataclass
from .derived_columns import LAUNCH_COLUMN
from .left_out import LeftOut
from .packed import Packing
from .vocabulary import SCOPES, Counter

KEYS = ("pc", "array", "scope")
INSIDE = {"sm": ("sm",), "cluster": ("sm", "cluster"), "all": ("sm", "cluster", "rest")}
"""For each scope of a counter, the scopes of the rows that it adds up."""

Value = int | float | None
Definitions = Mapping[str, Counter | None]
"""Heading to its definition on this device; None where the device has no such counter."""


@dataclass(frozen=True)
class Raw(Packing):
    """The counts of one launch on one device, in the form that formulas read.

    `counts` has the KEYS and any further columns to group by; `facts` are what is known of the
    launch as a whole, None where it is not. `whole` makes every counter count the whole grid.
    What was `left_out` of the trace is zero in `counts`.
    """

    packed: ClassVar[tuple[str, ...]] = ("counts",)

    counts: pl.DataFrame
    facts: Mapping[str, int | None]
    whole: bool = False
    left_out: LeftOut = field(default_factory=LeftOut)

    def knows(self, counter: Counter, unknown: frozenset[str]) -> bool:
        """Whether a counter can be told where these columns are not known."""
        if self.left_out.scoped and counter.scope != "all" and not self.whole:
            return False
        return unknown.isdisjoint(columns(counter.formula))


@cache
def expression(formula: str) -> pl.Expr:
    """The polars expression of a formula."""
    return pl.sql_expr(formula)


@cache
def columns(formula: str) -> frozenset[str]:
    """The raw counters that a formula reads."""
    return frozenset(expression(formula).meta.root_names())


def totals(raw: Raw, definitions: Definitions) -> dict[str, Value]:
    """The value of each counter over the whole launch, by heading.

    None where the device does not have it, where its models do not carry a raw counter that the
    formula reads, where the trace has left out what it needs, and where a ratio has nothing to
    divide.
    """
    return totals_of_each([raw], definitions)[0]


def totals_of_each(raws: Sequence[Raw], definitions: Definitions) -> list[dict[str, Value]]:
    """The `totals` of several launches: one query answers for all that are counted alike."""
    values: list[dict[str, Value]] = [dict.fromkeys(definitions) for _ in raws]
    groups: dict[Hashable, list[int]] = {}
    for number, raw in enumerate(raws):
        unknown = raw.left_out.anywhere(), raw.left_out.scoped
        key = raw.whole, unknown, tuple(raw.counts.schema.items()), tuple(raw.facts)
        groups.setdefault(key, []).append(number)
    for numbers in groups.values():
        rows = _totals_of_alike([raws[n] for n in numbers], definitions)
        for number, row in zip(numbers * (len(rows) // len(numbers)), rows, strict=True):
            values[number] |= row
    return values


def _totals_of_alike(raws: Sequence[Raw], definitions: Definitions) -> list[dict[str, Value]]:
    """For each scope the values of each launch, one after another."""
    tables = [_with_zeros(raw.counts) for raw in raws]
    counts = pl.concat(tables, rechunk=True)
    numbers = [number for number, table in enumerate(tables) for _ in range(table.height)]
    owners = pl.Series(LAUNCH_COLUMN, numbers, pl.UInt32)
    schema = {name: pl.Int64 for name in raws[0].facts}
    facts = pl.DataFrame([list(raw.facts.values()) for raw in raws], schema, orient="row")
    counts = counts.hstack([owners, *facts[owners].get_columns()])
    unknown, rows = raws[0].left_out.anywhere(), []
    for scope in SCOPES:
        formulas = {
            heading: counter.formula
            for heading, counter in definitions.items()
            if counter and counter.scope == scope and raws[0].knows(counter, unknown)
        }
        if not formulas:
            continue
        each = _expressions(formulas, {*counts.columns})
        table = _masked(raws[0], counts, scope)
        summed = table.group_by(LAUNCH_COLUMN, maintain_order=True).agg(each)
        facts_alone = pl.col(pl.List).list.last()  # a formula of facts has them in every row
        rows += summed.drop(LAUNCH_COLUMN).with_columns(facts_alone).collect().rows(named=True)
    return rows


def by(raw: Raw, definitions: Definitions, keys: Sequence[str]) -> pl.DataFrame:
    """A row for each group of `keys`, sorted by them, and a column for each heading.

    Counters that the device lacks, and those of the launch as a whole, are columns of nulls.
    """
    frame = raw.counts.select(keys).unique(maintain_order=True)
    missing_at = raw.left_out.by(keys)
    unknown = raw.left_out.anywhere() if missing_at is None else raw.left_out.columns
    for scope in SCOPES:
        formulas = {
            heading: counter.formula
            for heading, counter in definitions.items()
            if counter and counter.scope == scope and not counter.whole_launch
            if raw.knows(counter, unknown)
        }
        if not formulas:
            continue
        each = _expressions(formulas, {*raw.counts.columns})
        table = _masked(raw, raw.counts, scope)
        grouped = table.group_by(keys, maintain_order=True).agg(each).collect()
        frame = frame.with_columns(grouped.drop(keys).get_columns())
    missing = [pl.lit(None, pl.Int64).alias(h) for h in definitions if h not in frame.columns]
    frame = frame.with_columns(missing).select(*keys, *definitions).sort(keys)
    return _without_unknown(frame, definitions, keys, missing_at) if raw.left_out.at else frame


def _without_unknown(
    frame: pl.DataFrame,
    definitions: Definitions,
    keys: Sequence[str],
    missing: Mapping[tuple[object, ...], frozenset[str]] | None,
) -> pl.DataFrame:
    """Empty the cells of groups with instructions of which something that is needed is missing."""
    groups = [(missing or {}).get(key, frozenset()) for key in frame.select(keys).rows()]
    emptied = []
    for heading, counter in definitions.items():
        reads = columns(counter.formula) if counter else frozenset()
        if any(not reads.isdisjoint(group) for group in groups):
            mask = pl.Series([reads.isdisjoint(group) for group in groups])
            emptied.append(pl.when(mask).then(pl.col(heading)).alias(heading))
    return frame.with_columns(emptied)


def _expressions(formulas: Mapping[str, str], column_names: Set[str]) -> list[pl.Expr]:
    """The formulas of which all columns are `column_names`, under their headings."""
    return [expression(f).alias(h) for h, f in formulas.items() if columns(f) <= column_names]


def _masked(raw: Raw, counts: pl.DataFrame, scope: str) -> pl.LazyFrame:
    """Counts like those of `raw`, with zeros in the rows that a counter of this scope does not
    see."""
    if raw.whole or scope == "all":
        return counts.lazy()
    mask = pl.col("scope").is_in(INSIDE[scope]).cast(pl.Int64)
    numbers = [c for c, dtype in raw.counts.schema.items() if dtype == pl.Int64 and c not in KEYS]
    return counts.lazy().with_columns(pl.col(numbers) * mask)


def _with_zeros(table: pl.DataFrame) -> pl.DataFrame:
    """The table, or one row of zeros if it is empty: the sum of nothing is 0, not unknown."""
    if table.height:
        return table
    return table.clear(1).with_columns(pl.col(pl.Int64).fill_null(0), scope=pl.lit(SCOPES[0]))
