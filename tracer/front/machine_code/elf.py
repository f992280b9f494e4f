"""Sections of a cubin, which is a 64-bit little-endian ELF file."""

import struct
from collections.abc import Iterator

from ....lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A section: where its bytes begin in the file, and how many there are."""

    name: str
    start: int
    size: int

    def of(self, elf: bytes) -> bytes:
        """Its bytes."""
        return elf[self.start : self.start + self.size]


def sections(elf: bytes) -> Iterator[Section]:
    """Yield the sections of a file."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    entry, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * entry) for i in range(count)]
    strings = headers[names][4]
    for header in headers:
        start = strings + header[0]
        name = elf[start : elf.index(b"\0", start)].decode()
        yield Section(name, header[4], header[5])
