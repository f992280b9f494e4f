"""Operands: the registers that a PTX instruction reads and writes, from its text."""

import re
from functools import lru_cache

from ...lazy_dataclass import dataclass

_REGISTER = re.compile(r"%[a-zA-Z_$][\w$]*")
_NO_RESULT = ("st.", "red.", "bra", "bar", "ret", "exit", "membar", "fence", "prefetch", "cp.")


@dataclass(frozen=True, slots=True)
class Operands:
    """Names of registers; special ones (`%tid.x`) are there from the start and do not count."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]


_ADDRESS = re.compile(r"\[\s*(%?[\w$.]+)\s*([+-]\s*\w+)?\s*\]")


def read_address(text: str) -> tuple[str, str]:
    """The register of an instruction's address, and its offset; empty ones without an address.

    >>> read_address("ld.global.f32 %f1, [%rd5+8];"), read_address("bar.sync 0;")
    (('%rd5', '+8'), ('', ''))
    """
    found = _ADDRESS.search(text)
    return (found[1], found[2] or "+0") if found else ("", "")


@lru_cache(maxsize=1 << 14)
def read_operands(text: str) -> Operands:
    """Read an instruction's registers.

    >>> read_operands("@%p1 mad.lo.s32 %r1, %r3, %ntid.x, %r5;")
    Operands(writes=('%r1',), reads=('%p1', '%r3', '%r5'))
    >>> read_operands("ld.global.v2.f32 {%f1, %f2}, [%rd5+8];")
    Operands(writes=('%f1', '%f2'), reads=('%rd5',))
    >>> read_operands("st.global.f32 [%rd7], %f1;")
    Operands(writes=(), reads=('%rd7', '%f1'))
    """
    predicate, rest = "", text.strip()
    if rest.startswith("@"):
        predicate, _, rest = rest.partition(" ")
    mnemonic, _, operands = rest.strip().partition(" ")
    operands = re.sub(r"%(?:tid|ntid|ctaid|nctaid|laneid|clock\w*|warpid)(?:\.\w)?", "", operands)
    first, others = _split_first(operands)
    writes = () if mnemonic.startswith(_NO_RESULT) else tuple(_REGISTER.findall(first))
    reads = _REGISTER.findall(predicate + " " + (others if writes else operands))
    return Operands(writes, tuple(dict.fromkeys(reads)))


def _split_first(operands: str) -> tuple[str, str]:
    """The first operand, a whole vector if it is one, and the rest."""
    depth = 0
    for place, letter in enumerate(operands):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            return operands[:place], operands[place + 1 :]
    return operands, ""
