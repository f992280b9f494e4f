"""Barriers of thread blocks: who waits, and when the waiting ends (PTX ISA 9.7.13.1, bar).

A barrier waits for lanes, not only warps: where a warp is split, the part that arrives first steps
aside until its sibling has arrived too. Lanes that have exited count as arrived.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import KernelFault
from .array import LANES, Bits
from .fault import source_line

if TYPE_CHECKING:
    from .split import SplitStacks
    from .wave import Wave

READY, WAITING, DONE = 0, 1, 2
"""What a warp can be: about to run, waiting at a barrier, ended."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """What `bar.red` gives every lane: `popc`, `and` or `or` of the lanes' votes, in a slot."""

    slot: int
    operation: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """Which barrier warps have come to, for how many threads (0: the whole block), the block that
    they go to afterwards, the instruction, and whether they wait there (`bar.arrive` does not)."""

    number: int
    threads: int
    after: int
    pc: int
    waits: bool = True
    reduction: Reduction | None = None


class Barriers:
    """Arrays over the W warps of a wave: what each waits at, which of its lanes have arrived and
    which voted yes; and by (thread block, number) the threads that arrived without waiting."""

    def __init__(self, stacks: "SplitStacks") -> None:
        warps = len(stacks.state)
        self._stacks = stacks
        self._at: dict[int, Arrival] = {}
        self._number: NDArray[np.int32] = np.full(warps, -1, dtype=np.int32)
        self._threads: NDArray[np.int32] = np.zeros(warps, dtype=np.int32)
        self._passed: Counter[tuple[int, int]] = Counter()
        self.parked: Bits = np.zeros(warps, dtype=np.uint32)
        self.votes: Bits = np.zeros(warps, dtype=np.uint32)
        self.outcomes: list[tuple[int, int, int]] = []
        """What votes gave, to be put into registers: warp, slot, value."""

    def arrive(self, warps: NDArray[np.intp], arrival: Arrival) -> None:
        """Let the top splits of `warps` wait, or only say that they were there, and go on."""
        stacks = self._stacks
        live = stacks.live()
        partial = stacks.mask[warps] != live[warps]
        plain = arrival.waits and not arrival.threads and arrival.reduction is None
        if plain and len(warps) == len(stacks.state) and not partial.any():
            stacks.go(warps, arrival.after)
            return
        if not arrival.waits:
            for block in warps // stacks.warps_a_block:
                self._passed[int(block), arrival.number] += LANES
            stacks.go(warps, arrival.after)
            self.release(warps)
            return
        stacks.block[warps] = arrival.after
        aside = [w for w in warps[partial] if self._step_aside(int(w), int(live[w]))]
        warps = np.setdiff1d(warps, aside, assume_unique=True) if aside else warps
        stacks.state[warps] = WAITING
        self._number[warps], self._threads[warps] = arrival.number, arrival.threads
        self._at.update(dict.fromkeys(warps.tolist(), arrival))
        self.release(warps)

    def _step_aside(self, warp: int, live: int) -> bool:
        """Let the sibling of a split that waits run on to the barrier, if there is one."""
        stacks = self._stacks
        self.parked[warp] |= stacks.mask[warp]
        sibling = stacks.sibling(warp)
        if sibling is None:
            return False
        if int(self.parked[warp]) == live:
            stacks.join_siblings(warp)
            return False
        if sibling & int(self.parked[warp]):
            return False
        stacks.swap_siblings(warp)
        return True

    def release(self, warps: NDArray[np.intp]) -> None:
        """Let the blocks of `warps` go on whose barriers are complete; ended warps count."""
        stacks = self._stacks
        a_block = stacks.warps_a_block
        blocks = np.unique(warps // a_block)
        state = stacks.state.reshape(-1, a_block)[blocks]
        waiting = state == WAITING
        if not waiting.any():
            return
        numbers = self._number.reshape(-1, a_block)[blocks]
        threads = self._threads.reshape(-1, a_block)[blocks]
        ended = (state == DONE).sum(axis=1)
        for number in np.unique(numbers[waiting]).tolist():
            here = waiting & (numbers == number)
            arrived = here.sum(axis=1)
            passed = np.array([self._passed[block, number] for block in blocks.tolist()])
            needed = np.where(here, threads, 0).max(axis=1)
            enough = np.where(
                needed > 0, LANES * arrived + passed >= needed, arrived + ended == a_block
            )
            complete = (arrived > 0) & enough
            for block in blocks[complete].tolist():
                self._passed.pop((block, number), None)
            members = blocks[complete, None] * a_block + np.arange(a_block)
            self._free(members[here[complete]])

    def _free(self, warps: NDArray[np.intp]) -> None:
        stacks = self._stacks
        stacks.state[warps] = READY
        for warp in warps.tolist():
            arrival = self._at.pop(warp)
            if arrival.reduction is not None:
                self._reduce(warps, warp, arrival.reduction)
        self.parked[warps] = 0
        self.votes[warps] = 0
        stacks.pop(warps)

    def _reduce(self, freed: NDArray[np.intp], warp: int, reduction: Reduction) -> None:
        """Work out what the warps of a block voted, for one of them."""
        a_block = self._stacks.warps_a_block
        block = freed[freed // a_block == warp // a_block]
        votes, live = self.votes[block], self._stacks.live()[block]
        outcome = {
            "popc": int(np.bitwise_count(votes).sum()),
            "and": int((votes == live).all()),
            "or": int(votes.any()),
        }[reduction.operation]
        self.outcomes.append((warp, reduction.slot, outcome))

    def require_done(self, wave: "Wave") -> None:
        """Raise KernelFault if warps still wait at barriers that cannot complete."""
        stuck = np.flatnonzero(self._stacks.state == WAITING)
        if not stuck.size:
            return
        owners = wave.blocks_of(stuck)
        stuck = stuck[owners == owners[0]]
        kernel = wave.program.kernel
        places = []
        for number, pc in sorted({(self._at[w].number, self._at[w].pc) for w in stuck.tolist()}):
            there = [w for w in stuck if (self._at[w].number, self._at[w].pc) == (number, pc)]
            listed = ", ".join(str(w % wave.warps_a_block) for w in there[:8])
            more = f" and {len(there) - 8} more" if len(there) > 8 else ""
            where = source_line(kernel, pc)
            places.append(f"warp {listed}{more} waits at barrier {number} ({where})")
        raise KernelFault(
            f"kernel `{wave.program.name}` cannot go on: in block {int(owners[0])} "
            f"{', '.join(places)}, and nobody is left to come"
        )
