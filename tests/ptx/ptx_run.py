"""Run instructions in the engine, below the session: bytes in, bytes out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from ptx.ptx_case import SCRATCH, Case, kernel_text, stored_dtype

from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.decode.load_module import load_module
from cutrace.tracer.simt.kernel.launch import Launch
from cutrace.tracer.simt.kernel.run_options import RunOptions
from cutrace.tracer.simt.memory.memory import Memory
from cutrace.tracer.simt.ptx_code import PtxCode
from cutrace.tracer.simt.run import run

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
BLOCK = 128


class Rows:
    """Takes the rows of a launch; `seen` has every call and its columns as bytes."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[bytes]]] = []
        self._next = {"patterns": 0, "paths": 0}

    def put(self, table: str, **columns: Any) -> int:
        self.seen.append((table, [np.asarray(column).tobytes() for column in columns.values()]))
        first = self._next.get(table, 0)
        if table in self._next:
            self._next[table] += len(columns["active" if table == "patterns" else "lengths"])
        return first


def same_under_both(run: Callable[[Rows], list[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Run in the array engine, then in the compiled one if that knows the kernel: both have to
    leave the same arrays, which are returned, and hand over the same rows."""
    results, rows = [], []
    for is_compiled in (False, True):
        rows.append(Rows())
        with patch(_CHOICE, lambda program, chosen=is_compiled: chosen):
            results.append(run(rows[-1]))
    assert [a.tobytes() for a in results[0]] == [a.tobytes() for a in results[1]]
    assert rows[0].seen == rows[1].seen
    return results[0]


_CHOICE = "cutrace.tracer.simt.tier._is_worth_compiling"


def run_case(
    case: Case, sources: Sequence[NDArray[Any]], sink: Rows | None = None
) -> list[NDArray[Any]]:
    """Run one instruction on arrays of bit patterns; return an array a result."""
    lanes = len(sources[0]) if sources else 32
    outputs = [np.zeros(lanes, stored_dtype(kind)) for kind in case.results]
    arrays = [*sources, *outputs, np.zeros(lanes * SCRATCH, np.uint8)]
    found = run_kernel(HEADER + kernel_text(case, "case"), "case", lanes, arrays, sink=sink)
    return found[len(sources) : len(sources) + len(outputs)]


def run_kernel(
    ptx: str,
    name: str,
    lanes: int,
    arrays: Sequence[NDArray[Any]],
    block: int = BLOCK,
    memory: Memory | None = None,
    handles: Mapping[str, int] | None = None,
    sink: Rows | None = None,
    engine: str = "auto",
) -> list[NDArray[Any]]:
    """Run a kernel that takes pointers to `arrays`; return what lies there afterwards.

    `handles` are those of textures and surfaces in `memory`, by the references that have them.
    """
    module = parse_module(ptx)
    memory = memory or Memory()
    loaded = load_module(memory, module)
    loaded.handles.update(handles or {})
    places = [memory.allocate(a.nbytes, f"array{k}") for k, a in enumerate(arrays)]
    for place, array in zip(places, arrays, strict=True):
        memory.view(place)[:] = np.ascontiguousarray(array).view(np.uint8)
    block = min(block, lanes)
    arguments = tuple(place.address.to_bytes(8, "little") for place in places)
    grid, options = (lanes // block, 1, 1), RunOptions(engine=engine)
    launch = Launch(grid, (block, 1, 1), 0, arguments, print, options=options)
    run(PtxCode(link_kernel(module, name), launch, memory, loaded), sink or Rows())
    return [
        memory.view(place).view(array.dtype).copy()
        for place, array in zip(places, arrays, strict=True)
    ]
