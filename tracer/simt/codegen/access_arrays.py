"""The arrays of a wave that machine code needs for its accesses, reused by later waves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops.lanes import LANES
from ..rows.pattern import no_questions
from ..warp.machine import Machine
from ..warp.program import Program
from .compiled_kernel import CompiledKernel


class AccessArrays:
    """The arrays for `blocks` thread blocks of `warps` warps in all."""

    def __init__(self, code: CompiledKernel, program: Program, blocks: int, warps: int) -> None:
        sites = len(code.sites) + 1
        limits = [*(_limit(program, *site[1:]) for site in code.sites), -1]
        self._at_first: dict[str, NDArray[Any]] = {
            "site_as": np.arange(len(code.made.sites) + 1, dtype=np.int32),
            "site_low": np.zeros(sites, np.int64),
            "site_limit": np.array(limits, np.int64),
            "site_pattern": np.full(sites * warps, -1, np.int32),
            "outside_lanes": np.zeros(sites, np.int64),
            "outside_warp": np.zeros(sites, np.int64),
            "outside_lane": np.zeros(sites, np.int64),
            "outside_address": np.zeros(sites, np.int64),
            "fault_addresses": np.zeros(LANES, np.int64),
            "lanes_on": np.zeros(len(code.made.counted) * blocks + 1, np.int64),
        }
        self._arrays = {name: array.copy() for name, array in self._at_first.items()}
        self._questions = no_questions()

    def bind(self, m: Machine) -> None:
        """Reset the arrays, and give them to a machine."""
        for name, array in self._arrays.items():
            array[:] = self._at_first[name]
            setattr(m, name, array)
        self._questions.count = 0
        m.questions = self._questions
        m.fault_site = -1

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return 2 * sum(array.nbytes for array in self._arrays.values())


def _limit(program: Program, space: str, size: int) -> int:
    """Return the largest valid offset of an access to shared or local memory, -1 for other
    spaces."""
    own = {"shared": program.shared_bytes, "local": program.local_bytes}
    return max(own[space] - size, -1) if space in own else -1
