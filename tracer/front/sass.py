"""Read a cubin: its memory accesses and branches by PTX line, and its instruction schedule.

The PTX is marked with its own line numbers before assembly (`mark_lines`), so the cubin's DWARF
line table maps each machine instruction to a PTX line. The file parses the ELF sections, the line
program and the few fields of an instruction that it needs.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...traces.machine_schedule import CODE_BYTES, Scheduled

OPERATIONS = {
    **{0x180: "LD", 0x181: "LDG", 0x183: "LDL", 0x184: "LDS", 0x185: "ST", 0x186: "STG"},
    **{0x187: "STL", 0x188: "STS", 0x18A: "ATOM", 0x18B: "ATOM", 0x18C: "ATOMS", 0x18D: "ATOMS"},
    **{
        0x18E: "RED",
        0x1A6: "RED",
        0x1A3: "ATOMG",
        0x1A8: "ATOMG",
        0x1A9: "ATOMG",
        0x1AE: "LDGSTS",
        0x03B: "LDSM",
    },
    **{0x147: "BRA", 0x149: "BRX", 0x14D: "EXIT"},
}
"""Machine operations that access memory or change the control flow."""
_PLAIN = frozenset({"LD", "LDG", "LDL", "LDS", "ST", "STG", "STL", "STS"})
_WIDTHS = (1, 1, 2, 2, 4, 8, 16, 0)


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """A machine instruction; `guarded` is True for `@P0`.

    `bytes` is the size of one lane's access, 0 for anything but a load or a store. `operation`
    starts with `!` if it never executes: `@!PT LDS RZ, [RZ]`.
    """

    address: int
    operation: str
    bytes: int
    guarded: bool


def decode(code: bytes) -> Iterator[MachineInstruction]:
    """Yield the instructions that access memory or change the control flow."""
    for address in range(0, len(code) - CODE_BYTES + 1, CODE_BYTES):
        word = int.from_bytes(code[address : address + CODE_BYTES], "little")
        operation, predicate = OPERATIONS.get(word & 0x1FF), word >> 12 & 15
        if operation and predicate == 15:
            yield MachineInstruction(address, f"!{operation}", 0, True)
        elif operation:
            width = _WIDTHS[word >> 73 & 7] if operation in _PLAIN else 0
            yield MachineInstruction(address, operation, width, predicate != 7)


ByLine: TypeAlias = Mapping[int, Sequence[MachineInstruction]]
"""Machine instructions that access memory or branch, by their PTX line."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts read from a kernel's machine code; a pc in `schedule` is a PTX line."""

    by_line: ByLine = field(default_factory=dict)
    schedule: Sequence[Scheduled] = ()


def read_facts(cubin: bytes, kernel: str, arch: int) -> Facts:
    """Return the facts of a kernel for an architecture (90); empty if it calls functions or has no
    line table.

    The cubin comes from PTX of `mark_lines`, assembled with `-lineinfo`.
    """
    sections_by_name = {each.name: each for each in sections(cubin)}
    code, table = sections_by_name.get(f".text.{kernel}"), sections_by_name.get(".debug_line")
    lines = read_lines(table.of(cubin)) if code and table else {}
    if code is None or not lines:
        return Facts()
    line, last = dict[int, int](), 0
    for address in range(0, code.size, CODE_BYTES):
        last = line[address] = lines.get(address, last)
    facts_by_line: dict[int, list[MachineInstruction]] = {}
    for each in decode(code.of(cubin)):
        facts_by_line.setdefault(line[each.address], []).append(each)
    return Facts(facts_by_line, tuple(read_schedule(code.of(cubin), line, arch)))


@dataclass(frozen=True, slots=True)
class Section:
    """An ELF section: its offset in the file, its size in bytes, and its field `sh_info`."""

    name: str
    start: int
    size: int
    info: int

    def of(self, elf: bytes) -> bytes:
        """Return the section's bytes."""
        return elf[self.start : self.start + self.size]


def sections(elf: bytes) -> Iterator[Section]:
    """Yield the sections of a file."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", elf, table + i * entry) for i in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        name = elf[start : elf.index(b"\0", start)].decode()
        yield Section(name, header[4], header[5], header[7])


def attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the attributes of a section `.nv.info`: their number and value, of two bytes where it
    has no size.

    Their numbers are named EIATTR_* by `cuobjdump -elf`.
    """
    place = 0
    while place + 4 <= len(info):
        form, number, size = struct.unpack_from("<BBH", info, place)
        place += 4
        if form == _SIZED:
            yield number, info[place : place + size]
            place += size
        else:
            yield number, info[place - 2 : place]


