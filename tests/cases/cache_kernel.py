"""Lines of memory that a warp of each block loads and stores in rounds, as a trace by hand."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cases.counter_cases import Constants
from hand_trace import DEVICE_ARRAY, Access, hand_trace, instruction, launch
from warps import BASE, warp

from cutrace.traces.schema import Space

LINE = 128
KINDS = {
    "loads": ("ld.global.b32", Space.GLOBAL),
    "stores": ("st.global.b32", Space.GLOBAL),
    "local_loads": ("ld.local.b32", Space.LOCAL),
    "local_stores": ("st.local.b32", Space.LOCAL),
}


def record_lines(path: Path, constants: Constants) -> Path:
    """So many lines of each kind, one after another, in rounds; all blocks want the same.

    A word of local memory is a line: that of 32 threads. Stores have lines of their own.
    """
    return _record(path, constants, "")


def record_lines_of_the_host(path: Path, constants: Constants) -> Path:
    """The same lines, in memory of the host."""
    return _record(path, constants, "pinned")


def _record(path: Path, constants: Constants, memory: str) -> Path:
    kinds = [kind for kind in KINDS for _ in range(constants[kind])]
    rows = [instruction(pc, KINDS[kind][0], bytes=4) for pc, kind in enumerate(kinds)]
    told = launch(grid=(constants["blocks"], 1, 1), local_bytes=4 * len(kinds))
    told = replace(told, arrays=(replace(DEVICE_ARRAY, memory=memory),))
    hand_trace(path, _accesses(constants, kinds), launch=told, instructions=rows)
    return path


def _accesses(constants: Constants, kinds: list[str]) -> Iterator[Access]:
    for block in range(constants["blocks"]):
        for step in range(len(kinds) * constants["rounds"]):
            pc = step % len(kinds)
            space = KINDS[kinds[pc]][1]
            here = warp(base=BASE + LINE * pc)
            own = warp(stride=0, base=4 * pc)
            lanes = own if space is Space.LOCAL else here
            yield Access(lanes, pc=pc, block=block, step=step, space=space)
