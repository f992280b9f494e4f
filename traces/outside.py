"""Out-of-bounds accesses: their sums over a launch, and messages about them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .place_text import coordinates, distance, gap_text, verb_of
from .schema import LANES, Launch, Outside, Space


class OutsideTotals:
    """Sums of a launch, by instruction; the first of them is that of the first block and warp."""

    def __init__(self) -> None:
        self._found: dict[int, Outside] = {}

    def add(self, *columns: npt.ArrayLike) -> None:
        """Take columns of the fields of `Outside`, n values each."""
        rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
        for new in (Outside(*row) for row in rows):
            old = self._found.get(new.pc, replace(new, lanes=0))
            first = new if _order(new) < _order(old) else old
            self._found[new.pc] = replace(first, lanes=old.lanes + new.lanes)

    @property
    def found(self) -> tuple[Outside, ...]:
        """The sums, by rising pc."""
        return tuple(self._found[pc] for pc in sorted(self._found))


def _order(outside: Outside) -> tuple[int, int]:
    return outside.block, outside.thread // LANES


def outside_text(
    launch: Launch, instructions: pa.Table, base: int = 0
) -> Iterator[tuple[str, str]]:
    """Yield each source line with accesses outside of every allocation, and what to say of it.

    `base` is the address of the first byte of global memory.
    """
    lines: dict[str, list[Outside]] = {}
    for outside in launch.outside:
        lines.setdefault(_line(instructions, outside.pc), []).append(outside)
    for line, found in lines.items():
        total = sum(outside.lanes for outside in found)
        times = "once" if total == 1 else f"{total} times; first"
        what = _first(launch, instructions, found[0], base, times)
        yield line, f"{line}: kernel `{launch.name}` {what}"


def _line(instructions: pa.Table, pc: int) -> str:
    file, line = (instructions[name][pc].as_py() for name in ("file", "line"))
    return f"{file}:{line}" if line else f"instruction {pc} ({instructions['text'][pc].as_py()})"


def _first(launch: Launch, instructions: pa.Table, outside: Outside, base: int, times: str) -> str:
    text, width = (instructions[name][outside.pc].as_py() for name in ("text", "bytes"))
    thread = coordinates(outside.thread, launch.block)
    block = coordinates(outside.block, launch.grid)
    return (
        f"{verb_of(text, 'global')} {width} bytes outside of every array, {times} at global "
        f"address {base + outside.address:#x} in thread {thread} of "
        f"block {block}: {_nearest(launch, outside.address, width)}"
    )


def _nearest(launch: Launch, address: int, width: int) -> str:
    arrays = [array for array in launch.arrays if array.space == Space.GLOBAL]
    if not arrays:
        return "no array is known"
    near = min(arrays, key=lambda array: distance(array.offset, array.bytes, address))
    gap = gap_text(near.offset, near.bytes, address, width)
    return f"{gap} `{near.name}` ({near.bytes} bytes)"
