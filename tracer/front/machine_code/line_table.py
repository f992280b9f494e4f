"""The line table of a cubin: which line of a text each machine instruction comes from.

Source: DWARF Debugging Information Format, version 2, 6.2 (Line Number Information). ptxas adds
extended opcodes of its own, which are skipped by their length.
"""

import struct
from collections.abc import Iterator

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _FIXED_ADVANCE, _CONST_ADD = 1, 2, 3, 9, 8
_END_OF_SEQUENCE = 1


def read_lines(table: bytes) -> dict[int, int]:
    """Return the line at each address where one begins; nothing where there are several functions.

    Of a cubin with one function: each further one has addresses of its own from 0 on.
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
        least, *rest = table[place + 10 : place + 10 + (5 if version < 4 else 6)]
        line_base, line_range, first_special = rest[-3:]
        lengths = table[place + 10 + len(rest) + 1 : place + 10 + len(rest) + first_special]
        signed = line_base - 256 if line_base > 127 else line_base
        yield from _run(table[program:end], least, (signed, line_range, first_special), lengths)
        place = end


def _run(
    code: bytes, least: int, special: tuple[int, int, int], lengths: bytes
) -> Iterator[tuple[int, int | None]]:
    line_base, line_range, first_special = special
    place, address, line = 0, 0, 1
    while place < len(code):
        op, place = code[place], place + 1
        if op >= first_special:
            step, rest = divmod(op - first_special, line_range)
            address, line = address + step * least, line + line_base + rest
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
    """A number in LEB128, and where it ends."""
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
