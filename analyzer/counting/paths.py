"""Paths of a trace: the basic blocks that warps ran, and their instructions one by one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...lazy_dataclass import dataclass
from ...models.replay.seam import Ints
from ...traces.reader import LaunchTrace
from ...traces.table.nested import list_lengths, list_values

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The n steps of one path: pc, the lanes active, and those that did not take a branch there."""

    pc: Ints
    active: Ints
    not_taken: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The paths of a launch: path i has the entries from `bounds[i]` to before `bounds[i + 1]` of
    each of PATHS' `columns`. `first` (blocks + 1,) is the first pc of each basic block.
    """

    columns: Mapping[str, Ints]
    bounds: Ints
    first: Ints

    @property
    def lengths(self) -> Ints:
        """How many steps each path has, (paths,)."""
        size = np.diff(self.first)[self.columns["blocks"]] * self.columns["repeat"]
        total = np.concatenate([[0], np.cumsum(size)])
        lengths: Ints = np.diff(total[self.bounds])
        return lengths

    def steps(self, path: int) -> Steps:
        """Return what one path ran."""
        entries = slice(int(self.bounds[path]), int(self.bounds[path + 1]))
        block, active, off, repeat = (
            self.columns[name][entries] for name in ("blocks", "active", "not_taken", "repeat")
        )
        block, active, off = (np.repeat(column, repeat) for column in (block, active, off))
        size = self.first[block + 1] - self.first[block]
        start = np.cumsum(size) - size
        place = np.arange(int(size.sum())) - np.repeat(start, size)
        last = place == np.repeat(size, size) - 1
        return Steps(
            np.repeat(self.first[block], size) + place,
            np.repeat(active, size),
            np.where(last, np.repeat(off, size), 0),
        )


def read_paths(trace: LaunchTrace) -> Paths:
    """Read all paths of a launch."""
    table = trace.paths()
    lists = {name: table[name].combine_chunks() for name in table.schema.names}
    columns = {
        name: list_values(each).to_numpy().astype(np.int64) if table.num_rows else _NOTHING
        for name, each in lists.items()
    }
    lengths = list_lengths(lists["blocks"]) if table.num_rows else _NOTHING
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    of = trace.instructions()["block"].to_numpy()
    first = np.searchsorted(of, np.arange(int(of.max(initial=0)) + 2))
    return Paths(columns, bounds.astype(np.int64), first.astype(np.int64))


def read_columns(batches: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Read some columns of all batches of a table."""
    found = list(batches)
    return {
        name: np.concatenate([np.empty(0, np.uint8), *(b[name].to_numpy() for b in found)])
        if not found
        else np.concatenate([batch[name].to_numpy() for batch in found])
        for name in names
    }
