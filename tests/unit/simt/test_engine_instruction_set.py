"""The core runs an instruction set other than PTX, with a uniform register and a predicate."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cutrace.base.errors import CutraceError, KernelFault
from cutrace.tracer.simt.access.access import Access, write
from cutrace.tracer.simt.kernel.launch import Launch
from cutrace.tracer.simt.memory.memory import Memory
from cutrace.tracer.simt.ops.lanes import Array
from cutrace.tracer.simt.run import blocks_a_wave, run
from cutrace.tracer.simt.warp.control_flow import BlockFlow, ControlFlow, flow_of
from cutrace.tracer.simt.warp.instruction_set import MachineCode, Traits
from cutrace.tracer.simt.warp.program import BlockPlan, Group, Program, Step
from cutrace.tracer.simt.warp.schedule import BRANCH, EXIT, JUMP
from cutrace.traces.schema import Space

THREAD, VALUE, UNIFORM, PREDICATE, PLACE = range(5)
WARPS = 2


def compare(group: Group) -> None:
    """P = thread < 7"""
    group.frame[PREDICATE] = group.frame[THREAD] < np.uint32(7)


def add(group: Group) -> None:
    """R1 = R1 + UR"""
    group.frame[VALUE] = group.frame[VALUE] + group.frame[UNIFORM]


def branch(group: Group) -> None:
    """@P BRA 1"""
    group.wave.stacks.set_taken(group.pack(group.frame[PREDICATE]))


class Code:
    """Blocks: 0 compares and branches, 1 adds for some lanes, 2 stores for all and ends."""

    key: Hashable = "code"
    traits = Traits(instructions=5, has_loops=False, reads_place=False)

    def __init__(self, memory: Memory, place: int) -> None:
        launch = Launch((1, 1, 1), (32 * WARPS, 1, 1), 0, (), print)
        self.program = Program("own", launch, memory, 0, 0, (), "line {}".format, "STG {}".format)
        self._place = place
        self.flow: ControlFlow = flow_of(
            [
                BlockFlow(BRANCH, 1, 2, True, 2, 1, rank=0, join=2, successors=(1, 2)),
                BlockFlow(JUMP, 2, 2, False, 1, 2, rank=1, join=3, successors=(2,)),
                BlockFlow(EXIT, 3, 3, False, 2, 4, rank=2, join=3),
            ],
            entry=0,
            exit_=3,
        )

    def registers(self, numbers: NDArray[np.int64], first: int = 0) -> list[Array]:
        thread = np.arange(32 * WARPS, dtype=np.uint32).reshape(WARPS, 32)
        one = np.full((1, 1), 100, np.uint32)  # a uniform register has one value
        places = self._place + 4 * thread.astype(np.int64)
        return [thread, thread, one, np.zeros((1, 1), np.bool_), places]

    def plan(self, block: int) -> BlockPlan:
        access = Access(
            3, 0, Space.GLOBAL, np.dtype(np.uint32), 1, lambda frame: frame[PLACE], 0, None
        )

        def store(group: Group) -> None:
            write(group, group.lanes, access, group.frame[PLACE], [group.frame[VALUE]])

        steps: tuple[tuple[Step, ...], ...] = ((compare,), (add,), (store,))
        reads = ((THREAD,), (VALUE, UNIFORM), (VALUE, PLACE))[block]
        commits = ((PREDICATE,), (VALUE,), ())[block]
        ending = (BRANCH, JUMP, EXIT)[block]
        terminator = branch if block == 0 else None
        both = tuple(sorted({*reads, *commits}))
        return BlockPlan(steps[block], terminator, ending, reads, commits, (), both)

    def compile(self, warps: int) -> MachineCode:
        raise CutraceError("it has no machine code")


class Rows:
    """Keeps the columns of each table."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}

    def put(self, table: str, **columns: Any) -> int:
        self.tables.setdefault(table, []).append(columns)
        return 0


def test_lanes_diverge_reconverge_and_store() -> None:
    memory, rows = Memory(), Rows()
    out = memory.allocate(4 * 32 * WARPS, "out")
    run(Code(memory, out.address), rows)
    threads = range(32 * WARPS)
    stored = memory.view(out).view(np.uint32).tolist()
    assert stored == [n + 100 if n < 7 else n for n in threads]
    (accesses,) = rows.tables["accesses"]
    assert accesses["base"].tolist() == [0, 128]  # 32 lanes of 4 bytes
    assert accesses["step"].tolist() == [3, 2]  # warp 1 never runs block 1
    assert accesses["pc"].tolist() == [3, 3]
    (patterns,) = rows.tables["patterns"]
    assert patterns["active"].tolist() == [0xFFFFFFFF]
    assert patterns["offsets"].tolist() == [list(range(0, 128, 4))]


def test_a_fault_names_the_line_that_the_instruction_set_gives() -> None:
    memory = Memory()
    out = memory.allocate(4 * 40, "out")
    said = r"line 3: kernel `own` .* 4 bytes outside .* in thread \(40, 0, 0\) of block \(0, 0, 0\)"
    with pytest.raises(KernelFault, match=said):
        run(Code(memory, out.address), Rows())


def test_the_buffers_of_a_wave_fit_where_a_block_has_many_accesses() -> None:
    """A row of 24 bytes and a value of 8 bytes per lane for each warp and access: 280 bytes."""
    code = Code(Memory(), 0)
    code.program = replace(code.program, launch=replace(code.program.launch, block=(320, 1, 1)))
    assert blocks_a_wave(code) == (1 << 16) // 320
    code.traits = replace(code.traits, accesses=1080)
    assert blocks_a_wave(code) == (1 << 28) // (10 * 1080 * 280)
