"""Barrier intervals: the number of block barriers before each access of a warp.

No warp passes a barrier of the whole block before all have arrived or exited, so the warps of a
block pass the same barriers in the same order. A warp's interval is the number of barriers that it
has passed. Accesses of two warps in the same interval are unordered.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from ....base.dataclass import dataclass
from ....traces.check_control import entry_starts
from ....traces.recorded_tables import Recorded
from ....traces.unique import sorted_unique
from ..interface.model import Bools, Ints
from ..rows.sites import broken

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace

_STEP_BITS = 32


@dataclass(frozen=True)
class Intervals:
    """The barriers of a launch; a warp is named by its index in `warps`.

    `refusal` is the reason why intervals do not order warps here, or empty.
    """

    recorded: Recorded
    refusal: str

    @cached_property
    def warps(self) -> Ints:
        """(w,): block * warps per block + warp, of all warps that ran, rising."""
        return sorted_unique(self.recorded.control["id"])

    @cached_property
    def blocks(self) -> Ints:
        """(w,): the linear index of the block of each warp."""
        return self.warps // self.recorded.launch.warps

    @cached_property
    def most(self) -> int:
        """The most barriers that any warp has passed."""
        return int((self._before + self._own).max(initial=0))

    def locate(self, block: Ints, warp: Ints) -> Ints:
        """Return the index in `warps` of the warp of each row, (n,)."""
        number = block * self.recorded.launch.warps + warp
        if len(self.warps) and self.warps[-1] == len(self.warps) - 1:
            place, is_present = number, number < len(self.warps)
        else:
            place = np.searchsorted(self.warps, number)
            is_present = np.isin(number, self.warps)
        if not is_present.all():
            raise broken(
                f"warp {warp[~is_present][0]} of block {block[~is_present][0]} ran nothing"
            )
        return place

    def count(self, place: Ints, step: Ints) -> Ints:
        """Return the number of barriers that the warps at `place` had passed at `step`, (n,).

        A barrier itself is the last instruction of the interval that it ends.
        """
        row, entry, at = self._find(place, step)
        first = self.recorded.paths["blocks first"][self._ordered["path"][row]]
        passed = self._passed[entry] - self._passed[first]
        return self._before[row] + passed + self._rounds(entry, at)

    def begin(self, place: Ints, step: Ints) -> Ints:
        """Return the step at which the interval of each row began, (n,): just after its barrier."""
        row, entry, at = self._find(place, step)
        first = self.recorded.paths["blocks first"][self._ordered["path"][row]]
        rounds = self._rounds(entry, at)
        looped = self._starts[entry] + rounds * self._sizes[entry]
        offset = np.where(rounds > 0, looped, self._closed[entry]) - self._starts[first]
        return np.where(offset > 0, self._ordered["step"][row] + offset, self._carried[row])

    def _find(self, place: Ints, step: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the row of CONTROL, the entry of its path, and the index among the entries of all
        paths.
        """
        first = self.recorded.paths["blocks first"]
        starts = self._starts
        row = np.searchsorted(self._keys, (place << _STEP_BITS) + step, side="right") - 1
        path = self._ordered["path"][row]
        at = starts[first[path]] + step - self._ordered["step"][row]
        if (row < 0).any() or (at >= starts[first[path + 1]]).any():
            raise broken("an access of a warp at a step that it did not run")
        return row, np.searchsorted(starts, at, side="right") - 1, at

    def _rounds(self, entry: Ints, at: Ints) -> Ints:
        """Return the number of barriers before `at` in the entry's own repetitions."""
        through = (at - self._starts[entry]) // self._sizes[entry]
        return through * self._ends_with_barrier[entry]

    @cached_property
    def _closed(self) -> Ints:
        """(entries + 1,): the end of the last barrier before each entry, over all paths."""
        ends = np.where(self._ends_with_barrier, self._starts[1:], 0)
        return np.asarray(np.maximum.accumulate(np.concatenate([[0], ends])), np.int64)

    @cached_property
    def _carried(self) -> Ints:
        """Per row of `_ordered`, the step at which the warp's last barrier before it ended."""
        first, path = self.recorded.paths["blocks first"], self._ordered["path"]
        offset = self._closed[first[path + 1]] - self._starts[first[path]]
        step = np.where(offset > 0, self._ordered["step"] + offset, 0)
        place = self._ordered["place"] << _STEP_BITS
        latest = np.maximum.accumulate(np.concatenate([[0], (place + step)[:-1]]))[: len(place)]
        return np.asarray(np.maximum(latest - place, 0), np.int64)

    @cached_property
    def _starts(self) -> Ints:
        return entry_starts(self.recorded)

    @cached_property
    def _sizes(self) -> Ints:
        """(entries,): the instructions of the basic block of each entry, over all paths."""
        return np.diff(self.recorded.block_first)[self.recorded.paths["blocks"]]

    @cached_property
    def _ends_with_barrier(self) -> Bools:
        return _barrier_blocks(self.recorded)[self.recorded.paths["blocks"]]

    @cached_property
    def _passed(self) -> Ints:
        """(entries + 1,): the barriers before each entry, summed over all paths in order."""
        times = self.recorded.paths["repeat"] * self._ends_with_barrier
        return np.concatenate([[0], np.cumsum(times)])

    @cached_property
    def _ordered(self) -> dict[str, Ints]:
        """CONTROL in order of warp and step, and `place`."""
        control = self.recorded.control
        order = np.argsort(control["id"], kind="stable")
        place = np.searchsorted(self.warps, control["id"][order])
        return {name: control[name][order] for name in ("step", "path")} | {"place": place}

    @cached_property
    def _keys(self) -> Ints:
        return (self._ordered["place"] << _STEP_BITS) + self._ordered["step"]

    @cached_property
    def _own(self) -> Ints:
        """Per row of `_ordered`, the barriers of its path."""
        first, path = self.recorded.paths["blocks first"], self._ordered["path"]
        return np.asarray(self._passed[first[path + 1]] - self._passed[first[path]], np.int64)

    @cached_property
    def _before(self) -> Ints:
        """Per row of `_ordered`, the barriers that its warp had passed before."""
        total = np.cumsum(self._own) - self._own
        opens = np.searchsorted(self._ordered["place"], self._ordered["place"])
        return np.asarray(total - total[opens], np.int64)


