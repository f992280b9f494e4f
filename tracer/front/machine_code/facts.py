"""What a cubin does to memory, by the lines of the PTX that it was made of; and its schedule."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from ....lazy_dataclass import dataclass
from ....traces.machine_schedule import Scheduled
from .decode import BYTES, MachineInstruction, decode
from .elf import sections
from .line_table import read_lines
from .schedule import read_schedule

ByLine: TypeAlias = Mapping[int, Sequence[MachineInstruction]]
"""Machine instructions that access memory or branch, by the PTX line that they come from."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is read of a kernel's machine code; in its `schedule` a pc is a line of the PTX."""

    by_line: ByLine = field(default_factory=dict)
    schedule: Sequence[Scheduled] = ()


def read_facts(cubin: bytes, kernel: str) -> Facts:
    """Return those of a kernel; none where it has functions of its own, or no line table.

    The cubin is of PTX of `mark_lines`, assembled with `-lineinfo`.
    """
    known = {each.name: each for each in sections(cubin)}
    code, table = known.get(f".text.{kernel}"), known.get(".debug_line")
    lines = read_lines(table.of(cubin)) if code and table else {}
    if code is None or not lines:
        return Facts()
    line, last = dict[int, int](), 0
    for address in range(0, code.size, BYTES):
        last = line[address] = lines.get(address, last)
    found: dict[int, list[MachineInstruction]] = {}
    for each in decode(code.of(cubin)):
        found.setdefault(line[each.address], []).append(each)
    return Facts(found, tuple(read_schedule(code.of(cubin), line)))
