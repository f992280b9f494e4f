"""Feature fallback: instructions that a device lacks, replaced as its own compiler does."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from ....base.dataclass import dataclass
from ....traces.identity_cache import cached_by_identity
from ..interface.model import Kind
from ..rows.sites import Instruction

READ_ONLY_SINCE = (3, 5)
"""The first capability with a path for `ld.global.nc` (CUDA C Programming Guide 7.5, G.4.2)."""
COLLISIONS_SINCE = {"counted": (5, 0), "elected": (8, 0)}
"""The first capabilities with the instructions for each: `ATOMS.POPC.INC` and `REDUX`."""


def adapt_kinds(kinds: Sequence[Kind], capability: tuple[int, int], dlcm: str) -> tuple[Kind, ...]:
    """Return the kinds as a device's own compiler would have made them."""
    return tuple(_adapt(kind, capability, dlcm) for kind in kinds)


def _adapt(kind: Kind, capability: tuple[int, int], dlcm: str) -> Kind:
    if kind.cache == "nc" and capability < READ_ONLY_SINCE:
        return replace(kind, cache=dlcm)
    if capability < COLLISIONS_SINCE.get(kind.collision, (0, 0)):
        return replace(kind, collision="serial")
    return kind


@dataclass(frozen=True, slots=True)
class _Feature:
    """A feature that devices before `since` lack, and its substitute in the counts."""

    what: str
    since: tuple[int, int]
    instead: str
    used_by: Callable[[Instruction], bool]


def _copies(row: Instruction) -> bool:
    return row["access"] == "copy" and row["bytes"] != 0


def _loads_matrices(row: Instruction) -> bool:
    return row["opcode"] in ("ldmatrix", "stmatrix")


def _atomic(space: str, size: int) -> Callable[[Instruction], bool]:
    """Return a test for atomics of `size` bytes on a state space."""
    kinds = [(access, space, size) for access in ("atomic", "reduction")]
    return lambda row: (row["access"], row["space"], row["bytes"]) in kinds


_FEATURES = (
    _Feature(
        "read-only loads", READ_ONLY_SINCE, "plain global loads", lambda r: r["cache"] == "nc"
    ),
    _Feature("asynchronous copies", (8, 0), "a load and a store", _copies),
    _Feature("bulk copies", (9, 0), "nothing", lambda r: r["access"] == "bulk"),
    _Feature("matrix loads", (7, 5), "16 bytes for each row of a matrix", _loads_matrices),
    _Feature("32-bit atomics on global memory", (1, 1), "on 1.1", _atomic("global", 4)),
    _Feature("64-bit atomics on global memory", (1, 2), "on 1.2", _atomic("global", 8)),
    _Feature("atomics on shared memory", (1, 2), "on 1.2", _atomic("shared", 4)),
    _Feature("64-bit atomics on shared memory", (2, 0), "on 2.0", _atomic("shared", 8)),
)
"""CUDA C Programming Guide 4.2, table F-1 (1.x, 2.x); 7.5, G.4 (3.5); 13, 10.26 and PTX ISA."""


@cached_by_identity
def substitute(instructions: pa.Table, capability: tuple[int, int]) -> tuple[str, ...]:
    """List the features that a kernel uses and a device lacks, with their substitutes."""
    rows = instructions.select(["opcode", "access", "space", "bytes", "cache"]).to_pylist()
    substitutes = []
    for feature in _FEATURES:
        uses = sum(feature.used_by(row) for row in rows) if capability < feature.since else 0
        if uses:
            since = ".".join(map(str, feature.since))
            substitutes.append(
                f"{feature.what} (from {since} on; {uses} in the code) counted as {feature.instead}"
            )
    return tuple(substitutes)
