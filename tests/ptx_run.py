"""Run instructions in the engine, below the session: bytes in, bytes out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ptx_case import SCRATCH, Case, kernel_text, stored_dtype

from cutrace.tracer.engine.launch import Launch
from cutrace.tracer.engine.memory import Memory
from cutrace.tracer.engine.run import run
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
BLOCK = 128


class NoTrace:
    """Takes the rows of a launch and keeps none."""

    def __init__(self) -> None:
        self._patterns = 0
        self._paths = 0

    def patterns(self, active: NDArray[Any], offsets: NDArray[Any]) -> int:
        first, self._patterns = self._patterns, self._patterns + len(active)
        return first

    def paths(self, lengths: NDArray[Any], *columns: NDArray[Any]) -> int:
        first, self._paths = self._paths, self._paths + len(lengths)
        return first

    def accesses(self, *columns: NDArray[Any]) -> None:
        pass

    def control(self, *columns: NDArray[Any]) -> None:
        pass

    def texels(self, *columns: Any) -> None:
        pass

    def lanes_on(self, *columns: NDArray[Any]) -> None:
        pass


def run_case(case: Case, sources: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Run one instruction on arrays of bit patterns; return an array a result."""
    lanes = len(sources[0]) if sources else 32
    outputs = [np.zeros(lanes, stored_dtype(kind)) for kind in case.results]
    arrays = [*sources, *outputs, np.zeros(lanes * SCRATCH, np.uint8)]
    found = run_kernel(HEADER + kernel_text(case, "case"), "case", lanes, arrays)
    return found[len(sources) : len(sources) + len(outputs)]


def run_kernel(
    ptx: str,
    name: str,
    lanes: int,
    arrays: Sequence[NDArray[Any]],
    block: int = BLOCK,
    memory: Memory | None = None,
    handles: Mapping[str, int] | None = None,
) -> list[NDArray[Any]]:
    """Run a kernel that takes pointers to `arrays`; return what lies there afterwards.

    `handles` are those of textures and surfaces in `memory`, by the references that have them.
    """
    module = parse_module(ptx)
    memory = memory or Memory()
    loaded = memory.load(module)
    loaded.handles.update(handles or {})
    places = [memory.allocate(a.nbytes, f"array{k}") for k, a in enumerate(arrays)]
    for place, array in zip(places, arrays, strict=True):
        memory.view(place)[:] = np.ascontiguousarray(array).view(np.uint8)
    block = min(block, lanes)
    arguments = tuple(place.address.to_bytes(8, "little") for place in places)
    launch = Launch((lanes // block, 1, 1), (block, 1, 1), 0, arguments, print)
    run(link_kernel(module, name), launch, memory, loaded, NoTrace())
    return [
        memory.view(place).view(array.dtype).copy()
        for place, array in zip(places, arrays, strict=True)
    ]
