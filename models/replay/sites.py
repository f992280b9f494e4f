"""Sites: what each instruction of a kernel does to each state space.

A site is an instruction together with the space that a row of it lies in: a generic load has rows
in several spaces, `cp.async` reads one and writes another.
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa

from ...errors import CutraceError
from ...traces.schema import Space
from .collisions import Instruction, find_collisions
from .seam import ACCESSES, Ints, Kind

SPACES = 8
"""Sites of an instruction: more than there are values of Space."""
STRONG = frozenset({"volatile", "relaxed", "acquire", "mmio"})
"""Loads that must see what other SMs have written."""
SAMPLING = frozenset({"tex", "tld4"})
"""Opcodes that sample textures; no other reaches that space."""
RETURNING = frozenset({"exch", "cas"})
"""Atomics for which there is no reduction, also if nobody reads their result."""

_OPCODES = {
    "ld": "load",
    "ldu": "load",
    "ldmatrix": "load",
    "suld": "load",
    "tex": "load",
    "tld4": "load",
    "st": "store",
    "stmatrix": "store",
    "sust": "store",
    "atom": "atomic",
    "red": "reduction",
    "sured": "reduction",
}
MEMORY = frozenset({*_OPCODES, "cp", "wmma"})
"""Opcodes that may access memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """`kind` (pcs * SPACES,) maps pc * SPACES + space to an index in `kinds`, or to -1; `width`
    (pcs * SPACES,) is that kind's, in bytes a lane.
    """

    kinds: tuple[Kind, ...]
    kind: Ints
    width: Ints

    def locate(self, pc: Ints, space: Ints) -> Ints:
        """Return the site of each row, (n,).

        Raises `CutraceError` if one lies in a space that its instruction cannot reach.
        """
        sites = np.where(space < SPACES, pc * SPACES + space, 0)  # 0: no space has number 0
        wrong = np.flatnonzero(self.kind[sites] < 0)
        if len(wrong):
            self.refuse(int(pc[wrong[0]]), int(space[wrong[0]]))
        return sites

    def refuse(self, pc: int, space: int) -> NoReturn:
        """Say that an instruction cannot reach the space that a row of it lies in."""
        raise CutraceError(
            f"broken trace: instruction {pc} has no accesses to space {space}, but rows say so; "
            "`cutrace info --verify` lists what is wrong"
        )


def read_sites(instructions: pa.Table, dlcm: str) -> Sites:
    """Return the sites of a kernel; `dlcm` is the operator of global loads that name none."""
    kinds: dict[Kind, int] = {}
    kind = np.full(len(instructions) * SPACES, -1, np.int64)
    columns = ["pc", "opcode", "mnemonic", "bytes", "cache", "result_read"]
    rows = instructions.select(columns).to_pylist()
    for row, collision in zip(rows, find_collisions(instructions), strict=True):
        for space in Space if row["opcode"] in MEMORY else ():
            found = _kind(row, space, dlcm, collision)
            if found.access in ACCESSES.get(found.space, ()):
                kind[row["pc"] * SPACES + space] = kinds.setdefault(found, len(kinds))
    widths = np.array([*(found.width for found in kinds), 0])  # the last is for -1
    return Sites(tuple(kinds), kind, widths[kind])


def _kind(row: Instruction, space: Space, dlcm: str, collision: str) -> Kind:
    """Return what an instruction does to a space; its access is empty if nothing."""
    access, cache = _access(row, space), str(row["cache"])
    if not cache and space is Space.GLOBAL and access == "load":
        names = set(str(row["mnemonic"]).split("."))
        cache = "strong" if STRONG & names and "cta" not in names else dlcm
    return Kind(space.name.lower(), access, cache, int(str(row["bytes"])), collision=collision)


def _access(row: Instruction, space: Space) -> str:
    """Return what an instruction does to a space, or `""`."""
    opcode, names = str(row["opcode"]), str(row["mnemonic"]).split(".")
    if (opcode in SAMPLING) != (space is Space.TEXTURE):
        return ""
    if opcode == "cp":  # cp.async.ca.shared.global: the destination is written first
        spaces = [name.partition("::")[0] for name in names if name.partition("::")[0] in ACCESSES]
        place = space.name.lower()
        return ("store" if place == spaces[0] else "load") if place in spaces else ""
    if opcode == "wmma":
        return names[1] if names[1] in ("load", "store") else ""
    if opcode == "atom" and not row["result_read"] and not RETURNING & {*names}:
        return "reduction"
    return _OPCODES.get(opcode, "")
