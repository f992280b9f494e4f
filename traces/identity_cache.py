"""Results computed from a table, kept for further use: launches of a kernel share the table."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

MOST_ENTRIES = 64
"""Answers of each function that are kept: those found last."""

First = TypeVar("First")
P = ParamSpec("P")
Result = TypeVar("Result")


def cached_by_identity(
    function: Callable[Concatenate[First, P], Result],
) -> Callable[Concatenate[First, P], Result]:
    """Return a function that answers once for each object and what else it is asked with.

    It tells its first argument by identity, which nobody changes; all others can be hashed.
    """
    cache: OrderedDict[Hashable, tuple[Any, Result]] = OrderedDict()

    def lookup(first: First, /, *arguments: P.args, **named: P.kwargs) -> Result:
        key = id(first), arguments, tuple(named.items())
        if key not in cache:
            cache[key] = (
                first,
                function(first, *arguments, **named),
            )  # held, so that no other has its id
            if len(cache) > MOST_ENTRIES:
                cache.popitem(last=False)
        return cache[key][1]

    lookup.__doc__ = function.__doc__
    return lookup


@cached_by_identity
def rows_of(table: pa.Table, *columns: str) -> Sequence[Mapping[str, Any]]:
    """The rows of some columns of a table."""
    rows: Sequence[Mapping[str, Any]] = table.select(list(columns)).to_pylist()
    return rows
