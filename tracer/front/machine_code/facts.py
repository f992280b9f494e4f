"""What a cubin does to memory, by the lines of the PTX that it was made of."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from .decode import BYTES, MachineInstruction, decode
from .elf import sections
from .line_table import read_lines

ByLine: TypeAlias = Mapping[int, Sequence[MachineInstruction]]
"""Machine instructions that access memory or branch, by the PTX line that they come from."""


def by_line(cubin: bytes, kernel: str) -> ByLine:
    """Return those of a kernel; none where it has functions of its own, or no line table.

    The cubin is of PTX of `mark_lines`, assembled with `-lineinfo`.
    """
    known = {each.name: each for each in sections(cubin)}
    code, table = known.get(f".text.{kernel}"), known.get(".debug_line")
    if code is None or table is None:
        return {}
    lines = read_lines(table.of(cubin))
    line = [0] * (code.size // BYTES)
    last = 0
    for place in range(len(line)):
        last = line[place] = lines.get(place * BYTES, last)
    found: dict[int, list[MachineInstruction]] = {}
    for each in decode(code.of(cubin)) if lines else ():
        found.setdefault(line[each.address // BYTES], []).append(each)
    return found
