"""What a wave's accesses need: arrays that later waves reuse, and the memories."""

from collections.abc import Sequence
from operator import is_not
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....jit.machine_code import address
from ....jit.structure import Binding
from ....traces.schema import Space
from ..memory.memory import BufferPool, Memory, Shadow
from ..ops.lanes import LANES
from ..rows.buffers import InitialArrays
from ..rows.pattern import no_questions
from ..warp.machine import Machine
from ..warp.program import Program, Wave

Site = tuple[int, Space | None, int, int]
"""An access of machine code: its pc, state space (None: generic), part, and bytes per lane."""


class AccessArrays:
    """The arrays for `warps` warps whose machine code has these sites."""

    def __init__(self, sites: Sequence[Site], program: Program, warps: int) -> None:
        count = len(sites) + 1  # one for the interpreter
        limits = [*(_limit(program, space, size) for _, space, _, size in sites), -1]
        initial: dict[str, NDArray[Any]] = {
            "site_pc": np.array([*(pc for pc, *_ in sites), 0], np.int32),
            "site_space": np.array([*(space or 0 for _, space, _, _ in sites), 0], np.int32),
            "site_part": np.array([*(part for _, _, part, _ in sites), 0], np.int32),
            "site_low": np.zeros(count, np.int64),
            "site_limit": np.array(limits, np.int64),
            "site_pattern": np.full(count * warps, -1, np.int32),
            "reach_lanes": np.zeros(warps, np.uint32),
            "part_lanes": np.zeros(warps, np.uint32),
            "part_space": np.zeros(warps, np.int32),
        }
        self._arrays = InitialArrays(initial)
        arrays: dict[str, Any] = {**self._arrays.arrays}
        self._pointers: NDArray[np.int64] = np.zeros((2, warps * LANES), np.int64)
        self._questions = arrays["questions"] = no_questions()
        arrays["pointers"], arrays["written_at"] = self._pointers
        arrays |= {"sites": len(sites), "part": 0, "fault_site": -1}
        self._binding = Binding(Machine, arrays)

    def bind(self, m: Machine) -> None:
        """Reset the arrays, and give them to a machine."""
        self.begin()
        m.bind(self._binding)

    def begin(self) -> None:
        """Reset the arrays."""
        self._arrays.begin()
        self._questions.count = 0

    @property
    def initial_span(self) -> tuple[int, int, int]:
        """The arrays that are reset for a wave, as `InitialArrays.span`."""
        return self._arrays.span

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return self._pointers.nbytes + self._arrays.nbytes


def _limit(program: Program, space: Space | None, size: int) -> int:
    """Return the largest valid offset of an access to shared or local memory, -1 for other
    spaces."""
    own = {Space.SHARED: program.shared_bytes, Space.LOCAL: program.local_bytes}
    return -1 if space is None else max(own.get(space, 0) - size, -1)


class Allocations:
    """The allocations of a session as its machines see them, bound anew when they change."""

    nbytes = 0

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._binding = Binding(Machine, {})

    def bind(self, m: Machine, memory: Memory, reports: bool) -> None:
        """Give a machine the allocations; also what is mapped, if the launch `reports`."""
        arenas = memory.global_, memory.const, memory.surface
        bounds = [arena.bounds() for arena in arenas]
        key = reports, *bounds
        if len(self._key) != len(key) or any(map(is_not, key, self._key)):
            counts: NDArray[np.int32] = np.zeros(len(Space) + 2, np.int32)
            for arena in arenas:
                counts[arena.space + 1] = len(arena.allocations)
            fields: dict[str, Any] = {
                "first_allocation": counts.cumsum(dtype=np.int32),
                "starts": np.concatenate([starts[:-1] for starts, _ in bounds]),
                "ends": np.concatenate([ends[:-1] for _, ends in bounds]),
                "mapped": 0,
            }
            if reports:
                starts, ends = memory.global_.mapped_ranges()
                fields |= {"mapped_starts": starts, "mapped_ends": ends, "mapped": len(starts) - 1}
            self._key, self._binding = key, Binding(Machine, fields)
        m.bind(self._binding)


_ALLOCATIONS = BufferPool(Allocations)


def bind_memory(m: Machine, wave: Wave) -> None:
    """Give a machine the memories of its wave."""
    program, memory = wave.program, wave.program.memory
    m.space_bytes = _places(wave, None)
    m.is_watched = int(wave.shadow is not None)
    if wave.shadow is not None:
        m.space_written = _places(wave, wave.shadow)
    m.shared_size, m.local_size = program.shared_bytes, program.local_bytes
    m.cluster_blocks = program.launch.blocks_a_cluster
    _ALLOCATIONS.of(memory).bind(m, memory, program.launch.options.bounds == "report")


def _places(wave: Wave, shadow: Shadow | None) -> NDArray[np.int64]:
    """Return for each state space the address of its bytes, or of their map: that of the byte at
    address 0, or 0 if there is none."""
    memory = wave.program.memory
    places: NDArray[np.int64] = np.zeros(len(Space) + 1, np.int64)
    bytes_: dict[Space, tuple[NDArray[np.uint8] | None, int]] = {
        Space.GLOBAL: (memory.global_.bytes, memory.global_.base),
        Space.CONST: (memory.const.bytes, memory.const.base),
        Space.SURFACE: (memory.surface.bytes, memory.surface.base),
        Space.SHARED: (wave.shared, 0),
        Space.LOCAL: (wave.local, 0),
    }
    for space, (own, base) in bytes_.items():
        array = own if shadow is None else shadow.of(space)
        if array is not None and array.size:
            places[space] = address(array) - base
    return places