_SIZED = 4
"""The format of an attribute whose value follows it."""

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _FIXED_ADVANCE, _CONST_ADD = 1, 2, 3, 9, 8
_END_OF_SEQUENCE = 1


def read_lines(table: bytes) -> dict[int, int]:
    """Return the line at each address where one starts; empty for several functions.

    With several functions addresses are ambiguous: each function's start at 0.
    """
    rows = list(_rows(table))
    ends = sum(line is None for _, line in rows)
    return {at: line for at, line in rows if line is not None} if ends == 1 else {}


def _rows(table: bytes) -> Iterator[tuple[int, int | None]]:
    """Yield address and line of each row; the end of a sequence has no line."""
    place = 0
    while place + 15 <= len(table):
        length, version, header = struct.unpack_from("<IHI", table, place)
        end, program = place + 4 + length, place + 10 + header
        least, *header_fields = table[place + 10 : place + 10 + (5 if version < 4 else 6)]
        line_base, line_range, first_special = header_fields[-3:]
        lengths = table[
            place + 10 + len(header_fields) + 1 : place + 10 + len(header_fields) + first_special
        ]
        signed = line_base - 256 if line_base > 127 else line_base
        yield from _run(table[program:end], least, (signed, line_range, first_special), lengths)
        place = end


def _run(
    code: bytes, least: int, special: tuple[int, int, int], lengths: bytes
) -> Iterator[tuple[int, int | None]]:
    # The state machine of DWARF's line number program. A special opcode advances address and line
    # at once; unknown opcodes are skipped by their operand counts in `lengths`.
    line_base, line_range, first_special = special
    place, address, line = 0, 0, 1
    while place < len(code):
        op, place = code[place], place + 1
        if op >= first_special:
            step, line_step = divmod(op - first_special, line_range)
            address, line = address + step * least, line + line_base + line_step
            yield address, line
        elif op == 0:
            size, place = _unsigned(code, place)
            if code[place] == _END_OF_SEQUENCE:
                yield address, None
                address, line = 0, 1
            place += size
        elif op == _COPY:
            yield address, line
        elif op == _ADVANCE_PC:
            step, place = _unsigned(code, place)
            address += step * least
        elif op == _ADVANCE_LINE:
            step, place = _signed(code, place)
            line += step
        elif op == _CONST_ADD:
            address += (255 - first_special) // line_range * least
        elif op == _FIXED_ADVANCE:
            address, place = address + struct.unpack_from("<H", code, place)[0], place + 2
        else:
            for _ in range(lengths[op - 1]):
                _, place = _unsigned(code, place)


def _unsigned(code: bytes, place: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and its end."""
    value = shift = 0
    while True:
        byte, place = code[place], place + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place


def _signed(code: bytes, place: int) -> tuple[int, int]:
    start = place
    value, place = _unsigned(code, place)
    sign = 1 << (7 * (place - start) - 1)
    return value - 2 * sign if value & sign else value, place


_BRANCHES = frozenset({0x143, 0x144, 0x147})
"""BRA, and CALL to an address in the same function."""
_ALWAYS = 7
_SPLIT_OFFSETS = 90


def read_schedule(code: bytes, pcs: Mapping[int, int], arch: int) -> Iterator[Scheduled]:
    """Yield the instructions of a function in order; `pcs` maps addresses to pcs."""
    for address in range(0, len(code) - CODE_BYTES + 1, CODE_BYTES):
        word = int.from_bytes(code[address : address + CODE_BYTES], "little")
        operation, control = word & 0x1FF, word >> 105
        yield Scheduled(
            pc=pcs[address],
            operation=operation,
            stall=control & 15,
            sets=control >> 5 & 7,
            reads=control >> 8 & 7,
            waits=control >> 11 & 63,
            guarded=int(word >> 12 & 15 != _ALWAYS),
            target=_target(word, address, arch) if operation in _BRANCHES else -1,
        )


def _target(word: int, address: int, arch: int) -> int:
    """Return a branch's target: the offset counts words of four bytes from the next instruction.

    9.0 split the offset: its lowest 8 bits are elsewhere.
    """
    if arch < _SPLIT_OFFSETS:
        words = word >> 34 & (1 << 38) - 1
    else:
        words = (word >> 34 & (1 << 30) - 1) << 8 | word >> 16 & 0xFF
    signed = words - (1 << 38) if words >> 37 else words
    return (address + 4 * signed) // CODE_BYTES + 1
