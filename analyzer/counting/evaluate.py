"""Evaluate counters: apply formulas to the raw counts of a launch, grouped by any keys.

The counts have one row per (pc, array, scope) and one Int64 column per raw counter of the models. A
counter of one SM or one cluster reads the other rows as zeros, so every line, array and instruction
of the launch keeps its row in every grouping.

A launch's counts have hundreds of columns, each of which takes a thousand bytes even with few rows.
The frames of many launches are therefore concatenated and compressed together.
"""

import io
import re
import zlib
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from ...base.dataclass import dataclass
from ...base.frames import require_frames
from .derived_columns import LAUNCH_COLUMN, PREFIXES, with_zeros
from .left_out import LeftOut
from .vocabulary import SCOPES, Counter

UNPACKED = 4
"""Size of the LRU cache of unpacked packs."""


class Packing:
    """An object with frames, named in `packed`, that `pack_together` packs.

    Each access unpacks the frame; the object does not keep it.
    """

    packed: ClassVar[tuple[str, ...]]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> pl.DataFrame:
            """Unpack a frame."""
            if name in self.packed and (entry := vars(self).get(f"_{name}")):
                data, start, rows = entry
                return _unpack(data).slice(start, rows)
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


def pack_together(some: Sequence[Packing]) -> None:
    """Pack the frames of objects of one class; frames with equal columns go together."""
    for name in some[0].packed if some else ():
        groups: dict[tuple[str, ...], list[Packing]] = {}
        for one in some:
            if name in vars(one):
                groups.setdefault(tuple(vars(one)[name].columns), []).append(one)
        for members in groups.values():
            _pack(name, members)


def _pack(name: str, members: Sequence[Packing]) -> None:
    frames = [vars(one).pop(name) for one in members]
    file = io.BytesIO()
    pl.concat(frames).write_ipc(file)
    data, start = zlib.compress(file.getvalue(), 1), 0
    for one, frame in zip(members, frames, strict=True):
        vars(one)[f"_{name}"] = data, start, frame.height
        start += frame.height


@lru_cache(UNPACKED)
def _unpack(data: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(zlib.decompress(data)), use_pyarrow=False)


KEYS = ("pc", "array", "scope")
INSIDE = {"sm": ("sm",), "cluster": ("sm", "cluster"), "all": ("sm", "cluster", "rest")}
"""Row scopes that a counter of each scope sums."""

Value = int | float | None
Definitions = Mapping[str, Counter | None]
"""Heading to its definition on this device; None where the device lacks the counter."""


@dataclass(frozen=True)
class Raw(Packing):
    """The counts of one launch on one device, as formulas read them.

    `counts` has the KEYS and any further grouping columns. `facts` are the launch facts, None where
    unknown. `whole` makes every counter count the whole grid. Whatever is `left_out` of the trace
    is zero in `counts`.
    """

    packed: ClassVar[tuple[str, ...]] = ("counts",)

    counts: pl.DataFrame
    facts: Mapping[str, int | None]
    whole: bool = False
    left_out: LeftOut = field(default_factory=LeftOut)

    def knows(self, counter: Counter, unknown: frozenset[str]) -> bool:
        """Return whether a counter has a value although these columns are unknown."""
        if self.left_out.scoped and counter.scope != "all" and not self.whole:
            return False
        return unknown.isdisjoint(columns(counter.formula))


@cache
def expression(formula: str) -> pl.Expr:
    """Parse a formula into a polars expression."""
    return pl.sql_expr(formula)


@cache
def columns(formula: str) -> frozenset[str]:
    """Return the raw counters that a formula reads."""
    return frozenset(expression(formula).meta.root_names())


CODE = "code_fetched"
"""The launch fact that is added to counts of memory: what the code itself reads."""
_BULK = re.compile("^bulk_[a-z]+_")
_PREFIX = re.compile(f"^(?:{'|'.join(PREFIXES)})")


def expression_on(formula: str, present: Set[str]) -> pl.Expr | None:
    """Parse a formula for a device with these raw counters; None if it lacks one of the formula's.

    Bulk copies, which devices before 9.0 lack, count 0 there, if others of the formula get to the
    level that it counts.
    """
    absent = columns(formula) - present
    if not absent:
        return expression(formula)
    levels = {_PREFIX.sub("", name) for name in columns(formula) & present if _PREFIX.match(name)}
    if any(not _BULK.match(name) or _BULK.sub("", name) not in levels for name in absent):
        return None
    return expression(re.sub(rf"SUM\(({'|'.join(sorted(absent))})\)", "0", formula))


