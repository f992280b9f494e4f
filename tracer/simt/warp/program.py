"""The program of a launch and a wave that runs it, as instructions see them.

`Program` is the decoded kernel with its launch; `Wave` and `Group` are protocols of a wave and of
the warps that run a basic block together, a `WarpGroup`. `FrameStack` saves the registers of
recursive calls, for each lane.

A group has one of three forms. Whole: all warps of the wave, all lanes active; registers are
written in place. Blended: all or most warps, some lanes; the block's results are merged into the
registers under the lanes. Compacted: few warps; the registers that they read are gathered,
(warps, 32), and scattered back later.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...ptx.kernel import Kernel
from ..kernel.launch import Launch
from ..memory.address_facts import AddressCache
from ..memory.memory import LoadedModule, Memory, Shadow
from ..memory.wave_rows import WaveRows
from ..ops.lanes import ALL_LANES, LANES, Array, Bits, Mask, pack
from ..rows.access_rows import Warps
from ..rows.buffers import Buffers
from ..rows.pattern import PatternTable
from .machine import Machine
from .simt_stack import SimtStacks
from .special_register import special_values


class FrameStack:
    """Saved registers of each lane of a wave: values by slot and depth, (levels, lanes)."""

    def __init__(self, lanes: int) -> None:
        self.depth: NDArray[np.int32] = np.zeros(lanes, dtype=np.int32)
        self._saved: dict[int, Array] = {}

    def push(self, lanes: NDArray[np.intp], values: dict[int, Array]) -> None:
        """Save values (n,) of `lanes` (n,), an array per slot, and increment their depth."""
        depth = self.depth[lanes]
        for slot, value in values.items():
            self._frame_slice(slot, int(depth.max()) + 1, value)[depth, lanes] = value
        self.depth[lanes] += 1

    def pop(self, lanes: NDArray[np.intp], slots: tuple[int, ...]) -> list[Array]:
        """Decrement the depth of `lanes` (n,), and return their saved values, an array (n,) per
        slot.
        """
        self.depth[lanes] -= 1
        depth = self.depth[lanes]
        return [self._saved[slot][depth, lanes] for slot in slots]

    def _frame_slice(self, slot: int, levels: int, value: Array) -> Array:
        saved = self._saved.get(slot)
        if saved is None or len(saved) < levels:
            grown = np.zeros((max(2 * levels, 4), len(self.depth)), dtype=value.dtype)
            if saved is not None:
                grown[: len(saved)] = saved
            saved = self._saved[slot] = grown
        return saved.view(value.dtype)


class Wave(Protocol):
    """Thread blocks that are resident together: their memory and warps.

    Arrays over blocks, warps or lanes: `numbers` (blocks,) in the grid, `shared` and `local` bytes,
    `step` (warps,) the running instruction number of each warp, `fenced` which of them have run a
    `wgmma.fence`. `machine` is what compiled code knows of the wave, `code_arrays` what it needs
    besides, by kernel; `buffers` are arrays that waves use in turn.
    """

    program: "Program"
    numbers: NDArray[np.int64]
    blocks: int
    warps_a_block: int
    columns: int
    warps: int
    all_blocks: NDArray[np.intp]
    all_warps: NDArray[np.intp]
    block_of_warp: NDArray[np.intp]
    shared: NDArray[np.uint8]
    local: NDArray[np.uint8]
    shadow: Shadow | None
    step: NDArray[np.uint32]
    frames: FrameStack | None
    facts: AddressCache
    asserts: bool
    fenced: Mask
    stacks: SimtStacks
    machine: Machine
    rows: WaveRows
    patterns: PatternTable
    buffers: Buffers
    code_arrays: dict[object, Any]

    def lanes_of(self, active: Bits, columns: int) -> Mask:
        """Return masks (warps,) as booleans (rows, columns), or (1, columns) if rows agree."""

    def blocks_of(self, warps: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the grid numbers of the blocks of these warps."""

    def group(self) -> "WarpGroup":
        """Return the warps that run now."""


class Group(Warps, Protocol):
    """Warps that run one basic block together: the context that an instruction reads and writes.

    `frame` holds a value per register slot, broadcastable to (rows, columns); `lanes` the active
    lanes in that shape, None for all; `active` the same as a mask for each of `warps`.
    """

    wave: Wave
    active: Bits
    whole: bool
    lanes: Mask | None
    frame: list[Array]

    def pack(self, lanes: Mask) -> Bits:
        """Pack booleans of the group's shape to a mask for each of `warps`, active lanes only."""

    def guarded(self, guard: Mask | None) -> Mask | None:
        """Return the active lanes with a true `guard`; None means all."""


