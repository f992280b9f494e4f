"""SASS: the properties of a machine instruction by its mnemonic (`LDG.E.64.CONSTANT`).

The columns of `schema.INSTRUCTIONS` follow from the opcode and its modifiers, as they do for PTX.

Sources: CUDA Binary Utilities, "Instruction Set Reference" (opcodes of each architecture); ISA_Def
of github.com/accel-sim/accel-sim-framework.
"""

import re
from functools import lru_cache

from ...base.dataclass import dataclass
from ..schema import Space

G, S, L = Space.GLOBAL, Space.SHARED, Space.LOCAL

_SPACES = {
    **dict.fromkeys(("LDG", "STG", "ATOMG", "RED"), (G,)),
    **dict.fromkeys(("LDS", "STS", "LDSM", "STSM", "ATOMS"), (S,)),
    **dict.fromkeys(("LDL", "STL"), (L,)),
    **dict.fromkeys(("LD", "ST", "ATOM"), (G, S, L)),
    "LDGSTS": (G, S),
}
"""State spaces that an opcode may access; a generic one may access three."""

_ACCESS = {
    **dict.fromkeys(("LD", "LDG", "LDS", "LDSM", "LDL"), "load"),
    **dict.fromkeys(("ST", "STG", "STS", "STSM", "STL"), "store"),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS"), "atomic"),
    "RED": "reduction",
    "LDGSTS": "copy",
}

UNTRACED = frozenset(
    {"LDC", "ULDC", "TEX", "TLD", "TLD4", "TXD", "TMML", "SULD", "SUST", "SUATOM", "SURED"}
    | {"UTMALDG", "UTMASTG", "UBLKCP", "UTMAREDG", "LDT", "STT", "LDCU"}
)
"""Instructions that access memory without an address register: tracers report no addresses."""

_ARITHMETIC = {
    **dict.fromkeys(("FADD", "FADD32I", "FSWZADD"), ("single", "add", 1, 1)),
    **dict.fromkeys(("FMUL", "FMUL32I"), ("single", "mul", 1, 1)),
    **dict.fromkeys(("FFMA", "FFMA32I"), ("single", "fma", 1, 2)),
    "MUFU": ("single", "special", 1, 1),
    "DADD": ("double", "add", 1, 1),
    "DMUL": ("double", "mul", 1, 1),
    "DFMA": ("double", "fma", 1, 2),
    **dict.fromkeys(("HADD2", "HADD2_32I"), ("half", "add", 2, 2)),
    "HMUL2": ("half", "mul", 2, 2),
    **dict.fromkeys(("HFMA2", "HFMA2_32I"), ("half", "fma", 2, 4)),
    "FADD2": ("single", "add", 2, 2),
    "FMUL2": ("single", "mul", 2, 2),
    "FFMA2": ("single", "fma", 2, 4),
}
"""Class, operation, values and floating-point operations per lane of an opcode."""

_CLASSES = {
    "single": ("FCHK", "FMNMX", "FMNMX3", "FSET", "FSETP"),
    "double": ("DMNMX", "DSET", "DSETP"),
    "half": ("HMNMX2", "HSET2", "HSETP2"),
    "integer": (
        *("BMSK", "BREV", "FLO", "IABS", "IADD", "IADD3", "IADD32I", "IDP", "IDP4A", "IMAD"),
        *("IMNMX", "IMUL", "IMUL32I", "ISCADD", "ISCADD32I", "ISETP", "LEA", "LOP", "LOP3"),
        *("LOP32I", "POPC", "SHF", "SHL", "SHR", "VABSDIFF", "VABSDIFF4", "VIADD", "VIADDMNMX"),
        *("VIMNMX", "VIMNMX3", "SGXT", "XMAD", "BFE", "BFI", "IADD2"),
    ),
    "conversion": ("F2F", "F2I", "I2F", "I2I", "I2IP", "I2FP", "F2IP", "F2FP", "FRND"),
    "control": (
        *("BRA", "BREAK", "BRX", "BRXU", "BSSY", "BSYNC", "CALL", "EXIT", "JMP", "JMX", "JMXU"),
        *("KILL", "RET", "RTT", "WARPSYNC", "YIELD", "SSY", "SYNC", "PBK", "BRK", "PCNT", "CONT"),
    ),
    "exchange": ("SHFL", "VOTE", "VOTEU", "MATCH", "REDUX"),
    "memory": (*_ACCESS, *sorted(UNTRACED), "CCTL", "CCTLL", "PREFETCH"),
}
_CLASS_OF = {opcode: kind for kind, opcodes in _CLASSES.items() for opcode in opcodes}

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
    plain = (_CLASS_OF.get(opcode, "other"), "", 1, 0)
    kind, operation, values, flops = _ARITHMETIC.get(opcode, plain)
    access, spaces = _ACCESS.get(opcode, ""), _SPACES.get(opcode, ())
    reads, writes = _reach(access, spaces)
    order = next((_ORDERS[m] for m in modifiers if m in _ORDERS), "")
    strong = order not in ("", "weak")
    return Facts(
        opcode=opcode,
        kind=kind,
        operation=operation or _other_operation(opcode, modifiers, access),
        values=values,
        flops=flops,
        bytes=_bytes(opcode, modifiers) if access else 0,
        cache=next((_CACHES[m] for m in modifiers if m in _CACHES), "") if access else "",
        access=access,
        reads=reads,
        writes=writes,
        order=order or ("weak" if access in ("load", "store") else ""),
        scope=next((_SCOPES[m] for m in modifiers if m in _SCOPES), "") if strong else "",
        collision=_collision(modifiers) if access in ATOMIC else "",
        barrier=0 if opcode == "BAR" else None,
        space=spaces[0].name.lower() if len(spaces) == 1 else "",
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
