"""A kernel made ready for one launch, and what its instructions see of the warps that run them.

`Program` has a plan for each basic block, over numbered register slots. An instruction is a step:
a function of the `Group` of warps that run it together, which is part of a `Wave` of blocks.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....lazy_dataclass import dataclass
from ...ptx.kernel import Kernel
from ..call.frame_stack import FrameStack
from ..lanes import Array, Bits, Mask
from ..launch import Launch
from ..memory.address_facts import FactStore
from ..memory.memory import LoadedModule, Memory
from ..memory.shadow import Shadow
from ..rows.warps import Warps
from ..rows.wave_rows import WaveRows
from .special_register import special_values
from .split import SplitStacks


class Wave(Protocol):
    """Thread blocks that are resident together: their memory, their registers, their warps.

    Arrays over blocks, warps or lanes: `numbers` (blocks,) in the grid, `registers` a value a slot,
    `shared` and `local` bytes, `step` (warps,) the running instruction number of each warp,
    `fenced` which of them have run a `wgmma.fence`.
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
    zeros: list[Array]
    registers: list[Array]
    shared: NDArray[np.uint8]
    local: NDArray[np.uint8]
    shadow: Shadow | None
    step: NDArray[np.uint32]
    frames: FrameStack | None
    facts: FactStore
    asserts: bool
    fenced: Mask
    stacks: SplitStacks
    rows: WaveRows

    def lanes_of(self, active: Bits, columns: int) -> Mask:
        """Return masks (warps,) as booleans (rows, columns), or (1, columns) if rows agree."""

    def blocks_of(self, warps: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the numbers in the grid of the blocks that hold these warps."""

    def own(self, slot: int, array: Array) -> None:
        """Remember that a register's array was made for it alone, and may change in place."""

    def owns(self, slot: int) -> bool:
        """Whether nothing else can hold the array of a register, or a view of it."""


class Group(Warps, Protocol):
    """Warps that run one basic block together: what an instruction reads and writes.

    `frame` holds a value a register slot, broadcastable to (rows, columns); `lanes` the active
    lanes in that shape, None for all; `active` the same as a mask for each of `warps`.
    """

    wave: Wave
    active: Bits
    whole: bool
    lanes: Mask | None
    frame: list[Array]

    def pack(self, lanes: Mask) -> Bits:
        """Turn booleans of the group's shape into a mask for each of `warps`, active ones only."""

    def guarded(self, guard: Mask | None) -> Mask | None:
        """Return the active lanes for which `guard` holds; None is all."""


Step: TypeAlias = Callable[[Group], None]
Terminator: TypeAlias = Callable[[Group], Bits | None]
"""Sends the warps on their way; returns the lanes that took its branch, None if it has none."""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """A basic block: its instructions, and what crosses its borders, as register slots.

    `reads` are read before they are written; `commits` outlive it; `temporaries` do not.
    """

    steps: tuple[Step, ...]
    terminator: Terminator
    length: int
    reads: tuple[int, ...]
    commits: tuple[int, ...]
    temporaries: tuple[int, ...]
    reads_and_commits: tuple[int, ...]


@dataclass(slots=True)
class Program:
    """Everything that waves of one launch share; `blocks`, `zeros` and `specials` once decoded."""

    kernel: Kernel
    launch: Launch
    memory: Memory
    loaded: LoadedModule
    blocks: dict[int, BlockPlan]
    zeros: list[Array]
    specials: dict[str, int]
    ranks: NDArray[np.int32]
    entry: int
    exit: int
    shared_bytes: int
    local_bytes: int
    waiting: frozenset[int]
    waits: Mask

    @property
    def name(self) -> str:
        """What messages call the kernel."""
        return spoken_name(self.kernel, self.launch)

    def initial_registers(self, numbers: NDArray[np.int64]) -> list[Array]:
        """Return zeroed registers, with the special registers of these blocks in their slots."""
        registers = list(self.zeros)
        values = special_values(self.launch, numbers) if self.specials else {}
        for name, slot in self.specials.items():
            registers[slot] = values[name]
        return registers


def spoken_name(kernel: Kernel, launch: Launch) -> str:
    """Return what messages call the kernel: its name in C where the host told it."""
    return launch.name or kernel.name
