"""The arrays of a wave of compiled code, reused by later waves.

Allocating the fifty arrays of a wave takes as long as a launch of a few hundred instructions. Waves
of the same shape therefore share a `CompiledWaveState`, within a launch and across the launches of
a kernel. The pool keeps the last few states that no wave uses.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interp.wave import WaveState, syncing_blocks
from ..memory.memory import BufferPool, Memory
from ..ops.lanes import LANES
from ..rows.pattern import no_questions
from ..warp.program import Program
from .compiled_kernel import CompiledKernel

MOST_STATES = 4
"""States that the pool keeps. A launch has waves of two shapes: its last wave may have fewer
blocks."""


class CompiledWaveState(WaveState):
    """The state of a wave: the machine, with the arrays that it and the SIMT stacks share."""

    def __init__(self, code: CompiledKernel, program: Program, blocks: int) -> None:
        self.machine = code.machine.copy()
        super().__init__(program, blocks, self.machine)
        self.machine.codes = code.machine.codes
        self.shape = shape_of(code, program, blocks)
        self._changed: list[NDArray[Any]] = []
        self._bind_accesses(code, program)
        self._at_first = [array.copy() for array in self._changed]
        self._fresh = self.machine.copy()

    def _bind_accesses(self, code: CompiledKernel, program: Program) -> None:
        m, sites = self.machine, len(code.sites) + 1
        m.site_as = self._array(len(code.made.sites) + 1, np.int32)
        m.site_as[:] = np.arange(len(m.site_as))
        m.site_low = self._array(sites, np.int64)
        m.site_limit = self._array(sites, np.int64)
        m.site_limit[:] = [*(_limit(program, *site[1:]) for site in code.sites), -1]
        m.site_pattern = self._array(sites * self.warps, np.int32, -1)
        m.outside_lanes = self._array(sites, np.int64)
        m.outside_warp = self._array(sites, np.int64)
        m.outside_lane = self._array(sites, np.int64)
        m.outside_address = self._array(sites, np.int64)
        m.fault_site, m.fault_addresses = -1, self._array(LANES, np.int64)
        m.lanes_on = self._array(len(code.made.counted) * self.blocks + 1, np.int64)
        m.questions = no_questions()

    def _array(self, size: int, dtype: type[np.generic], value: int = 0) -> NDArray[Any]:
        """Return an array that machine code changes; `begin` resets it to this value."""
        self._changed.append(np.full(size, value, dtype=dtype))
        return self._changed[-1]

    def begin(self) -> None:
        """Reset the state for a new wave, and drop the arrays of the last wave."""
        self.machine.begin_as(self._fresh)
        super().begin()
        for array, first in zip(self._changed, self._at_first, strict=True):
            array[:] = first
        self.machine.questions.count = 0

    @property
    def nbytes(self) -> int:
        """The approximate size of the state in bytes."""
        own = sum(array.nbytes for array in (*self._changed, *self._at_first))
        return own + self.stacks.nbytes


def _limit(program: Program, space: str, size: int) -> int:
    """Return the largest valid offset of an access to shared or local memory, -1 for other
    spaces."""
    own = {"shared": program.shared_bytes, "local": program.local_bytes}
    return max(own[space] - size, -1) if space in own else -1


class WaveStatePool:
    """A pool of the last few unused states, by shape."""

    def __init__(self) -> None:
        self._free: dict[Hashable, CompiledWaveState] = {}

    @property
    def nbytes(self) -> int:
        """The approximate size of all states in bytes."""
        return sum(machine_room.nbytes for machine_room in self._free.values())

    def take(self, code: CompiledKernel, program: Program, blocks: int) -> CompiledWaveState:
        """Return a reset state for a wave of this many blocks."""
        machine_room = self._free.pop(shape_of(code, program, blocks), None)
        return machine_room or CompiledWaveState(code, program, blocks)

    def give(self, machine_room: CompiledWaveState) -> None:
        """Return the state of a finished wave to the pool."""
        machine_room.begin()
        self._free[machine_room.shape] = machine_room
        if len(self._free) > MOST_STATES:
            self._free.pop(next(iter(self._free)))


def shape_of(code: CompiledKernel, program: Program, blocks: int) -> Hashable:
    """Return the key of a state: all that its arrays and their initial values depend on."""
    sizes = program.launch.threads, program.shared_bytes, program.local_bytes
    return code, blocks, syncing_blocks(program), *sizes


_POOLS = BufferPool(WaveStatePool)


def state_pool_of(memory: Memory) -> WaveStatePool:
    """Return the pool of a session."""
    return _POOLS.of(memory)