class WarpGroup:
    """A `Group`: warps (indices in the wave, ascending) at one basic block, and the layout of their
    values.

    `frame` holds a value per register slot, broadcastable to (rows, columns); `lanes` the active
    lanes in that shape, None for all; `active` the same as a mask for each of `warps`. `step` is
    the running instruction number of each warp of the shape.
    """

    def __init__(self, wave: Wave, warps: NDArray[np.intp], active: Bits) -> None:
        self.wave = wave
        self.warps = warps
        self.active = active
        # Below half of the warps a gather and scatter costs less than computing on all of them.
        self.compacted = 2 * len(warps) < wave.warps
        self.whole = len(warps) == wave.warps
        if self.compacted:
            self.rows, self.columns = len(warps), LANES
            self.row_block = wave.block_of_warp[warps]
        else:
            self.rows, self.columns = wave.blocks, wave.columns
            self.row_block = wave.all_blocks
        self.lanes = self._lanes()
        self.step: NDArray[np.uint32] = wave.step[self.place]
        self.frame: list[Array] = []
        self.committed: list[Array] = []

    def _lanes(self) -> Mask | None:
        if self.compacted:
            full = bool((self.active == ALL_LANES).all())
            return None if full else self.wave.lanes_of(self.active, LANES)
        if self.whole and bool((self.active == ALL_LANES).all()):
            return None
        active = np.zeros(self.wave.warps, dtype=np.uint32)
        active[self.warps] = self.active
        return self.wave.lanes_of(active, self.columns)

    @property
    def warps_a_row(self) -> int:
        """Warps side by side in a row."""
        return self.columns // LANES

    @property
    def blocks_in_wave(self) -> int:
        """Thread blocks of the wave."""
        return self.wave.blocks

    @property
    def place(self) -> NDArray[np.intp]:
        """The index in the wave of each warp of the shape (rows * warps per row)."""
        return self.warps if self.compacted else self.wave.all_warps

    def pack(self, lanes: Mask) -> Bits:
        """Pack booleans of the group's shape to a mask for each of `warps`, active lanes only."""
        if lanes.size == 1:
            return self.active if lanes[0, 0] else np.zeros_like(self.active)
        if lanes.shape[1] == 1:
            bits = np.where(lanes, np.uint32(ALL_LANES), np.uint32(0))
            bits = np.broadcast_to(bits, (self.rows, self.warps_a_row)).reshape(-1)
        elif lanes.shape[0] == 1:
            bits = np.tile(pack(lanes.reshape(-1, LANES)), self.rows)
        else:
            bits = pack(lanes.reshape(-1, LANES))
        if not self.compacted and not self.whole:
            bits = bits[self.warps]
        return bits & self.active

    def guarded(self, guard: Mask | None) -> Mask | None:
        """Return the active lanes with a true `guard`; None means all."""
        if guard is None or (guard.size == 1 and guard[0, 0]):
            return self.lanes
        return guard if self.lanes is None else self.lanes & guard


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
    `temporaries` do not.
    """

    steps: tuple[Step, ...]
    terminator: Terminator | None
    ending: int
    reads: tuple[int, ...]
    commits: tuple[int, ...]
    temporaries: tuple[int, ...]
    reads_and_commits: tuple[int, ...]


@dataclass(slots=True)
class Program:
    """The state that all waves of one launch share; `blocks`, `zeros` and `specials` once
    decoded.
    """

    kernel: Kernel
    launch: Launch
    memory: Memory
    loaded: LoadedModule
    blocks: dict[int, BlockPlan]
    zeros: list[Array]
    specials: dict[str, int]
    entry: int
    exit: int
    shared_bytes: int
    local_bytes: int
    waiting: frozenset[int]
    decoder: object = None

    @property
    def name(self) -> str:
        """The kernel's name in messages."""
        return spoken_name(self.kernel, self.launch)

    def initial_registers(self, numbers: NDArray[np.int64]) -> list[Array]:
        """Return zeroed registers, with the special registers of these blocks in their slots."""
        registers = list(self.zeros)
        values = special_values(self.launch, numbers) if self.specials else {}
        for name, slot in self.specials.items():
            registers[slot] = values[name]
        return registers


def spoken_name(kernel: Kernel, launch: Launch) -> str:
    """Return the kernel's name in messages: its C name if the host gave one."""
    return launch.name or kernel.name
