"""Paths of a trace: the basic blocks that warps ran, expanded into instructions."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...models.replay.interface.model import Ints
from ...traces.column import list_lengths, list_values
from ...traces.reader import LaunchTrace

_NOTHING = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The n steps of one path: pc, active lanes, and the lanes that did not take a branch there."""

    pc: Ints
    active: Ints
    not_taken: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """The paths of a launch: path i has entries [bounds[i], bounds[i + 1]) of each of PATHS'
    `columns`. `first` (blocks + 1,) is the first pc of each basic block.
    """

    columns: Mapping[str, Ints]
    bounds: Ints
    first: Ints

    @property
    def lengths(self) -> Ints:
        """Return the number of steps of each path, (paths,)."""
        size = np.diff(self.first)[self.columns["blocks"]] * self.columns["repeat"]
        total = np.concatenate([[0], np.cumsum(size)])
        lengths: Ints = np.diff(total[self.bounds])
        return lengths

    def steps(self, path: int) -> Steps:
        """Return the steps of one path."""
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
    """Read the named columns of all batches of a table."""
    parts = list(batches)
    return {
        name: np.concatenate([np.empty(0, np.uint8), *(b[name].to_numpy() for b in parts)])
        if not parts
        else np.concatenate([batch[name].to_numpy() for batch in parts])
        for name in names
    }


Split = tuple[int, int]
"""Active lanes, and those of them that took the branch: masks of 32 bits."""


def find_splits(trace: LaunchTrace) -> Mapping[int, Counter[Split]]:
    """Count each split of a warp, by the basic block that the branch ends."""
    times = path_times(trace)
    paths = read_paths(trace)
    flat = paths.columns
    weight = flat["repeat"] * np.repeat(times, np.diff(paths.bounds))
    splits: dict[int, Counter[Split]] = {}
    for entry in np.flatnonzero((flat["targets"] > 1) & (weight > 0)).tolist():
        block, active = int(flat["blocks"][entry]), int(flat["active"][entry])
        branch_mask = active & ~int(flat["not_taken"][entry])
        splits.setdefault(block, Counter())[active, branch_mask] += int(weight[entry])
    return splits


def path_times(trace: LaunchTrace) -> npt.NDArray[np.int64]:
    """Return the number of control rows per path."""
    times = np.zeros(trace.count("paths"), np.int64)
    for batch in trace.control_batches():
        times += np.bincount(batch["path"].to_numpy(), minlength=len(times))
    return times
