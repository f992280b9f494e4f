"""Turns: the splits of one warp go in turns while they wait for one another.

A warp's stack of splits is a tree, written down with each split before its family, those that it
waits for: they have lanes of its, and none in common. The last split of the stack runs.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..ops.lanes import Bits, Mask

READY, WAITING, EXITED = 0, 1, 2
"""What a warp can be: about to run, waiting at a barrier, ended."""


class StackEntry(NamedTuple):
    """Lanes that go on at `block` until they meet others at `join`; `called`, that come back there
    from a function."""

    block: int
    join: int
    mask: int
    called: int


class WarpStacks(Protocol):
    """What those who let warps wait see of their splits: the top ones, as arrays over warps."""

    warps_a_block: int
    block: NDArray[np.int32]
    mask: Bits
    state: NDArray[np.uint8]

    def jump(self, warps: NDArray[np.intp], block: int) -> None:
        """Send the top splits of `warps` to `block`, and pop those that join there."""

    def pop(self, warps: NDArray[np.intp]) -> None:
        """Pop the top splits of `warps` that have joined or are empty."""

    def live(self) -> Bits:
        """Return the lanes of each warp that have not exited."""

    def ended(self) -> Mask:
        """Return which warps have ended."""

    def merge_siblings(self, warp: int) -> None:
        """Make one split of the top one and its siblings that go on at the same block."""

    def yield_to_other(self, warp: int, parked: int) -> bool:
        """Let another split go first that has lanes outside of `parked`, if there is one."""


def rotate_stack(stack: list[StackEntry], parked: int) -> list[StackEntry] | None:
    """Return the stack with another split last, none of whose lanes is in `parked`; None if there
    is no such split.

    At each level of the tree the last family moves before its siblings: so everyone comes last in
    time, and where splits meet stays as it was.
    """
    turned = stack
    for _ in range(2 * len(stack)):
        turned = _rotate(turned)
        if turned[-1] != stack[-1] and not turned[-1].mask & parked:
            return turned
    return None


def _rotate(stack: list[StackEntry]) -> list[StackEntry]:
    turned = list(stack)
    start, end = 0, len(turned)
    while start < end:
        last = _last_family(turned, start, end)
        turned[start:end] = turned[last:end] + turned[start:last]
        start, end = start + 1, start + end - last
    return turned


def _last_family(stack: list[StackEntry], start: int, end: int) -> int:
    """Return where the last of the families begins that lie side by side from `start` to `end`."""
    last = start
    for place in range(start, end):
        if stack[place].mask & ~stack[last].mask:
            last = place
    return last


def run_ahead(stack: list[StackEntry]) -> list[StackEntry] | None:
    """Let lanes go on alone that have arrived where they are to meet the last split, or others of
    which it is one; None if none have.

    Those still to come meet there as before, and all meet where all were to go on to.
    """
    coming = 0
    for place in reversed(range(len(stack))):
        split = stack[place]
        arrived = split.mask & ~coming
        is_above = coming and not coming & ~split.mask
        if is_above and arrived and split.block != split.join:
            solo_split, remainder = split._replace(mask=arrived), split._replace(mask=coming)
            return [*stack[:place], remainder, *stack[place + 1 :], solo_split]
        coming |= split.mask
    return None


def merge_siblings(stack: list[StackEntry]) -> list[StackEntry]:
    """Make one of the last split and its siblings that go on at the same block."""
    *below, last = stack
    splits, above = [], _parent_of(stack, len(below))
    for place, split in enumerate(below):
        is_pending = any(other.mask & split.mask for other in stack[place + 1 :])
        same = split._replace(mask=last.mask) == last
        if same and not is_pending and _parent_of(stack, place) == above:
            last = last._replace(mask=last.mask | split.mask)
        else:
            splits.append(split)
    return [*splits, last]


def _parent_of(stack: list[StackEntry], place: int) -> int:
    """Return the place of the split that waits for the one at `place`, -1 if none does."""
    mask = stack[place].mask
    return max((k for k in range(place) if not mask & ~stack[k].mask), default=-1)


def split_off(stack: list[StackEntry], lanes: int, block: int, join_block: int) -> list[StackEntry]:
    """Take lanes of the last split that go another way out of all that wait for them, up to the one
    that joins `join_block` both ways; unless they are there, they come last and go on at `block`.

    Splits that they leave empty, or where all others have arrived, go; but for the last one if
    nothing comes after it.
    """
    joins = (place for place, s in enumerate(stack) if s.join == join_block and s.mask & lanes)
    outer = max(joins)
    waiting = [split._replace(mask=split.mask & ~lanes) for split in stack[outer:]]
    if block == join_block:
        return [*stack[:outer], *waiting]
    while waiting and (not waiting[-1].mask or waiting[-1].block == waiting[-1].join):
        waiting.pop()
    return [*stack[:outer], *waiting, StackEntry(block, join_block, lanes, 0)]
