"""The control flow of a kernel as the scheduler reads it."""

from ....base.dataclass import dataclass
from .schedule import Schedule


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """How the basic blocks of a kernel end, and where lanes go from there.

    `schedule` has the tables by basic block in its fields, `most_sides` is the most sides of a
    block. The kernel begins at block `entry` and ends at `exit`. `last` is the pc of the last
    instruction of each block, `successors` its successors; `waiting` are the blocks of spin loops.
    It is made once per kernel, and shared by all its waves.
    """

    schedule: Schedule
    most_sides: int
    entry: int
    exit: int
    last: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    waiting: frozenset[int]
