"""Sites: the access of each instruction of a kernel to each state space.

A site is an instruction with the space of a row: a generic load has rows in several spaces,
`cp.async` reads one and writes another.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....traces.identity_cache import cached_by_identity
from ....traces.schema import STRONG_LOADS, Array, Space
from ....traces.unique import sorted_places
from ..interface.model import ACCESSES, MULTICAST, Ints, Kind

SPACES = 8
"""Sites per instruction: more than there are values of Space."""

_SHARED = ("spun", "turn")
"""Collisions of shared memory: in other spaces the same instruction has none of these loops."""

BURST, LONGEST = 8, 128
"""The most instructions from one store of a burst to the next, and to the last."""
_CACHED = 1 << Space.GLOBAL | 1 << Space.LOCAL
"""The spaces of accesses that begin or end a burst."""

Instruction = Mapping[str, object]
"""A row of `traces.schema.INSTRUCTIONS`."""


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """`kind` (pcs * SPACES,) maps pc * SPACES + space to an index in `kinds`, or to -1; `width`
    (pcs * SPACES,) is that kind's, in bytes per lane. `lag` (pcs,) is by how many instructions a
    store follows the first of its burst, else 0.
    """

    kinds: tuple[Kind, ...]
    kind: Ints
    width: Ints
    lag: Ints

    def locate(self, pc: Ints, space: Ints) -> Ints:
        """Return the site of each row, (n,).

        Raises `CutraceError` if a row is in a space that its instruction cannot reach.
        """
        sites = np.where(space < SPACES, pc * SPACES + space, 0)  # 0: no space has number 0
        wrong = np.flatnonzero(self.kind[sites] < 0)
        if len(wrong):
            self.refuse(int(pc[wrong[0]]), int(space[wrong[0]]))
        return sites

    def refuse(self, pc: int, space: int) -> NoReturn:
        """Raise the error that an instruction cannot reach the space of a row."""
        raise broken(f"instruction {pc} has no accesses to space {space}, but rows say so")


def broken(what: str) -> CutraceError:
    """Return the error of an inconsistent trace."""
    return CutraceError(f"broken trace: {what}; `cutrace info --verify` lists the errors")


@cached_by_identity
def read_sites(instructions: pa.Table, dlcm: str) -> Sites:
    """Return the sites of a kernel; `dlcm` is the default cache operator of global loads."""
    kinds: dict[Kind, int] = {}
    kind = np.full(len(instructions) * SPACES, -1, np.int64)
    columns = ["pc", "mnemonic", "bytes", "cache", "access", "reads", "writes", "order", "scope"]
    columns.append("collision")
    rows = instructions.select(columns).to_pylist()
    for row in rows:
        for space in Space if row["access"] else ():
            site_kind = _kind(row, space, dlcm)
            if site_kind.access in ACCESSES.get(site_kind.space, ()):
                kind[row["pc"] * SPACES + space] = kinds.setdefault(site_kind, len(kinds))
    widths = np.array([*(site_kind.width for site_kind in kinds), 0])  # the last is for -1
    return Sites(tuple(kinds), kind, widths[kind], _lags(rows))


def _lags(rows: Sequence[Instruction]) -> Ints:
    """Return by how many instructions each store follows the first of its burst: stores without
    another access between, each at most BURST instructions after the last one, all within LONGEST.
    """
    lags = np.zeros(len(rows), np.int64)
    first, last = 0, -BURST - 1
    for pc, row in enumerate(rows):
        reads, writes = (int(str(row[name])) & _CACHED for name in ("reads", "writes"))
        if row["access"] == "store" and writes:
            if pc - last > BURST or pc - first > LONGEST:
                first = pc
            last, lags[pc] = pc, pc - first
        elif reads or writes:
            last = -BURST - 1
    return lags


def _kind(row: Instruction, space: Space, dlcm: str) -> Kind:
    """Return the kind of an instruction in a space; its access is empty if it has none."""
    access, cache = access_to(row, space), str(row["cache"])
    if not cache and space is Space.GLOBAL and access == "load" and row["access"] != "bulk":
        cache = "strong" if row["order"] in STRONG_LOADS and row["scope"] != "cta" else dlcm
    collision = str(row["collision"])
    if space is not Space.SHARED and collision in _SHARED:
        collision = "serial"
    is_bulk = row["access"] == "bulk"
    if is_bulk and "multicast" in str(row["mnemonic"]):
        cache = MULTICAST
    name = "bulk" if is_bulk and space is Space.GLOBAL else space.name.lower()
    return Kind(name, access, cache, int(str(row["bytes"])), collision=collision)


def access_to(row: Instruction, space: Space) -> str:
    """Return the access of an instruction to a space, or `""`."""
    reads, writes = (int(str(row[name])) >> space & 1 for name in ("reads", "writes"))
    if not reads and not writes:
        return ""
    if row["access"] in ("copy", "bulk"):
        return ("reduction" if reads else "store") if writes else "load"
    return str(row["access"])


def element_bytes(type_: str) -> int:
    """Return the bytes of one element of a PTX type, 0 for a type without a size.

    >>> element_bytes("f32"), element_bytes("b64"), element_bytes("f16x2"), element_bytes("")
    (4, 8, 4, 0)
    """
    match = re.fullmatch(r"[a-z]+(\d+)(?:x(\d+))?", type_)
    return int(match[1]) * int(match[2] or 1) // 8 if match else 0


SPACE_SHIFT = 56
MIXED = "mixed"


@dataclass(frozen=True, slots=True, eq=False)
class Zones:
    """Zones of the address line: `cuts` (zones - 1,) are the boundaries, `names` (zones,) those of
    the arrays, or empty for a gap.
    """

    cuts: Ints
    names: tuple[str, ...]

    def find(self, places: Ints) -> Ints:
        """Return the zone of each place (n,), `space << SPACE_SHIFT | address`."""
        return np.searchsorted(self.cuts, places, side="right")


def cut_zones(arrays: Sequence[Array]) -> Zones:
    """Cut the address line at the arrays' bounds; where two overlap, the later one begins."""
    cuts: list[int] = []
    names = [""]
    ordered = sorted(arrays, key=lambda array: (array.space, array.offset))
    for number, array in enumerate(ordered):
        start = (array.space << SPACE_SHIFT) + array.offset
        end = start + array.bytes
        if number + 1 < len(ordered):
            after = ordered[number + 1]
            end = min(end, (after.space << SPACE_SHIFT) + after.offset)
        if end > start:
            cuts += [start, end]
            names += [array.name, ""]
    return Zones(np.array(cuts, np.int64), tuple(names))


DENSE = 1 << 20
"""Up to this size a lookup table numbers the rows; beyond, they are sorted."""


def number_rows(keys: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct keys, and each row's index in them; 0 <= keys < size."""
    if size > max(DENSE, 4 * len(keys)):
        if (keys[1:] > keys[:-1]).all():
            return keys, np.arange(len(keys))
        distinct, _, number = sorted_places(keys)
        return distinct, number
    presence = np.zeros(size, np.bool_)
    presence[keys] = True
    distinct = np.flatnonzero(presence)
    table = np.empty(size, np.int64)
    table[distinct] = np.arange(len(distinct))
    return distinct, table[keys]
