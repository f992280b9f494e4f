"""The control flow of a kernel as an instruction set describes it and the scheduler reads it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from .schedule import Schedule


@dataclass(frozen=True, slots=True)
class BlockFlow:
    """The end of a basic block of `length` instructions, the last one at pc `last`.

    `ending` says how it ends (schedule.py), `target` where lanes go that take its branch, `other`
    where the others go; `has_branch` whether the trace has a branch there. `rank` is the order in
    which blocks run, the lowest first, `join` the block where its lanes reconverge (-1: nowhere
    before those of the entry that runs it do). `leaving` is
    the successor through which lanes leave a region that others stay in (-1: neither does), and
    `outer_joins` are the blocks where these wait for one another. `sides` are the blocks that lanes
    of a call or a switch enter, each with the end of that function (of a switch -1, but the join
    where lanes that leave by this side meet others).
    """

    ending: int
    target: int
    other: int
    has_branch: bool
    length: int
    last: int
    rank: int
    join: int
    leaving: int = -1
    outer_joins: tuple[int, ...] = ()
    sides: tuple[tuple[int, int], ...] = ()
    successors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """How the basic blocks of a kernel end, and where lanes go from there.

    `schedule` has the tables by basic block in its fields, `most_sides` is the most sides of a
    block. The kernel begins at block `entry` and ends at `exit`, a number behind those of `blocks`;
    `waiting` are the blocks of spin loops; at `meeting_blocks` lanes always wait for those still to
    come. It is made once per kernel, and shared by all its waves.
    """

    schedule: Schedule
    most_sides: int
    blocks: tuple[BlockFlow, ...]
    entry: int
    exit: int
    waiting: frozenset[int]
    meeting_blocks: frozenset[int]


def flow_of(
    blocks: Sequence[BlockFlow], entry: int, exit_: int, ends: int = 1,
    waiting: frozenset[int] = frozenset(), meeting_blocks: frozenset[int] = frozenset(),
    fewer_first: bool = False,
) -> ControlFlow:  # fmt: skip
    """Return the control flow of some basic blocks; the numbers of the `ends` of functions follow
    theirs. `fewer_first` says whether the smaller side of a branch runs first.
    """
    m, count = Schedule(), len(blocks)
    m.first_end = count
    m.codes = np.zeros(count, np.int64)
    m.endings = _column([block.ending for block in blocks])
    m.targets = _column([block.target for block in blocks])
    m.others = _column([block.other for block in blocks])
    m.branches = _column([block.has_branch for block in blocks])
    m.lengths = _column([block.length for block in blocks])
    m.joins = _column([block.join for block in blocks])
    m.leaving = _column([block.leaving for block in blocks])
    m.fewer_first = int(fewer_first)
    m.first_outer_join = np.cumsum([0, *(len(b.outer_joins) for b in blocks)]).astype(np.int32)
    m.outer_joins = _column([join for block in blocks for join in block.outer_joins])
    m.first_side = np.cumsum([0, *(len(b.sides) for b in blocks)]).astype(np.int32)
    m.side_entry = _column([side_entry for block in blocks for side_entry, _ in block.sides])
    m.side_exit = _column([side_exit for block in blocks for _, side_exit in block.sides])
    most_sides = max(len(block.sides) for block in blocks)
    m.spare = max(most_sides, 2) + max(len(block.outer_joins) for block in blocks) + 1
    m.ranks = _column([*(block.rank for block in blocks), *[0] * ends])
    m.may_wait = int(bool(waiting))
    m.waits = np.isin(np.arange(count + ends), list(waiting)).view(np.uint8)
    return ControlFlow(m, most_sides, tuple(blocks), entry, exit_, waiting, meeting_blocks)


def _column(values: Sequence[int]) -> NDArray[np.int32]:
    return np.array(values, np.int32)
