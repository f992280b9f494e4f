"""Kernels of which there is machine code alone: found by name, with their resources, but not run.

A library chooses among its kernels by what they need, so their modules load; a launch is refused
with the kernel's name. A cubin is an ELF file: a section `.text.NAME` for each kernel,
`.nv.shared.NAME` with static shared memory, `.nv.info` and `.nv.info.NAME` with attributes.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import CutraceError

_HEAD = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_Sections: TypeAlias = Mapping[str, tuple[int, ...]]
_TEXT, _SHARED, _INFO = ".text.", ".nv.shared.", ".nv.info."
_WITH_PAYLOAD = 4
_PARAMETERS, _MOST_THREADS, _REGISTERS = 0x0A, 0x05, 0x2F
"""EIATTR_PARAM_CBANK, EIATTR_MAX_THREADS and EIATTR_REGCOUNT, as cuobjdump -elf names them."""

_RESERVED, _RESERVED_BYTES = ".nv.shared.reserved.0", 1024
"""Where this section is, static shared memory has the system's kilobyte before the kernel's own."""


@dataclass(frozen=True, slots=True)
class MachineKernel:
    """A kernel: registers a thread, bytes of static shared memory and of parameters."""

    name: str
    registers: int
    shared: int
    parameters: int
    threads: tuple[int, ...]


def read_cubin(data: bytes) -> list[MachineKernel]:
    """Return the kernels of a cubin; raise CutraceError if it is cut off."""
    try:
        return list(_kernels(data))
    except (struct.error, ValueError, IndexError) as error:
        raise CutraceError("a module's machine code is cut off or damaged") from error


def _kernels(data: bytes) -> Iterator[MachineKernel]:
    start, size, count, names = _HEAD.unpack_from(data)
    heads = [_SECTION.unpack_from(data, start + number * size) for number in range(count)]
    text = heads[names][4]
    sections = {_name(data, text + head[0]): head for head in heads}
    registers = dict(_registers(data, sections))
    reserved = _RESERVED_BYTES if _RESERVED in sections else 0
    for name, head in sections.items():
        if name.startswith(_TEXT):
            kernel = name.removeprefix(_TEXT)
            facts = dict(_attributes(_bytes_of(data, sections, _INFO + kernel)))
            parameters = facts.get(_PARAMETERS, bytes(8))
            most = facts.get(_MOST_THREADS, b"")
            shared = sections[_SHARED + kernel][5] - reserved if _SHARED + kernel in sections else 0
            yield MachineKernel(
                kernel,
                registers.get(head[7] & 0xFFFFFF, head[7] >> 24),
                shared,
                int.from_bytes(parameters[6:8], "little"),
                struct.unpack(f"<{len(most) // 4}I", most),
            )


def _registers(data: bytes, sections: _Sections) -> Iterator[tuple[int, int]]:
    """Yield the number of registers by the number of a kernel's symbol; sh_info has it, too."""
    for kind, value in _attributes(_bytes_of(data, sections, _INFO.rstrip("."))):
        if kind == _REGISTERS:
            symbol, count = struct.unpack("<II", value)
            yield symbol, count


def _bytes_of(data: bytes, sections: _Sections, name: str) -> bytes:
    if name not in sections:
        return b""
    offset, size = sections[name][4:6]
    return data[offset : offset + size]


def _name(data: bytes, at: int) -> str:
    return data[at : data.index(0, at)].decode("ascii", "replace")


def _attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(info):
        form, kind, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == _WITH_PAYLOAD:
            yield kind, info[at : at + size]
            at += size


def write_stubs(kernels: Sequence[MachineKernel], capability: int) -> str:
    """Return PTX that declares the kernels: parameters, shared memory, largest blocks."""
    head = f".version 8.0\n.target sm_{capability}\n.address_size 64\n"
    return head + "".join(map(_stub, kernels))


def _stub(kernel: MachineKernel) -> str:
    parameter = f".param .align 8 .b8 p[{kernel.parameters}]" if kernel.parameters else ""
    most = f".maxntid {', '.join(map(str, kernel.threads))}\n" if kernel.threads else ""
    shared = f".shared .align 16 .b8 s[{kernel.shared}];\n" if kernel.shared else ""
    use = "mov.u32 %r, s;\n" if kernel.shared else ""
    return (
        f".visible .entry {kernel.name}({parameter})\n{most}"
        f"{{\n{shared}.reg .b32 %r;\n{use}ret;\n}}\n"
    )
