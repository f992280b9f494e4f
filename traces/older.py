"""Tables that older versions of the format held otherwise, and how their rows are said today.

The only place that knows of them: behind a `TableReader` rows have the schema of `TABLES`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from .schema import PATHS, TABLES

Renew = Callable[[pa.RecordBatch], pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Form:
    """How files hold a table: their schema, and what makes rows of today's of theirs, if any must.

    `renew` raises ValueError for rows that cannot be.
    """

    schema: pa.Schema
    renew: Renew | None = None


def form_of(table: str, version: int) -> Form:
    """Return how a trace of a format version holds a table."""
    if table == "paths" and version == 1:
        return Form(_PATHS_1, _renew_paths)
    return Form(TABLES[table])


_PLACE = PATHS.get_field_index("not_taken")

_PATHS_1 = PATHS.set(_PLACE, PATHS.field(_PLACE).with_name("taken"))
"""Version 1 kept the lanes that took a branch: 0 also where there was none."""


def _renew_paths(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn the lanes that took a branch into those that did not; what is unsound remains so."""
    lists = batch["taken"]
    lengths = lists.value_lengths()
    for name in ("active", "targets"):
        if not batch[name].value_lengths().equals(lengths):
            raise ValueError(f"`{name}` and `taken` have different lengths")
    active, taken, targets = (
        batch[name].flatten().to_numpy() for name in ("active", "taken", "targets")
    )
    values = pa.array(np.where(targets != 0, active ^ taken, taken))
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths.to_numpy())]).astype(np.int32))
    columns = batch.columns
    columns[_PLACE] = pa.ListArray.from_arrays(ends, values, type=PATHS.field(_PLACE).type)
    return pa.RecordBatch.from_arrays(columns, schema=PATHS)
