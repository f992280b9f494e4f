"""What the core asks of an instruction set, and of the machine code that it may make.

The core schedules warps, keeps their SIMT stacks, barriers, memory and rows, and knows no text of
an instruction. An instruction set says where basic blocks begin and end, what their steps do to a
`Group` (program.py), and perhaps how to run them as machine code.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ..ops.lanes import Array
from .control_flow import ControlFlow
from .program import BlockPlan, Program, Wave


@dataclass(frozen=True, slots=True)
class Traits:
    """Facts of a kernel that decide how its launches run.

    Its number of `instructions`; whether it `has_loops`, or calls itself, so that it may run long;
    whether it `reads_place`, where its blocks are on the chip, so that no more may be resident than
    fit.

    `moves` has the bytes that each instruction moves to or from global memory, per lane, negative
    for a store; None if thread blocks may affect one another in other ways than by these.
    `accesses` is how many instructions of one basic block access memory, at most.
    """

    instructions: int
    has_loops: bool
    reads_place: bool
    moves: NDArray[np.int32] | None = None
    accesses: int = 0


class InstructionSet(Protocol):
    """The code of a kernel for one launch, in an instruction set."""

    @property
    def program(self) -> Program:
        """The launch, with its memory, its sizes, and the source line and text of an
        instruction."""

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal code: what is known of it holds for later launches."""

    @property
    def traits(self) -> Traits:
        """Facts that decide how the launch runs."""

    @property
    def flow(self) -> ControlFlow:
        """How each basic block ends, and where lanes go and reconverge: by analysis of the code, or
        by what its instructions say."""

    def registers(self, numbers: NDArray[np.int64], first: int = 0) -> list[Array]:
        """Return the initial values of the registers of the thread blocks `numbers`, by slot, from
        slot `first` on, each (warps or 1, 32 or 1); CutraceError for an instruction that it does
        not know. A plan may add slots."""

    def plan(self, block: int) -> BlockPlan:
        """Return the steps of a basic block, and the slots that they read and write."""

    def compile(self, warps: int) -> "MachineCode":
        """Return the code as machine code for waves of this many warps; CutraceError if there is
        none."""


class Restart(NamedTuple):
    """What machine code begins the waves of a chain with (chain.py).

    Spans to fill with zeros, address and bytes (n, 2); such spans of each warp's frame, by their
    offsets in it; the special registers of all blocks, (blocks, bytes).
    """

    clears: Sequence[tuple[int, int]]
    zeros: Sequence[tuple[int, int]]
    tables: NDArray[np.uint8]


class Executor(Protocol):
    """A way to run the basic blocks of a wave; it owns the registers."""

    def enter(self) -> object:
        """Return what must live while the wave runs, before it does."""

    def begin_again(self) -> None:
        """Set the registers that machine code of the wave, whose blocks are others now, begins
        with."""

    def restart(self, numbers: NDArray[np.int64]) -> Restart | None:
        """Return what waves of the blocks `numbers` (n,) begin with; None if machine code alone
        cannot begin or end a wave."""

    def prepare(self) -> None:
        """Reserve what the next blocks may need."""

    def run_block(self) -> int:
        """Run the group through a block without machine code; return why Python is needed, -1 if it
        is not."""

    def end_block(self) -> None:
        """End a block that machine code has run, where its end has no machine code."""

    def raise_fault(self) -> NoReturn:
        """Raise the fault that machine code met."""

    def take_outcomes(self) -> None:
        """Write the results of barrier votes and warp syncs to the registers of their warps."""

    def finish(self) -> None:
        """Hand over what the blocks have counted."""

    def state(self) -> Iterator[NDArray[Any]]:
        """Yield the values of all registers."""


class MachineCode(Protocol):
    """The machine code of a kernel."""

    def executor(self, wave: Wave, registers: Sequence[Array] | None) -> Executor:
        """Return what runs the blocks of a wave, which goes on with these registers, as
        `InstructionSet.registers` has them; None if the wave begins."""
