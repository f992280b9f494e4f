"""Splits: which lanes went which way at the branches of a launch, and how often."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ...traces.reader import LaunchTrace
from .paths import read_paths

Split = tuple[int, int]
"""The lanes that were on, and those of them that took the branch: masks of 32 bits."""


def find_splits(trace: LaunchTrace) -> Mapping[int, Counter[Split]]:
    """How often each split of a warp was seen, by the basic block that the branch ends."""
    times = path_times(trace)
    paths = read_paths(trace)
    flat = paths.columns
    weight = flat["repeat"] * np.repeat(times, np.diff(paths.bounds))
    found: dict[int, Counter[Split]] = {}
    for entry in np.flatnonzero((flat["targets"] > 1) & (weight > 0)).tolist():
        block, active = int(flat["blocks"][entry]), int(flat["active"][entry])
        taken = active & ~int(flat["not_taken"][entry])
        found.setdefault(block, Counter())[active, taken] += int(weight[entry])
    return found


def path_times(trace: LaunchTrace) -> npt.NDArray[np.int64]:
    """How many rows of control have each path."""
    times = np.zeros(trace.count("paths"), np.int64)
    for batch in trace.control_batches():
        times += np.bincount(batch["path"].to_numpy(), minlength=len(times))
    return times
