"""A kernel's schedule: when the assembler lets each machine instruction start.

What the hardware does. Since Volta an instruction's upper bits say how many cycles its warp waits
before the next one, which of six scoreboards it sets until its result is there or its operands are
read, and for which of them it waits itself. A result of fixed latency has no scoreboard: the cycles
are told.

Source: Jia, Maggioni, Staiger and Scarpazza, Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking, 2018, 2.1 (control information); where branches go, as `nvdisasm` shows it.
"""

from collections.abc import Iterator, Mapping

from ....traces.machine_schedule import Scheduled
from .decode import BYTES

_BRANCHES = frozenset({0x143, 0x144, 0x147})
"""BRA, and CALL to an address of the same function."""
_ALWAYS = 7


def read_schedule(code: bytes, pcs: Mapping[int, int]) -> Iterator[Scheduled]:
    """Yield the instructions of a function in order; `pcs` are those of addresses."""
    for address in range(0, len(code) - BYTES + 1, BYTES):
        word = int.from_bytes(code[address : address + BYTES], "little")
        operation, control = word & 0x1FF, word >> 105
        yield Scheduled(
            pc=pcs[address],
            operation=operation,
            stall=control & 15,
            sets=control >> 5 & 7,
            reads=control >> 8 & 7,
            waits=control >> 11 & 63,
            guarded=int(word >> 12 & 15 != _ALWAYS),
            target=_target(word, address) if operation in _BRANCHES else -1,
        )


def _target(word: int, address: int) -> int:
    """The place where a branch goes, told in words of four bytes from the next instruction on."""
    words = (word >> 34 & (1 << 30) - 1) << 8 | word >> 16 & 0xFF
    signed = words - (1 << 38) if words >> 37 else words
    return (address + 4 * signed) // BYTES + 1
