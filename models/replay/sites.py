"""Sites: what each instruction of a kernel does to each state space, and what devices lack.

A site is an instruction together with the space that a row of it lies in: a generic load has rows
in several spaces, `cp.async` reads one and writes another.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...errors import CutraceError
from ...traces.schema import Space
from .seam import ACCESSES, Ints, Kind

SPACES = 8
"""Sites of an instruction: more than there are values of Space."""
ROW_BYTES = 16
"""What each address of `ldmatrix` and `stmatrix` names: a row of a matrix (PTX ISA, 9.7.14.5)."""

Instruction = Mapping[str, object]
"""A row of `traces.schema.INSTRUCTIONS`."""

_OPCODES = {
    "ld": "load",
    "ldu": "load",
    "ldmatrix": "load",
    "suld": "load",
    "st": "store",
    "stmatrix": "store",
    "sust": "store",
    "atom": "atomic",
    "red": "reduction",
    "sured": "reduction",
}


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
            raise CutraceError(
                f"broken trace: instruction {pc[wrong[0]]} has no accesses to space "
                f"{space[wrong[0]]}, but rows say so; `cutrace info --verify` lists what is wrong"
            )
        return sites


def read_sites(instructions: pa.Table, dlcm: str) -> Sites:
    """Return the sites of a kernel; `dlcm` is the operator of global loads that name none."""
    kinds: dict[Kind, int] = {}
    kind = np.full(len(instructions) * SPACES, -1, np.int64)
    for row in instructions.select(
        ["pc", "opcode", "mnemonic", "bytes", "cache", "result_read"]
    ).to_pylist():
        for space in Space:
            access = _access(row, space)
            if access in ACCESSES.get(space.name.lower(), ()):
                found = Kind(
                    space.name.lower(), access, _cache(row, space, access, dlcm), _width(row)
                )
                kind[row["pc"] * SPACES + space] = kinds.setdefault(found, len(kinds))
    widths = np.array([*(found.width for found in kinds), 0])  # the last is for -1
    return Sites(tuple(kinds), kind, widths[kind])


def _access(row: Instruction, space: Space) -> str:
    """Return what an instruction does to a space, or `""`."""
    opcode, names = str(row["opcode"]), str(row["mnemonic"]).split(".")
    if opcode == "cp":  # cp.async.ca.shared.global: the destination is written first
        spaces = [name.partition("::")[0] for name in names if name.partition("::")[0] in ACCESSES]
        place = space.name.lower()
        return ("store" if place == spaces[0] else "load") if place in spaces else ""
    if opcode == "wmma":
        return names[1] if names[1] in ("load", "store") else ""
    if opcode == "atom" and not row["result_read"]:
        return "reduction"
    return _OPCODES.get(opcode, "")


def _cache(row: Instruction, space: Space, access: str, dlcm: str) -> str:
    """Return the cache operator in effect."""
    if row["cache"] or space is not Space.GLOBAL or access != "load":
        return str(row["cache"])
    return dlcm


def _width(row: Instruction) -> int:
    """Return the bytes that a lane's address stands for."""
    if row["opcode"] in ("ldmatrix", "stmatrix"):
        return ROW_BYTES
    return int(str(row["bytes"]))


@dataclass(frozen=True, slots=True)
class _Feature:
    """Something that devices before `since` lack, and what is counted in its place."""

    what: str
    since: tuple[int, int]
    instead: str
    used_by: Callable[[Instruction], bool]


def _is_atomic(row: Instruction, space: str, *bytes_: int) -> bool:
    return row["opcode"] in ("atom", "red") and row["space"] == space and row["bytes"] in bytes_


_FEATURES: Sequence[_Feature] = (
    _Feature(
        "read-only loads",
        (3, 5),
        "plain global loads",
        lambda row: row["cache"] == "nc",
    ),
    _Feature(
        "asynchronous copies",
        (8, 0),
        "a load and a store",
        lambda row: str(row["mnemonic"]).startswith("cp.async") and row["bytes"] != 0,
    ),
    _Feature(
        "matrix loads",
        (7, 5),
        "16 bytes for each row of a matrix",
        lambda row: row["opcode"] in ("ldmatrix", "stmatrix"),
    ),
    _Feature(
        "32-bit atomics on global memory",
        (1, 1),
        "on 1.1",
        lambda row: _is_atomic(row, "global", 4),
    ),
    _Feature(
        "64-bit atomics on global memory",
        (1, 2),
        "on 1.2",
        lambda row: _is_atomic(row, "global", 8),
    ),
    _Feature(
        "atomics on shared memory",
        (1, 2),
        "on 1.2",
        lambda row: _is_atomic(row, "shared", 4),
    ),
    _Feature(
        "64-bit atomics on shared memory",
        (2, 0),
        "on 2.0",
        lambda row: _is_atomic(row, "shared", 8),
    ),
)
"""CUDA C Programming Guide 4.2, table F-1 (1.x, 2.x); 7.5, G.4 (3.5); 13, 10.26 and PTX ISA."""


def substitute(instructions: pa.Table, capability: tuple[int, int]) -> tuple[str, ...]:
    """List what a kernel uses and a device lacks, with what is counted instead."""
    rows = instructions.select(["opcode", "mnemonic", "space", "bytes", "cache"]).to_pylist()
    found = []
    for feature in _FEATURES:
        uses = sum(feature.used_by(row) for row in rows) if capability < feature.since else 0
        if uses:
            since = ".".join(map(str, feature.since))
            found.append(
                f"{feature.what} (from {since} on; {uses} in the code) counted as {feature.instead}"
            )
    return tuple(found)
