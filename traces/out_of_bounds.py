"""Out-of-bounds accesses: totals over a launch, and messages about them."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .schema import LANES, Launch, Outside, Space


class OutsideTotals:
    """Out-of-bounds totals of a launch by instruction; each keeps the first access by block and
    warp.
    """

    def __init__(self) -> None:
        self._found: dict[int, Outside] = {}

    def add(self, *columns: npt.ArrayLike) -> None:
        """Add accesses: columns of the fields of `Outside`, n values each."""
        rows = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
        for new in (Outside(*row) for row in rows):
            old = self._found.get(new.pc, replace(new, lanes=0))
            first = new if _order(new) < _order(old) else old
            self._found[new.pc] = replace(first, lanes=old.lanes + new.lanes)

    @property
    def totals(self) -> tuple[Outside, ...]:
        """Return the totals, by ascending pc."""
        return tuple(self._found[pc] for pc in sorted(self._found))


def _order(outside: Outside) -> tuple[int, int]:
    return outside.block, outside.thread // LANES


def outside_text(
    launch: Launch, instructions: pa.Table, base: int = 0
) -> Iterator[tuple[str, str]]:
    """Yield each source line with out-of-bounds accesses, and the message about it.

    `base` is the address of the first byte of global memory.
    """
    lines: dict[str, list[Outside]] = {}
    for outside in launch.outside:
        lines.setdefault(_line(instructions, outside.pc), []).append(outside)
    for line, outsides in lines.items():
        total = sum(outside.lanes for outside in outsides)
        times = "once" if total == 1 else f"{total} times; first"
        what = _first(launch, instructions, outsides[0], base, times)
        yield line, f"{line}: kernel `{launch.name}` {what}"


def _line(instructions: pa.Table, pc: int) -> str:
    file, line = (instructions[name][pc].as_py() for name in ("file", "line"))
    return f"{file}:{line}" if line else f"instruction {pc} ({instructions['text'][pc].as_py()})"


def _first(launch: Launch, instructions: pa.Table, outside: Outside, base: int, times: str) -> str:
    text, width = (instructions[name][outside.pc].as_py() for name in ("text", "bytes"))
    thread = coordinates(outside.thread, launch.block)
    block = coordinates(outside.block, launch.grid)
    return (
        f"{verb_of(text, 'global')} {bytes_text(width)} outside of every array, {times} at global "
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


Triple = tuple[int, int, int]

_VERBS = {
    **{"ld": "reads", "ldu": "reads", "ldmatrix": "reads"},
    **{"st": "writes", "stmatrix": "writes"},
    **dict.fromkeys(("LD", "LDG", "LDS", "LDL", "LDSM"), "reads"),
    **dict.fromkeys(("ST", "STG", "STS", "STL", "STSM"), "writes"),
}


def verb_of(text: str, space: str) -> str:
    """Return the effect of an instruction of PTX or of machine code on memory of a state space:
    `reads`, `writes` or `updates`. A copy names the space that it writes first.
    """
    mnemonic = next(word for word in text.split() if not word.startswith(("@", "/*")))
    opcode, *modifiers = mnemonic.rstrip(";").split(".")
    spaces = [m.partition("::")[0] for m in modifiers if m.startswith(("global", "shared"))]
    if opcode == "cp" and len(spaces) == 2:
        return "writes" if spaces[0] == space else "reads"
    if opcode == "LDGSTS":
        return "writes" if space == "shared" else "reads"
    if opcode == "wmma":
        return "writes" if "store" in modifiers else "reads"
    return _VERBS.get(opcode, "updates")


def coordinates(index: int, extent: Triple) -> Triple:
    """Return (x, y, z) of a thread in its block, or of a block in its grid, x fastest."""
    quotient, x = divmod(index, extent[0])
    return x, quotient % extent[1], quotient // extent[1]


def distance(start: int, size: int, address: int) -> int:
    """Return the distance in bytes of an address from an array's nearest byte; 0 inside."""
    return max(start - address, address - start - size, 0)


def gap_text(start: int, size: int, address: int, width: int) -> str:
    """Describe the position of an access of `width` bytes that is not fully inside an array of
    `size` bytes.
    """
    end = start + size
    if address < start:
        return f"{bytes_text(start - address)} before"
    if address == end:
        return "just past the end of"
    if address > end:
        return f"{bytes_text(address - end)} past the end of"
    return f"{bytes_text(address + width - end)} beyond the end of"


def bytes_text(count: int) -> str:
    """Return `1 byte` or `4 bytes`."""
    return f"{count} byte{'s' * (count != 1)}"
