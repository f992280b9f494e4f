"""SASS: the properties of a machine instruction by its mnemonic (`LDG.E.64.CONSTANT`).

The columns of `schema.INSTRUCTIONS` follow from the opcode (sass.toml) and its modifiers, as they
do for PTX.
"""

import re
import tomllib
from functools import lru_cache
from pathlib import Path

from ...base.dataclass import dataclass
from ..schema import Space

G, S = Space.GLOBAL, Space.SHARED


def _by_opcode(table: str) -> dict[str, str]:
    """Return what a table of sass.toml says of each opcode."""
    return {opcode: key for key, opcodes in _TABLES[table].items() for opcode in opcodes.split()}


_TABLES = tomllib.loads(Path(__file__).with_name("sass.toml").read_text(encoding="utf-8"))
_ACCESSES = {opcode: key.split() for opcode, key in _by_opcode("accesses").items()}
UNTRACED = frozenset(_by_opcode("untraced"))
_ARITHMETIC = {opcode: key.split() for opcode, key in _by_opcode("arithmetic").items()}
_CLASS_OF = dict.fromkeys((*_ACCESSES, *UNTRACED), "memory") | _by_opcode("classes")

_BRANCHES = frozenset({"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "BRK", "CONT"})
_UPDATES = {
    name: name.lower()
    for name in ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS")
} | {"SAFEADD": "add"}
ATOMIC = ("atomic", "reduction")
_CACHES = {
    **{"CONSTANT": "nc", "CI": "nc", "EF": "cs", "LU": "lu", "CG": "cg", "CS": "cs", "CV": "cv"},
    **{"CA": "ca", "WB": "wb", "WT": "wt"},
}
_SCOPES = {"CTA": "cta", "SM": "cta", "GPU": "gpu", "SYS": "sys", "CLUSTER": "cluster"}
_ORDERS = {"WEAK": "weak", "STRONG": "relaxed", "MMIO": "mmio", "CONSTANT": "weak"}
_BITS = re.compile(r"[USF]?(8|16|32|64|128|256)")


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns of `schema.INSTRUCTIONS` of the same names; `kind` is its column `class`."""

    opcode: str
    kind: str
    operation: str
    values: int
    flops: int
    bytes: int
    cache: str
    access: str
    reads: int
    writes: int
    order: str
    scope: str
    collision: str
    barrier: int | None
    space: str


@lru_cache(maxsize=4096)
def facts_of(mnemonic: str) -> Facts:
    """Return the facts of a mnemonic; an unknown one has class `other`."""
    opcode, *modifiers = mnemonic.split(".")
    plain = (_CLASS_OF.get(opcode, "other"), "", "1", "0")
    kind, operation, values, flops = _ARITHMETIC.get(opcode, plain)
    access, *named = _ACCESSES.get(opcode, ("",))
    spaces = tuple(Space[name.upper()] for name in named)
    reads, writes = _reach(access, spaces)
    order = next((_ORDERS[m] for m in modifiers if m in _ORDERS), "")
    strong = order not in ("", "weak")
    return Facts(
        opcode=opcode,
        kind=kind,
        operation=operation or _other_operation(opcode, modifiers, access),
        values=int(values),
        flops=int(flops),
        bytes=_bytes(opcode, modifiers) if access else 0,
        cache=next((_CACHES[m] for m in modifiers if m in _CACHES), "") if access else "",
        access=access,
        reads=reads,
        writes=writes,
        order=order or ("weak" if access in ("load", "store") else ""),
        scope=next((_SCOPES[m] for m in modifiers if m in _SCOPES), "") if strong else "",
        collision=_collision(modifiers) if access in ATOMIC else "",
        barrier=0 if opcode == "BAR" else None,
        space=named[0] if len(named) == 1 else "",
    )


def _reach(access: str, spaces: tuple[Space, ...]) -> tuple[int, int]:
    """Return the spaces that an instruction reads and writes, as bit masks."""
    if access == "copy":
        return 1 << G, 1 << S
    bits = sum(1 << space for space in spaces)
    return bits * (access not in ("store", "")), bits * (access not in ("load", ""))


def _bytes(opcode: str, modifiers: list[str]) -> int:
    """Return the bytes that a lane moves; for a matrix load, the row whose address it supplies."""
    if opcode in ("LDSM", "STSM"):
        return 16
    matches = (_BITS.fullmatch(modifier) for modifier in modifiers)
    return next((int(match[1]) // 8 for match in matches if match), 4)


def _other_operation(opcode: str, modifiers: list[str], access: str) -> str:
    """Return the operation of an instruction that is not floating-point arithmetic."""
    if access in ATOMIC:
        return next((_UPDATES[m] for m in modifiers if m in _UPDATES), "")
    if opcode in _BRANCHES:
        return "branch"
    return "arrive" if opcode == "BAR" and "ARV" in modifiers else ""


def _collision(modifiers: list[str]) -> str:
    """Return how colliding lanes are resolved; in SASS `elected` is explicit code, not a rule."""
    if "CAS" in modifiers:
        return "compared"
    if "SPIN" in modifiers:
        return "turn"
    return "counted" if {"POPC", "INC"} <= {*modifiers} else "serial"
