"""SIMT-stack entries, and the reordering of one warp's stack for forward progress.

Diverged entries of one warp may wait for one another (a spin lock). They take turns: the stack is
rotated so that another entry is on top. The stack is a tree in preorder: each entry precedes its
family, the entries that it waits for, with disjoint subsets of its mask. The last entry runs.

    lanes 1111 split into 0011 and 1100; 1100 split again into 0100 and 1000:

    place      0: P 1111    1: A 0011    2: B 1100    3: C 0100    4: D 1000  (runs)
    tree       P > (A, B > (C, D))       families of P: [A], [B C D]
    rotations  P A B C D -> P B D C A -> P A B D C -> P B C D A -> P A B C D

All functions here are pure: they take a stack and return a new one.
"""

from collections.abc import Collection
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..ops.lanes import Bits, Mask


class StackEntry(NamedTuple):
    """A SIMT-stack entry: next block, reconvergence block, active mask, and whether a call pushed
    it.
    """

    block: int
    join: int
    mask: int
    called: int


class WarpStacks(Protocol):
    """The part of the SIMT stacks that barriers and warp synchronization use, as arrays over
    warps.
    """

    warps_a_block: int
    block: NDArray[np.int32]
    mask: Bits
    state: NDArray[np.uint8]
    parked: Bits
    meeting: Bits

    def jump(self, warps: NDArray[np.intp], block: int) -> None:
        """Move the top entries of `warps` to `block`, and pop those that reconverge there."""

    def pop(self, warps: NDArray[np.intp]) -> None:
        """Pop the top entries of `warps` that have reconverged or are empty."""

    def live(self) -> Bits:
        """Return the live lanes of each warp."""

    def ended(self) -> Mask:
        """Return which warps have exited."""

    def merge_siblings(self, warp: int, waiting: int) -> None:
        """Merge the top entry with its siblings at the same block, none of whose lanes may be in
        `waiting`.
        """

    def yield_to_other(self, warp: int, parked: int) -> bool:
        """Put another entry on top that has no lane in `parked`; False if there is none."""


def rotate_stack(stack: list[StackEntry], parked: int) -> list[StackEntry] | None:
    """Return the stack rotated to another entry with no lane in `parked`; None if there is none.

    At each level of the tree the last family moves before its siblings. So every entry gets on top
    in time, and parents, hence reconvergence points, stay the same.
    """
    turned = stack
    # A bound that gives every entry its turn on top; rotations back to the same entry are skipped.
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
    """Return where the last of the adjacent families from `start` to `end` begins."""
    last = start
    for place in range(start, end):
        # An entry with lanes outside of the family's first entry is not its descendant.
        if stack[place].mask & ~stack[last].mask:
            last = place
    return last


def run_ahead(
    stack: list[StackEntry], meeting_blocks: Collection[int] = ()
) -> list[StackEntry] | None:
    """Split off lanes that already reached the reconvergence point of the last entry or an
    ancestor.

    They run ahead as the last entry; None if no lane has arrived, or only at `meeting_blocks`.
    Lanes still to come reconverge there as before, and all reconverge at the parent's join block.
    """
    coming = 0
    for place in reversed(range(len(stack))):
        split = stack[place]
        # Lanes of this entry that no entry above it has: they have come to the entry's block.
        arrived = split.mask & ~coming
        is_above = coming and not coming & ~split.mask
        if is_above and arrived and split.block != split.join and split.block not in meeting_blocks:
            solo_split, remainder = split._replace(mask=arrived), split._replace(mask=coming)
            return [*stack[:place], remainder, *stack[place + 1 :], solo_split]
        coming |= split.mask
    return None


def merge_siblings(stack: list[StackEntry], waiting: int) -> list[StackEntry]:
    """Merge the last entry with its siblings at the same block that have no lane in `waiting`."""
    *below, last = stack
    splits, above = [], _parent_of(stack, len(below))
    for place, split in enumerate(below):
        # An entry with descendants still waits for lanes: it cannot merge yet.
        is_pending = any(other.mask & split.mask for other in stack[place + 1 :])
        same = split._replace(mask=last.mask) == last and not split.mask & waiting
        if same and not is_pending and _parent_of(stack, place) == above:
            last = last._replace(mask=last.mask | split.mask)
        else:
            splits.append(split)
    return [*splits, last]


def _parent_of(stack: list[StackEntry], place: int) -> int:
    """Return the place of the parent of the entry at `place`, -1 if it has none."""
    mask = stack[place].mask
    return max((k for k in range(place) if not mask & ~stack[k].mask), default=-1)
