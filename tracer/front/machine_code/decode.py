"""What a machine instruction of Volta and later does to memory, as far as counts need it.

An instruction has 16 bytes. Its lowest 9 bits are the operation, bits 12 to 14 the predicate that
guards it (7: none) with its sign in bit 15; loads and stores have their width in bits 73 to 75.

Source: seen by `nvdisasm`, and as Mesa's open compiler for these chips writes them.
"""

from collections.abc import Iterator

from ....lazy_dataclass import dataclass

BYTES = 16
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
"""Operations that access memory or leave the straight way."""
_PLAIN = frozenset({"LD", "LDG", "LDL", "LDS", "ST", "STG", "STL", "STS"})
_WIDTHS = (1, 1, 2, 2, 4, 8, 16, 0)


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """`bytes` is what a lane moves, 0 where it is not a load or a store; `guarded`: `@P0`.

    `operation` begins with `!` where it never runs: `@!PT LDS RZ, [RZ]`.
    """

    address: int
    operation: str
    bytes: int
    guarded: bool


def decode(code: bytes) -> Iterator[MachineInstruction]:
    """Yield the instructions that access memory or leave the straight way."""
    for address in range(0, len(code) - BYTES + 1, BYTES):
        word = int.from_bytes(code[address : address + BYTES], "little")
        operation, predicate = OPERATIONS.get(word & 0x1FF), word >> 12 & 15
        if operation and predicate == 15:
            yield MachineInstruction(address, f"!{operation}", 0, True)
        elif operation:
            width = _WIDTHS[word >> 73 & 7] if operation in _PLAIN else 0
            yield MachineInstruction(address, operation, width, predicate != 7)
