"""The program of a launch and a wave that runs it, as instructions see them.

`Program` is the launch of a kernel, `Wave` the protocol of a wave, and `Group` the warps that run a
basic block together.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ..kernel.launch import Launch
from ..memory.memory import Memory, Shadow
from ..ops.lanes import ALL_LANES, LANES, Array, Bits, Mask, pack, unpack
from ..rows.buffers import Buffers
from ..rows.pattern import PatternTable
from ..rows.wave_rows import WaveRows
from .control_flow import ControlFlow
from .frame_stack import FrameStack
from .machine import Machine
from .simt_stack import SimtStacks


class Wave(Protocol):
    """Thread blocks that are resident together: their memory and warps.

    Arrays over blocks, warps or lanes: `numbers` (blocks,) in the grid, `shared` and `local` bytes,
    `step` (warps,) the running instruction number of each warp, `fenced` which of them have run a
    `wgmma.fence`. `tensors` is the tensor memory of blocks that use it. `machine` is what compiled
    code knows of the wave; `buffers` are arrays that waves use in turn.
    """

    program: "Program"
    flow: ControlFlow
    numbers: NDArray[np.int64]
    blocks: int
    warps_a_block: int
    columns: int
    warps: int
    block_of_warp: NDArray[np.intp]
    shared: NDArray[np.uint8]
    local: NDArray[np.uint8]
    shadow: Shadow | None
    step: NDArray[np.uint32]
    frames: FrameStack | None
    asserts: bool
    fenced: Mask
    tensors: dict[int, Any]
    stacks: SimtStacks
    machine: Machine
    rows: WaveRows
    patterns: PatternTable
    buffers: Buffers

    def blocks_of(self, warps: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the grid numbers of the blocks of these warps."""

    def bind_accesses(self, code: object, sites: Sequence[Any]) -> None:
        """Give the machine the arrays for the accesses of some machine code, or of no code."""

    def group(self) -> "Group":
        """Return the warps that run now."""

    def enter_escape(self) -> None:
        """Take over the blocks that run now: a chain may be at a later wave than when Python called
        its machine code."""

    def leave_escape(self) -> None:
        """Let later waves of a chain have the arrays that Python has made larger meanwhile."""


Guard: TypeAlias = Callable[[list[Array]], Mask] | None
"""Reads a predicate of each lane from a frame; None holds everywhere."""


class Group:
    """Warps (indices in the wave, ascending) that run one basic block together: the context that an
    instruction reads and writes.

    `frame` holds a value per register slot, broadcastable to `shape`: a row per warp, a column per
    lane. `lanes` are the active lanes in that shape, None for all; `active` the same as
    a mask for each of `warps`; `step` is the running instruction number of each warp.
    """

    def __init__(self, wave: Wave, warps: NDArray[np.intp], active: Bits) -> None:
        self.wave = wave
        self.warps = self.place = warps
        self.active = active
        self.rows = len(warps)
        self.shape = self.rows, LANES
        self.whole = self.rows == wave.warps
        self.lanes = None if bool((active == ALL_LANES).all()) else unpack(active)
        self.step: NDArray[np.uint32] = wave.step[warps]
        self.frame: list[Array] = []
        self.committed: list[Array] = []

    @property
    def row_block(self) -> NDArray[np.intp]:
        """The thread block of each warp, as an index in the wave."""
        return self.wave.block_of_warp[self.warps]

    def pack(self, lanes: Mask) -> Bits:
        """Pack booleans of the group's shape to a mask for each of `warps`, active lanes only."""
        if lanes.shape[1] == 1:
            return np.where(lanes[:, 0], self.active, np.uint32(0))
        return pack(lanes) & self.active

    def guarded(self, guard: Guard) -> Mask | None:
        """Return the active lanes with a true guard; None means all."""
        if guard is None:
            return self.lanes
        holds = guard(self.frame)
        if holds.size == 1 and holds[0, 0]:
            return self.lanes
        return holds if self.lanes is None else self.lanes & holds

    def guarded_lanes(self, guard: Guard) -> Mask:
        """Return the active lanes with a true guard, (rows, columns)."""
        lanes = self.guarded(guard)
        return np.broadcast_to(True if lanes is None else lanes, self.shape)

    def guarded_bits(self, guard: Guard) -> Bits:
        """Return the active lanes with a true guard as a mask for each of `warps`."""
        return self.active if guard is None else self.pack(guard(self.frame))


Step: TypeAlias = Callable[[Group], None]
Terminator: TypeAlias = Callable[[Group], None]
"""Executes the end of a block. At a branch, call or switch it sets the lanes of each side, and the
scheduler moves the warps; at a barrier, a trap or a warp-wide instruction it moves them itself.
"""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A decoded basic block: its steps, its terminator (None: only the scheduler moves the warps),
    how it ends (warp/schedule.py), and the register slots that cross its boundaries.

    `reads` are read before they are written (live-in); `commits` outlive the block (live-out);
    `temporaries` do not. All are below `slots`.
    """

    steps: tuple[Step, ...]
    terminator: Terminator | None
    ending: int
    reads: tuple[int, ...]
    commits: tuple[int, ...]
    temporaries: tuple[int, ...]
    reads_and_commits: tuple[int, ...]
    slots: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """A launch of a kernel, as its waves and its instructions see it.

    `name` is the kernel's name in messages. `source_line` names the line of the source of an
    instruction, given its pc, `text` is the instruction itself. A thread block has `shared_bytes`
    of shared memory, of which the arrays `open_arrays` have what the launch asks for; a thread has
    `local_bytes` of local memory.
    """

    name: str
    launch: Launch
    memory: Memory
    shared_bytes: int
    local_bytes: int
    open_arrays: tuple[str, ...]
    source_line: Callable[[int], str]
    text: Callable[[int], str]

    def fault(self, pc: int, problem: str, reason: str = "") -> KernelFault:
        """Return the fault of an instruction; `problem` is what the kernel does."""
        return KernelFault(f"{self.source_line(pc)}: kernel `{self.name}` {problem}", reason)
