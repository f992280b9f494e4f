"""Memoize functions of a table by its identity: launches of a kernel share one table object."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa

MOST_ENTRIES = 64
"""Cached results per function: the most recent ones."""

First = TypeVar("First")
P = ParamSpec("P")
Result = TypeVar("Result")


def cached_by_identity(
    function: Callable[Concatenate[First, P], Result],
) -> Callable[Concatenate[First, P], Result]:
    """Return a memoized function, keyed by the identity of its first argument and by the others.

    The first argument must not be mutated; all others must be hashable.
    """
    cache: OrderedDict[Hashable, tuple[Any, Result]] = OrderedDict()

    def lookup(first: First, /, *arguments: P.args, **named: P.kwargs) -> Result:
        key = id(first), arguments, tuple(named.items())
        if key not in cache:
            cache[key] = (
                first,
                function(first, *arguments, **named),
            )  # held alive, so its id is not reused
            if len(cache) > MOST_ENTRIES:
                cache.popitem(last=False)
        return cache[key][1]

    lookup.__doc__ = function.__doc__
    return lookup


@cached_by_identity
def rows_of(table: pa.Table, *columns: str) -> Sequence[Mapping[str, Any]]:
    """Return the rows of some columns of a table."""
    rows: Sequence[Mapping[str, Any]] = table.select(list(columns)).to_pylist()
    return rows