def totals(raw: Raw, definitions: Definitions) -> dict[str, Value]:
    """Return the value of each counter over the whole launch, by heading.

    None if the device lacks the counter, if its models lack what the formula reads
    (`expression_on`), if the trace has left out data that it needs, or if a ratio divides by zero.
    """
    return totals_of_each([raw], definitions)[0]


def totals_of_each(raws: Sequence[Raw], definitions: Definitions) -> list[dict[str, Value]]:
    """Return the `totals` of several launches, with one query for all that have equal columns."""
    require_frames()
    values: list[dict[str, Value]] = [dict.fromkeys(definitions) for _ in raws]
    groups: dict[Hashable, list[int]] = {}
    for number, raw in enumerate(raws):
        unknown = raw.left_out.anywhere(), raw.left_out.scoped
        key = raw.whole, unknown, tuple(raw.counts.columns), tuple(raw.facts)
        groups.setdefault(key, []).append(number)
    for numbers in groups.values():
        rows = _totals_of_alike([raws[n] for n in numbers], definitions)
        for number, row in zip(numbers * (len(rows) // len(numbers)), rows, strict=True):
            values[number] |= row
    return values


def _totals_of_alike(raws: Sequence[Raw], definitions: Definitions) -> list[dict[str, Value]]:
    """Evaluate the launches of one query, one scope at a time."""
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
        facts_alone = pl.col(pl.List).list.last()  # facts repeat in every row: take one
        rows += summed.drop(LAUNCH_COLUMN).with_columns(facts_alone).collect().rows(named=True)
    return rows


def by(raw: Raw, definitions: Definitions, keys: Sequence[str]) -> pl.DataFrame:
    """Return one row per group of `keys`, sorted by them, with one column per heading.

    Counters that the device lacks and whole-launch counters are columns of nulls.
    """
    require_frames()
    groups = raw.counts.select(keys).unique(maintain_order=True)
    found = {column.name: column for column in groups.get_columns()}
    counts = with_zeros(raw.counts, [CODE])  # a part of a launch does not read the code
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
        each = _expressions(formulas, {*counts.columns})
        table = _masked(raw, counts, scope)
        grouped = table.group_by(keys, maintain_order=True).agg(each).collect()
        found |= {column.name: column for column in grouped.get_columns()}
    nothing = pl.Series([None] * groups.height, dtype=pl.Int64)
    found |= {heading: nothing.alias(heading) for heading in definitions if heading not in found}
    frame = pl.DataFrame([found[name] for name in (*keys, *definitions)]).sort(keys)
    return _without_unknown(frame, definitions, keys, missing_at) if raw.left_out.at else frame


def _without_unknown(
    frame: pl.DataFrame,
    definitions: Definitions,
    keys: Sequence[str],
    missing: Mapping[tuple[object, ...], frozenset[str]] | None,
) -> pl.DataFrame:
    """Set a cell to null if its formula reads a count that is unknown for its group."""
    groups = [(missing or {}).get(key, frozenset()) for key in frame.select(keys).rows()]
    emptied = []
    for heading, counter in definitions.items():
        reads = columns(counter.formula) if counter else frozenset()
        if any(not reads.isdisjoint(group) for group in groups):
            mask = pl.Series([reads.isdisjoint(group) for group in groups])
            emptied.append(pl.when(mask).then(pl.col(heading)).alias(heading))
    return frame.with_columns(emptied)


def _expressions(formulas: Mapping[str, str], column_names: Set[str]) -> list[pl.Expr]:
    """Return the formulas that can be evaluated with `column_names`, named by heading."""
    each = {heading: expression_on(formula, column_names) for heading, formula in formulas.items()}
    return [one.alias(heading) for heading, one in each.items() if one is not None]


def _masked(raw: Raw, counts: pl.DataFrame, scope: str) -> pl.LazyFrame:
    """Set the counts to zero in rows outside a counter's scope."""
    if raw.whole or scope == "all":
        return counts.lazy()
    mask = pl.col("scope").is_in(INSIDE[scope]).cast(pl.Int64)
    numbers = [c for c, dtype in raw.counts.schema.items() if dtype == pl.Int64 and c not in KEYS]
    return counts.lazy().with_columns(pl.col(numbers) * mask)


def _with_zeros(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table, or one row of zeros if it is empty: an empty sum is 0, not unknown."""
    if table.height:
        return table
    return table.clear(1).with_columns(pl.col(pl.Int64).fill_null(0), scope=pl.lit(SCOPES[0]))
