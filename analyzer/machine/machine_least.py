"""The fewest machine instructions that a launch can have issued, from its machine code.

The machine has one instruction for two of the PTX in many cases: LOP3 and IADD3 take three
operands, a product and a sum become one FFMA, and ptxas keeps one counter of several in an unrolled
loop. The executions of each PTX basic block are known. The machine instructions per execution
follow from the code: of the copies of a block, one per loop of the machine code, the one with the
fewest instructions counts.

Assumptions: a copy in a loop of the machine code has most of the remaining instructions of its
block; a smaller copy was moved out of the loop, and counts in its place only if no other is left.
No block runs more often than the loop around it: the outermost code once per warp, a loop as often
as the branch that closes it. No instruction runs more often than the PTX block to which most of its
machine block belongs.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import median_high

import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...models.replay.device.device import Device
from ...traces.identity_cache import cached_by_identity, rows_of
from ...traces.schema import Launch
from .machine_code import BRANCH, Loop, MachineCode, code_for
from .machine_pipes import FP64, NOP, XU

SINCE = (5, 0)
"""First capability with LOP3 and IADD3."""
KNOWN = "sm_90"
"""Architecture whose machine code a trace has; neighbouring architectures merge alike."""
RESERVE = 0.95
"""Safety factor: the assembler moves instructions between blocks, and drops a few that remain in
other blocks. Of 201 kernels an H200 issued less than `LeastCode.issued` for five, by 4.6 % at most
(tests/validate/counters/h200_*.json, smsp__inst_executed.sum).
"""
UNITS = ("lanes_half", "lanes_single", "lanes_double", "lanes_single_special")
MUST = {"lanes_double": FP64, "lanes_single_special": XU}
"""Operations that count as work for a unit; default: any operation."""
Operations = Counter[int]


def machine_shares(
    counts: pl.DataFrame, launch: Launch, instructions: pa.Table, device: Device
) -> Mapping[str, float]:
    """Return the shares of raw PTX counts that the machine code is sure to have.

    `counts` are those of a launch by pc. Shares are at most 1; empty where no machine code is
    known.
    """
    code = code_for(launch, KNOWN) if device.capability >= SINCE else None
    if code is None:
        return {}
    rows = rows_of(instructions, "pc", "block")
    least = _least_code(code, tuple((row["pc"], row["block"]) for row in rows))
    names = [name for name in ("instructions", *UNITS) if name in counts.columns]
    sums = {row["pc"]: row for row in counts.group_by("pc").agg(pl.col(names).sum()).to_dicts()}
    issued = least.issued({pc: row["instructions"] for pc, row in sums.items()})
    whole = sum(row["instructions"] for row in sums.values())
    shares = {"instructions": _share(RESERVE * issued, whole)}
    for name in names[1:]:
        work = sum(row[name] for pc, row in sums.items() if row[name] and least.does(pc, name))
        shares[name] = _share(work, sum(row[name] for row in sums.values()))
    return shares


def _share(part: float, whole: int) -> float:
    return min(1.0, part / whole) if whole else 1.0


@cached_by_identity
def _least_code(code: MachineCode, blocks: tuple[tuple[int, int], ...]) -> "LeastCode":
    return LeastCode(code, dict(blocks))


@dataclass(frozen=True, slots=True)
class Copies:
    """The instructions of one PTX basic block in one loop of the machine code.

    `by_pc` are the machine instructions of each pc, in `many` copies of the block. `beside` counts
    them by the PTX block to which most of their machine block belongs.
    """

    loop: int
    by_pc: Mapping[int, Operations]
    many: int
    beside: Counter[int]

    def size(self, block: int, often: Mapping[int, int]) -> float:
        """Return the instructions of all copies; those in a rarer block count in proportion."""
        own = often.get(block, 0)
        return sum(
            many * min(1.0, often.get(other, own) / own) if own else 0.0
            for other, many in self.beside.items()
        )


class LeastCode:
    """The instructions that a basic block is sure to issue; `block_of` maps a pc to its block."""

    def __init__(self, code: MachineCode, block_of: Mapping[int, int]) -> None:
        loops = _innermost(code)
        self._closing = _closing(code)
        groups = defaultdict[tuple[int, int], dict[int, Operations]](dict)
        neighbours = defaultdict[tuple[int, int], Counter[int]](Counter)
        for place, block in enumerate(code.blocks):
            schedule = code.schedule[block.start : block.end] if block.operations else ()
            instructions = [
                each for each in schedule if each.pc in block_of and each.operation != NOP
            ]
            owners = Counter(block_of[each.pc] for each in instructions)
            for each in instructions:
                key = block_of[each.pc], loops[place]
                groups[key].setdefault(each.pc, Counter())[each.operation] += 1
                neighbours[key][owners.most_common(1)[0][0]] += 1
        self._block_of = block_of
        self._copies = defaultdict[int, list[Copies]](list)
        for (owner, loop), by_pc in groups.items():
            many = median_high([min(each.values()) for each in by_pc.values()])
            self._copies[owner].append(Copies(loop, by_pc, many, neighbours[owner, loop]))

    def issued(self, ran: Mapping[int, int]) -> int:
        """Return the fewest instructions of all warps, from the issue count of each PTX pc."""
        often = defaultdict[int, int](int)
        for pc, many in ran.items():
            block = self._block_of.get(pc, -1)
            often[block] = max(often[block], many)
        total = 0.0
        for block, copies in self._copies.items():
            # The cheapest copy bounds one execution from below. The loops' iterations bound
            # how often the instructions can have run.
            once = min(each.size(block, often) / each.many for each in _whole(copies))
            most = sum(each.beside.total() * self._rounds(each.loop, often) for each in copies)
            total += min(once * often[block], most)
        return int(total)

    def does(self, pc: int, unit: str) -> bool:
        """Return whether each copy of a pc's block has an instruction of this pc for the unit."""
        operations = MUST.get(unit)
        whole = _whole(self._copies.get(self._block_of.get(pc, -1), ()))
        return bool(whole) and all(
            sum(n for op, n in group.by_pc.get(pc, Counter[int]()).items() if _fits(op, operations))
            >= group.many
            for group in whole
        )

    def _rounds(self, loop: int, often: Mapping[int, int]) -> int:
        """Return the most iterations of a loop over all warps; outside all loops, those of the
        entry.
        """
        pc = self._closing.get(loop, -1) if loop >= 0 else min(self._block_of)
        return often.get(self._block_of.get(pc, -1), max(often.values(), default=0))


def _fits(operation: int, operations: frozenset[int] | None) -> bool:
    return operations is None or operation in operations


def _whole(copies: Sequence[Copies]) -> Sequence[Copies]:
    """Return the copies with at least half as many pcs as the fullest."""
    most = max((len(group.by_pc) for group in copies), default=0)
    return [group for group in copies if 2 * len(group.by_pc) >= most]


def _innermost(code: MachineCode) -> Sequence[int]:
    """Return the first block of the innermost loop around each block, -1 outside all loops."""
    loop_starts = [-1] * len(code.blocks)

    def mark(loop: Loop) -> None:
        for inner in loop.inner:
            loop_starts[inner.first : inner.last + 1] = [inner.first] * (
                inner.last + 1 - inner.first
            )
            mark(inner)

    mark(code.outer)
    return loop_starts


def _closing(code: MachineCode) -> Mapping[int, int]:
    """Return the pc of the branch that closes each loop, by the loop's first block."""
    branch_pcs = dict[int, int]()

    def close(loop: Loop) -> None:
        for inner in loop.inner:
            last = code.schedule[code.blocks[inner.last].end - 1]
            if last.operation == BRANCH:
                branch_pcs[inner.first] = last.pc
            close(inner)

    close(code.outer)
    return branch_pcs
