"""Control: instructions, branches and barriers, from the paths of the warps.

Hardware: a warp issues an instruction for all its active lanes. Where a branch diverges, the warp
runs each side in turn with the other lanes masked off.

Model, per instruction of the PTX: `ptx_instructions` counts the warps that run it,
`thread_instructions` their active lanes. `instructions` leaves out instructions that an assembler
removes or folds into an operand: parameter loads, `cvta`, moves, and unconditional branches.
`branches` counts conditional or indexed branches, `branches_taken` the branches that at least one
lane took, `divergent_branches` the branches that sent lanes to two targets or more, `lanes_taken`
the lanes that took a branch. `barriers` counts block barriers, once per warp. `blocks_launched`,
`warps_launched` and `threads_launched` are counted at the kernel's first instruction.

Limits: PTX is not machine code. The assembler merges, unrolls and removes instructions and turns
short branches into predicates, so `divergent_branches` is an upper bound. A lane with a false
predicate counts in `thread_instructions`.

Source: CUPTI User's Guide DA-05679-001_v01, event table; CUDA C Programming Guide 7.5, 4.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.column import list_lengths, list_values
from ...traces.identity_cache import cached_by_identity
from ...traces.schema import Launch
from ..replay.interface.model import Bools, Ints
from ..replay.rows.lanes import count_lanes

LAUNCHED = ("warps_launched", "blocks_launched", "threads_launched")
"""Counters of the launch, which need no trace."""
COUNTERS = (
    "instructions",
    "ptx_instructions",
    "thread_instructions",
    "branches",
    "branches_taken",
    "divergent_branches",
    "lanes_taken",
    "barriers",
    *LAUNCHED,
)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The frequencies of basic blocks: integers (blocks,) for each of five counts.

    `warps` counts warps and `lanes` their active lanes. Of the block's branch, `taken_branches`
    counts warps with a lane that took it, `split` warps that diverged, and `lanes_taken` lanes that
    took it.
    """

    warps: Ints
    lanes: Ints
    taken_branches: Ints
    split: Ints
    lanes_taken: Ints

    def __add__(self, other: "Runs") -> "Runs":
        """Return the sums of both."""
        names = (field.name for field in fields(Runs))
        return Runs(*(getattr(self, name) + getattr(other, name) for name in names))


def no_runs(blocks: int) -> Runs:
    """Return zero runs for a kernel with `blocks` basic blocks."""
    return Runs(*(np.zeros(blocks, np.int64) for _ in fields(Runs)))


def sum_paths(paths: pa.RecordBatch, times: Sequence[Ints], blocks: int) -> list[Runs]:
    """Sum the paths of warps, once per element of `times`.

    Row i of `paths` (`traces.schema.PATHS`) ran `times[k][i]` times. Sums are taken in float64 by
    bincount: exact up to 2**53.
    """
    lengths = list_lengths(paths["blocks"])
    flat = {
        name: list_values(paths[name]).to_numpy()
        for name in ("blocks", "active", "not_taken", "targets", "repeat")
    }
    branch_masks = np.where(flat["targets"] != 0, flat["active"] & ~flat["not_taken"], 0)
    factors: tuple[Ints | Bools, ...] = (
        np.ones(len(flat["blocks"]), np.int64),
        count_lanes(flat["active"]),
        branch_masks != 0,
        flat["targets"] > 1,
        count_lanes(branch_masks),
    )
    runs = []
    for time in times:
        weight = np.repeat(time, lengths) * flat["repeat"]
        sums = (np.bincount(flat["blocks"], weight * factor, blocks) for factor in factors)
        runs.append(Runs(*(total.astype(np.int64) for total in sums)))
    return runs


def count_control(instructions: pa.Table, runs: Runs) -> Mapping[str, Ints]:
    """Return each counter by pc, (pcs,); `count_launched` has those of the launch."""
    free, conditional, is_barrier, block = _roles(instructions)
    warps = runs.warps[block]
    return {
        "instructions": warps * ~free,
        "ptx_instructions": warps,
        "thread_instructions": runs.lanes[block],
        "branches": warps * conditional,
        "branches_taken": runs.taken_branches[block] * conditional,
        "divergent_branches": runs.split[block] * conditional,
        "lanes_taken": runs.lanes_taken[block] * conditional,
        "barriers": warps * is_barrier,
    }


@cached_by_identity
def _roles(instructions: pa.Table) -> tuple[Bools, Bools, Bools, Ints]:
    """Return per pc whether it is free, a conditional branch, a barrier; and its basic block."""
    free = np.array(instructions["class"].to_pylist(), object) == "free"
    branch = np.array(instructions["operation"].to_pylist(), object) == "branch"
    is_barrier = np.array([each is not None for each in instructions["barrier"].to_pylist()], bool)
    return free, branch & ~free, is_barrier, instructions["block"].to_numpy()


def count_launched(launch: Launch, blocks: int) -> Mapping[str, Ints]:
    """Return the launch counters of `blocks` thread blocks, (1,) at the first pc."""
    return {
        "warps_launched": np.array([blocks * launch.warps]),
        "blocks_launched": np.array([blocks]),
        "threads_launched": np.array([blocks * launch.threads]),
    }
