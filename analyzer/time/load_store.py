"""The work of an SM's load-store unit and of its address unit (ADU) for a launch.

The load-store unit takes accesses, those that no lane takes part in among them, shuffles, and reads
of what differs from lane to lane. The ADU takes loads of constants, once for each address, block
barriers, and reads of what a block's lanes have in common; an instruction keeps it for two cycles.

Shared memory has passes without data: one for each shuffle, read and access without a lane, and one
when a block's warps meet at a barrier. Source: tests/validate/programs/third_wavefronts.csv, and
tests/validate/time/h100_units.csv.
"""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa

from ...lazy_dataclass import dataclass
from ...models.replay.seam import ACCESSES
from ...traces.table.remembered import rows_of

LSU = frozenset({
    *(0x180, 0x181, 0x183, 0x184, 0x185, 0x186, 0x187, 0x188, 0x189, 0x18A, 0x18B, 0x18C, 0x18D),
    *(0x18E, 0x1A3, 0x1A6, 0x1A8, 0x1A9, 0x1AE, 0x03B),
})  # fmt: skip
"""LD, LDG, LDL, LDS, ST, STG, STL, STS, SHFL, ATOM, ATOMS; RED, ATOMG, LDGSTS, LDSM."""
ADU = frozenset({0x182, 0x1C3, 0x11D, 0x119})
"""LDC, S2UR, BAR, S2R: those S2R that read which lane it is are the load-store unit's."""
ADU_CYCLES = 2
LANE = re.compile(r"%(?:tid\.[xyz]|laneid|lanemask_\w+)")
"""What differs from lane to lane."""
REQUESTS = tuple(
    f"{space}_{access}_requests"
    for space in ("global", "shared", "local")
    for access in ACCESSES[space]
)


@dataclass(frozen=True, slots=True)
class LoadStore:
    """Instructions of the load-store unit, passes of shared memory without data, and cycles of the
    ADU; of all SMs together."""

    instructions: float
    without_data: float
    adu_cycles: float


def load_store(
    sums: Mapping[int, Mapping[str, int]],
    instructions: pa.Table,
    warps: int,
    issued: Mapping[int, float],
) -> LoadStore:
    """Count them for sums of raw counts by pc; blocks have `warps` warps.

    `issued` are machine instructions by operation for one of the PTX; without them, as the PTX is.
    """
    memory = shuffles = whole = barriers = asked = replays = constants = 0
    of_lane, ran = dict[str, int](), dict[int, int]()
    for row in rows_of(instructions, "pc", "block", "class", "opcode", "text", "barrier"):
        for name in LANE.findall(row["text"]):  # they have no counts of their own
            of_lane.setdefault(name, row["block"])
        counted = sums.get(row["pc"])
        if not counted:
            continue
        many = ran[row["block"]] = counted["instructions"]
        whole += many * (row["class"] != "free")
        memory += many * (row["class"] == "memory")
        shuffles += many * (row["opcode"] == "shfl")
        barriers += many * (row["barrier"] is not None)
        asked += sum(counted.get(name) or 0 for name in REQUESTS)
        constants += counted.get("const_load_requests") or 0
        replays += max(0, _of(counted, "const_load_passes") - _of(counted, "const_load_requests"))
    reads = sum(ran.get(block, 0) for block in of_lane.values())
    moves = whole * _sum(issued, LSU) if issued else memory + shuffles - constants
    uniform = whole * _sum(issued, ADU) - reads if issued else constants + barriers
    idle = max(0.0, moves - asked) + reads + barriers / max(1, warps)
    return LoadStore(moves + reads, idle, ADU_CYCLES * (max(0.0, uniform) + replays))


def _of(counted: Mapping[str, int], name: str) -> int:
    return counted.get(name) or 0


def _sum(mix: Mapping[int, float], operations: Sequence[int] | frozenset[int]) -> float:
    return sum(mix.get(operation, 0.0) for operation in operations)
