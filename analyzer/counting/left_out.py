"""Raw counters that a partial trace does not determine: their value is unknown, not 0."""

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np
import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...models.analyses.control import COUNTERS, LAUNCHED
from ...models.replay.rows.sites import SPACES, read_sites
from ...traces.row_filter import keeps_pcs
from ...traces.schema import Kept, Launch, Space
from .instruction_mix import FLOP_COLUMNS, MIX_COLUMNS

ATOMICS = frozenset({"atomic", "reduction"})
COMPUTED = frozenset(
    {*FLOP_COLUMNS, *(name for name in MIX_COLUMNS if name.startswith("lanes_")), "lanes_on"}
)
"""Columns derived from the lanes that ran each instruction."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Unknown raw counters: `columns` for all instructions, `at` for some.

    `places` has one row per pc with the columns that tables group by. `scoped` marks that counters
    of one SM or cluster are unknown, because some of its blocks are missing.
    """

    columns: frozenset[str] = frozenset()
    at: Mapping[int, frozenset[str]] = field(default_factory=dict)
    places: pl.DataFrame = field(default_factory=pl.DataFrame)
    scoped: bool = False

    def anywhere(self) -> frozenset[str]:
        """All columns that are partly or wholly unknown."""
        return self.columns.union(*self.at.values())

    def by(self, keys: Sequence[str]) -> Mapping[tuple[object, ...], frozenset[str]] | None:
        """Return the unknown counts of each group of pcs; None if `places` lacks a key."""
        if not {*keys} <= {*self.places.columns}:
            return None
        unknowns: dict[tuple[object, ...], frozenset[str]] = {}
        for pc, *key in self.places.select("pc", *(pl.col(k).alias(f"_{k}") for k in keys)).rows():
            unknowns[tuple(key)] = unknowns.get(tuple(key), frozenset()) | self.at.get(
                pc, frozenset()
            )
        return unknowns


def find_left_out(
    launch: Launch, instructions: pa.Table, columns: Sequence[str], places: pl.DataFrame
) -> LeftOut:
    """Find the unknown counts of a launch with the raw counters `columns`."""
    coverage = launch.kept
    if coverage.is_whole:
        return LeftOut()
    unknown = {name for name in columns if _is_unknown(name, coverage)}
    return LeftOut(
        frozenset(unknown),
        _find_pcs(coverage, instructions, columns),
        places,
        bool(coverage.blocks or coverage.warps or coverage.sample.blocks),
    )


def _is_unknown(name: str, coverage: Kept) -> bool:
    """Return whether a raw counter is unknown for all instructions."""
    if name in LAUNCHED:
        return False
    if not coverage.rows:
        return True
    if name in COUNTERS or name == "control_instructions":
        return not coverage.control
    if name in COMPUTED:
        return (
            not coverage.control
            or bool(coverage.warps)
            or (name == "lanes_on" and bool(coverage.spaces))
        )
    absent_spaces = (space for space in Space if coverage.spaces and space not in coverage.spaces)
    return any(name.startswith(f"{space.name.lower()}_") for space in absent_spaces)


def _find_pcs(
    coverage: Kept, instructions: pa.Table, columns: Sequence[str]
) -> Mapping[int, frozenset[str]]:
    """Return the unknown raw counters of instructions without recorded accesses."""
    unknowns: dict[int, frozenset[str]] = {}
    if not coverage.lines:
        return unknowns
    sites = read_sites(instructions, "ca")
    for pc in np.flatnonzero(~keeps_pcs(coverage, instructions)).tolist():
        numbers = {int(n) for n in sites.kind[pc * SPACES : (pc + 1) * SPACES]} - {-1}
        kinds = [sites.kinds[number] for number in numbers]
        starts = [kind.prefix for kind in kinds]
        starts += [f"{kind.space}_compared" for kind in kinds if kind.access in ATOMICS]
        affected = {name for name in columns if name.startswith((*starts, "lanes_on"))}
        if kinds:
            unknowns[pc] = frozenset(affected)
    return unknowns