def read_intervals(trace: "LaunchTrace") -> Intervals:
    """Read the paths of the warps of a launch; raises `CutraceError` for a broken trace."""
    recorded = Recorded(trace)
    paths = recorded.paths
    if (paths["blocks"] >= len(recorded.block_first) - 1).any():
        raise broken("a path through a basic block that the kernel has not got")
    return Intervals(recorded, next(_reasons(recorded), ""))


def _barrier_blocks(recorded: Recorded) -> Bools:
    """(basic blocks,): whether the last instruction is a barrier of the block."""
    last = recorded.block_first[1:] - 1
    barriers = recorded.instructions["barrier"].to_pylist()
    return np.array([barriers[pc] is not None for pc in last], np.bool_)


def _reasons(recorded: Recorded) -> Iterator[str]:
    """Yield the reasons why barrier counts do not order the warps."""
    if not len(recorded.control["id"]):
        yield "the trace does not say what its warps ran"
        return
    ran = np.zeros(len(recorded.block_first) - 1, np.bool_)
    ran[recorded.paths["blocks"]] = True
    on = ran[recorded.of_instructions("block")]
    for row in compress(recorded.instructions.to_pylist(), on):
        place = f"{row['file']}:{row['line']}" if row["line"] else f"`{row['text']}`"
        if problem := _problem(row, recorded.launch.threads):
            yield f"{problem} at {place}"
    if _arrives_in_parts(recorded):
        yield "lanes of one warp come to a barrier one after another"


def _problem(row: dict[str, Any], threads: int) -> str:
    """Return the special property of a barrier, or an empty string."""
    if row["opcode"] == "mbarrier":
        return "warps also meet at an mbarrier"
    if row["barrier"] is None:
        return ""
    count = row["barrier_threads"]
    if row["operation"] == "arrive":
        return "warps arrive without waiting"
    if row["predicate"]:
        return "a barrier depends on a predicate"
    if row["barrier"] < 0 or count == -1:
        return "a register names the barrier or its threads"
    if count is not None and count < threads:
        return f"a barrier is for {count} of the block's {threads} threads"
    return ""


def _arrives_in_parts(recorded: Recorded) -> bool:
    """Return whether a warp reaches a barrier with lanes that were not at the previous one."""
    paths, first = recorded.paths, recorded.paths["blocks first"]
    entries = np.flatnonzero(_barrier_blocks(recorded)[paths["blocks"]])
    if not len(entries):
        return False
    path = np.searchsorted(first, entries, side="right") - 1
    mask = paths["active"][entries]
    again = np.diff(path) == 0
    inside = again & (mask[1:] & ~mask[:-1] != 0)
    opens = np.flatnonzero(np.concatenate([[True], ~again]))
    closes = np.append(opens[1:], len(path)) - 1
    low, high = (np.zeros(len(first) - 1, np.int64) for _ in range(2))
    low[path[opens]], high[path[closes]] = mask[opens], mask[closes]
    control = recorded.control
    order = np.argsort(control["id"], kind="stable")
    order = order[low[control["path"][order]] != 0]
    path_ids, same = control["path"][order], np.diff(control["id"][order]) == 0
    between = same & (low[path_ids[1:]] & ~high[path_ids[:-1]] != 0)
    used = np.isin(path[1:][inside], control["path"])
    return bool(used.any() or between.any())
