"""Kernels of which there is machine code alone: found by name, with their resources, but not run.

A library chooses among its kernels by what they need, so their modules load; a launch is refused
with the kernel's name. A cubin is an ELF file: a section `.text.NAME` for each kernel,
`.nv.shared.NAME` with static shared memory, `.nv.info` and `.nv.info.NAME` with attributes.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..front.sass import Section, attributes, sections

_TEXT, _SHARED, _INFO = ".text.", ".nv.shared.", ".nv.info."
_PARAMETERS, _MOST_THREADS, _REGISTERS = 0x0A, 0x05, 0x2F
"""EIATTR_PARAM_CBANK, EIATTR_MAX_THREADS and EIATTR_REGCOUNT, as cuobjdump -elf names them."""

_RESERVED, _RESERVED_BYTES = ".nv.shared.reserved.0", 1024
"""Where this section is, static shared memory has the system's kilobyte before the kernel's own."""


@dataclass(frozen=True, slots=True)
class KernelResources:
    """A kernel: registers a thread, bytes of static shared memory and of parameters."""

    name: str
    registers: int
    shared: int
    parameters: int
    threads: tuple[int, ...]


def read_cubin(data: bytes) -> list[KernelResources]:
    """Return the kernels of a cubin; raise CutraceError if it is cut off."""
    try:
        return list(_kernels(data))
    except (struct.error, ValueError, IndexError) as error:
        raise CutraceError("a module's machine code is cut off or damaged") from error


def _kernels(data: bytes) -> Iterator[KernelResources]:
    by_name = {each.name: each for each in sections(data)}
    registers = dict(_registers(data, by_name))
    reserved = _RESERVED_BYTES if _RESERVED in by_name else 0
    for name, section in by_name.items():
        if name.startswith(_TEXT):
            kernel = name.removeprefix(_TEXT)
            facts = dict(_attributes_of(data, by_name, _INFO + kernel))
            parameters = facts.get(_PARAMETERS, bytes(8))
            most = facts.get(_MOST_THREADS, b"")
            shared = by_name[_SHARED + kernel].size - reserved if _SHARED + kernel in by_name else 0
            yield KernelResources(
                kernel,
                registers.get(section.info & 0xFFFFFF, section.info >> 24),
                shared,
                int.from_bytes(parameters[6:8], "little"),
                struct.unpack(f"<{len(most) // 4}I", most),
            )


def _registers(data: bytes, by_name: Mapping[str, Section]) -> Iterator[tuple[int, int]]:
    """Yield the number of registers by the number of a kernel's symbol; sh_info has it, too."""
    for number, value in _attributes_of(data, by_name, _INFO.rstrip(".")):
        if number == _REGISTERS:
            symbol, count = struct.unpack("<II", value)
            yield symbol, count


def _attributes_of(
    data: bytes, by_name: Mapping[str, Section], name: str
) -> Iterator[tuple[int, bytes]]:
    return attributes(by_name[name].of(data) if name in by_name else b"")


def write_stubs(kernels: Sequence[KernelResources], capability: int) -> str:
    """Return PTX that declares the kernels: parameters, shared memory, largest blocks."""
    head = f".version 8.0\n.target sm_{capability}\n.address_size 64\n"
    return head + "".join(map(_stub, kernels))


def _stub(kernel: KernelResources) -> str:
    parameter = f".param .align 8 .b8 p[{kernel.parameters}]" if kernel.parameters else ""
    most = f".maxntid {', '.join(map(str, kernel.threads))}\n" if kernel.threads else ""
    shared = f".shared .align 16 .b8 s[{kernel.shared}];\n" if kernel.shared else ""
    use = "mov.u32 %r, s;\n" if kernel.shared else ""
    return (
        f".visible .entry {kernel.name}({parameter})\n{most}"
        f"{{\n{shared}.reg .b32 %r;\n{use}ret;\n}}\n"
    )
