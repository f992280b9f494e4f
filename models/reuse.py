"""Reuse: how many lines are touched between two uses of one, and what caches of all sizes miss.

What the hardware does: nothing here is hardware. It is what the accesses would find in caches of
one set that replace the line unused for longest, one for each of `sizes`, all in one pass: such a
cache of C lines hits exactly where fewer than C other lines were used since (Mattson, Gecsei, Slutz
and Traiger 1970).

What is modelled: `accesses`, requests cut at lines; `cold`, those of a line that its unit had never
used: in all, how many lines it works on; and `misses_N` of a cache of N bytes, for each size.
`serves`, `operators` and `accesses_of` choose which requests are looked up, as a cache's do.

What is not: sets, sectors, and stores that take no line.

Source: Mattson and others, IBM Systems Journal 9 (1970); Olken, LBL-12370 (1981), for the tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..errors import CutraceError
from .replay.native.compiled import compile_if_worth
from .replay.ordered import stack_distances as plain
from .replay.ordered.slices import cut_at_lines
from .replay.seam import Batch, Ints, Step

WORTH = 1 << 13
"""Requests from which on the compiled loop is worth its start of a tenth of a second."""


class _Stack:
    """The lines that one unit has used."""

    def __init__(self) -> None:
        self.number: dict[int, int] = {}
        self.last: Ints = np.zeros(64, np.int64)
        self.tree: Ints = np.zeros(1024, np.int64)
        self.turn = 0

    def name(self, lines: Ints) -> Ints:
        """Return lines (n,) as numbers from 0 on, in order of their first use."""
        distinct, which = np.unique(lines, return_inverse=True)
        named = [self.number.setdefault(line, len(self.number)) for line in distinct.tolist()]
        return np.array(named, np.int64)[which.reshape(-1)]

    def make_room(self, many: int) -> None:
        """Have room for so many more turns; where there is none, count turns from 1 on anew."""
        if len(self.number) > len(self.last):
            self.last = np.pad(self.last, (0, 2 * len(self.number) - len(self.last)))
        if self.turn + many < len(self.tree):
            return
        used = np.flatnonzero(self.last)
        self.last[used[np.argsort(self.last[used])]] = np.arange(1, 1 + len(used))
        self.turn = len(used)
        self.tree = np.zeros(2 * (self.turn + many), np.int64)
        turns = np.arange(1, len(self.tree))
        width = turns & -turns  # a node counts so many turns up to its own
        self.tree[1:] = np.minimum(turns, self.turn) - np.minimum(turns - width, self.turn)


@dataclass
class Reuse:
    """`line` and `sizes` are in bytes; the rest as a cache's keys."""

    line: int
    sizes: Sequence[int]
    serves: Sequence[str]
    operators: Sequence[str] = ()
    accesses_of: Sequence[str] = ("load",)

    period: ClassVar[int] = 0
    serves_units: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    _stacks: dict[int, _Stack] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse lines and sizes that there cannot be."""
        if self.line < 1 or self.line & (self.line - 1):
            raise CutraceError(f"reuse: line = {self.line}; expected a power of two")
        for size in self.sizes:
            if size < self.line or size % self.line:
                raise CutraceError(
                    f"reuse: a size of {size} bytes; expected whole lines of {self.line}"
                )

    @property
    def counters(self) -> tuple[str, ...]:
        """All requests, those of new lines, and the misses at each size."""
        return "accesses", "cold", *(f"misses_{size}" for size in self.sizes)

    def step(self, batch: Batch) -> Step:
        """Look up the requests in order."""
        compiled = compile_if_worth(plain.__name__, len(batch), WORTH)
        pieces, whose = cut_at_lines(batch, self.line, None)
        kinds = [
            kind.access in self.accesses_of
            and kind.space in self.serves
            and (kind.space != "global" or not self.operators or kind.cache in self.operators)
            for kind in batch.kinds
        ]
        asked = np.array(kinds, np.bool_)[pieces.kind]
        lines = pieces.addresses[asked, 0] // self.line
        unit = np.zeros(len(lines), np.int64) if pieces.unit is None else pieces.unit[asked]
        distances = self._measure(compiled or plain, lines, unit)

        group = whose if pieces.group is None else pieces.group
        groups = len(batch) if batch.group is None else batch.groups
        rooms = np.unique(np.array(self.sizes, np.int64) // self.line)
        past = np.searchsorted(rooms, distances, side="right")
        past[distances < 0] = len(rooms) + 1  # a new line is past all sizes
        wide = len(rooms) + 2
        table = np.bincount(group[asked] * wide + past, minlength=groups * wide)
        beyond = table.reshape(groups, wide)[:, ::-1].cumsum(axis=1)[:, ::-1]
        at = 1 + np.searchsorted(rooms, np.array(self.sizes, np.int64) // self.line)
        columns = beyond[:, 0], beyond[:, -1], *beyond[:, at].T
        return Step(dict(zip(self.counters, columns, strict=True)))

    def _measure(self, loops: Any, lines: Ints, unit: Ints) -> Ints:
        """Return the distance of each line (n,) from its last use by its unit, -1 for none."""
        distances = np.empty(len(lines), np.int64)
        order = np.argsort(unit, kind="stable")
        units, begins = np.unique(unit[order], return_index=True)
        for one, rows in zip(units.tolist(), np.split(order, begins[1:]), strict=False):
            stack = self._stacks.setdefault(one, _Stack())
            before = len(stack.number)
            numbers = stack.name(lines[rows])
            stack.make_room(len(rows))
            found = np.empty(len(rows), np.int64)
            loops.measure(numbers, stack.last, stack.tree, found, stack.turn, before)
            stack.turn += len(rows)
            distances[rows] = found
        return distances
