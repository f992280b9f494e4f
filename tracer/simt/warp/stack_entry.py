"""Turns: the splits of one warp go in turns while they wait for one another.

A warp's stack of splits is a tree, written down with each split before its family, those that it
waits for: they have lanes of its, and none in common. The last split of the stack runs.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..ops.lanes import Bits, Mask

READY, WAITING, DONE = 0, 1, 2
"""What a warp can be: about to run, waiting at a barrier, ended."""


class Split(NamedTuple):
    """Lanes that go on at `block` until they meet others at `join`; `called`, that come back there
    from a function."""

    block: int
    join: int
    mask: int
    called: int


class Stacks(Protocol):
    """What those who let warps wait see of their splits: the top ones, as arrays over warps."""

    warps_a_block: int
    block: NDArray[np.int32]
    mask: Bits
    state: NDArray[np.uint8]

    def go(self, warps: NDArray[np.intp], block: int) -> None:
        """Send the top splits of `warps` to `block`, and pop those that join there."""

    def pop(self, warps: NDArray[np.intp]) -> None:
        """Pop the top splits of `warps` that have joined or are empty."""

    def live(self) -> Bits:
        """Return the lanes of each warp that have not exited."""

    def ended(self) -> Mask:
        """Return which warps have ended."""

    def unite(self, warp: int) -> None:
        """Make one split of the top one and its siblings that go on at the same block."""

    def step_aside(self, warp: int, parked: int) -> bool:
        """Let another split go first that has lanes outside of `parked`, if there is one."""


def next_turn(stack: list[Split], parked: int) -> list[Split] | None:
    """Return the stack with another split last, none of whose lanes is in `parked`; None if there
    is no such split.

    At each level of the tree the last family moves before its siblings: so everyone comes last in
    time, and where splits meet stays as it was.
    """
    turned = stack
    for _ in range(2 * len(stack)):
        turned = _turn(turned)
        if turned[-1] != stack[-1] and not turned[-1].mask & parked:
            return turned
    return None


def _turn(stack: list[Split]) -> list[Split]:
    turned = list(stack)
    start, end = 0, len(turned)
    while start < end:
        last = _last_family(turned, start, end)
        turned[start:end] = turned[last:end] + turned[start:last]
        start, end = start + 1, start + end - last
    return turned


def _last_family(stack: list[Split], start: int, end: int) -> int:
    """Return where the last of the families begins that lie side by side from `start` to `end`."""
    last = start
    for place in range(start, end):
        if stack[place].mask & ~stack[last].mask:
            last = place
    return last


def part_arrived(stack: list[Split]) -> list[Split] | None:
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
            alone, rest = split._replace(mask=arrived), split._replace(mask=coming)
            return [*stack[:place], rest, *stack[place + 1 :], alone]
        coming |= split.mask
    return None


def unite(stack: list[Split]) -> list[Split]:
    """Make one of the last split and its siblings that go on at the same block."""
    *below, last = stack
    kept, above = [], _above(stack, len(below))
    for place, split in enumerate(below):
        waits = any(other.mask & split.mask for other in stack[place + 1 :])
        same = split._replace(mask=last.mask) == last
        if same and not waits and _above(stack, place) == above:
            last = last._replace(mask=last.mask | split.mask)
        else:
            kept.append(split)
    return [*kept, last]


def _above(stack: list[Split], place: int) -> int:
    """Return the place of the split that waits for the one at `place`, -1 if none does."""
    mask = stack[place].mask
    return max((k for k in range(place) if not mask & ~stack[k].mask), default=-1)


def go_alone(stack: list[Split], lanes: int, block: int, behind: int) -> list[Split]:
    """Take lanes of the last split that go another way out of all that wait for them, up to the one
    that joins `behind` both ways; unless they are there, they come last and go on at `block`.

    Splits that they leave empty, or where all others have arrived, go; but for the last one if
    nothing comes after it.
    """
    joins = (place for place, s in enumerate(stack) if s.join == behind and s.mask & lanes)
    outer = max(joins)
    waiting = [split._replace(mask=split.mask & ~lanes) for split in stack[outer:]]
    if block == behind:
        return [*stack[:outer], *waiting]
    while waiting and (not waiting[-1].mask or waiting[-1].block == waiting[-1].join):
        waiting.pop()
    return [*stack[:outer], *waiting, Split(block, behind, lanes, 0)]
