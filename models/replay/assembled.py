"""Assembled: a launch's accesses as the assembler made them, where the trace tells.

What the hardware does. It runs machine code. ptxas joins neighbouring accesses into wide ones,
leaves out what nobody reads and what a register holds, keeps arrays in registers, and lets a
predicate do what a short branch did: then warps issue an access in which no lane takes part.

What is modelled. `LaunchTrace`s whose rows and instructions are those that the machine code has:
every reader takes them for recorded ones. Accesses that no lane takes part in move nothing: they
are counted as `empty`, for the counters of instructions that warps issue.

What is not. Which lanes run together: ptxas unrolls loops whose lanes leave at different turns.
Spills, which PTX has not. Other architectures than the one that the trace tells of.

Source: `tracer/host/launch/assembled.py`; how near it comes: docs/validation.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from ...traces.reader import LaunchTrace
from ...traces.schema import AssembledAccess, Launch
from ...traces.table.pattern_store import Patterns
from .seam import Ints

EMPTY = tuple(
    f"{space}_{access}_empty"
    for space in ("global", "shared", "local")
    for access in ("load", "store")
)
"""Raw counters: warp instructions that were issued without a lane."""
SPARE = "shared_load_spare"
"""Raw counter: loads before copies to shared memory that never run."""
_KEYS = ("pc", "array", "scope")


def accesses_on(launch: Launch, capability: tuple[int, int]) -> tuple[AssembledAccess, ...]:
    """What the assembler made of a launch's accesses; none where nobody knows."""
    arch = "sm_{}{}".format(*capability)
    return next((known.accesses for known in launch.resources if known.arch == arch), ())


@dataclass(frozen=True)
class AssembledLaunch(LaunchTrace):
    """A launch, `before`, with the accesses that the assembler made of its PTX's."""

    before: LaunchTrace = field(kw_only=True, repr=False)
    made: Mapping[int, AssembledAccess] = field(kw_only=True, repr=False)

    def instructions(self) -> pa.Table:
        """Return all instructions, each with the bytes that its pieces move."""
        return self._widened

    def patterns(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """Return the patterns as before."""
        return self.before.patterns()

    def pattern_store(self) -> Patterns:
        """Return the same, to be asked for some at a time."""
        return self.before.pattern_store()

    def access_batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield memory accesses, a row for each piece of those that have several."""
        wanted = tuple(dict.fromkeys((*columns, "pc", "base"))) if columns else ()
        for batch in self.before.access_batches(wanted):
            yield self._pieces(batch)

    def _pieces(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        first, shift = self._starts
        pc = batch["pc"].to_numpy()
        many = (first[1:] - first[:-1])[pc]
        if (many == 1).all() and not shift[first[pc]].any():
            return batch
        row = np.repeat(np.arange(len(pc)), many)
        piece = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        taken = batch.take(pa.array(row))
        moved = taken["base"].to_numpy().astype(np.int64) + shift[first[pc[row]] + piece]
        place = taken.schema.get_field_index("base")
        return taken.set_column(place, taken.schema.field(place), pa.array(moved.astype(np.uint64)))

    @cached_property
    def _starts(self) -> tuple[Ints, Ints]:
        """Where the pieces of each pc begin, (pcs + 1,), and how far each lies from its access."""
        whole = ((0, 0),)
        pieces = [
            self.made[pc].pieces if pc in self.made else whole
            for pc in range(self.before.instructions().num_rows)
        ]
        shifts = [at for each in pieces for at, _ in each]
        return np.cumsum([0, *map(len, pieces)]), np.array([*shifts, 0], np.int64)

    @cached_property
    def _widened(self) -> pa.Table:
        table = self.before.instructions()
        width = table["bytes"].to_numpy().copy()
        for pc, access in self.made.items():
            if access.pieces:
                width[pc] = access.pieces[0][1]
        place = table.schema.get_field_index("bytes")
        return table.set_column(place, table.schema.field(place), pa.array(width))


def assembled(trace: LaunchTrace, made: Sequence[AssembledAccess]) -> LaunchTrace:
    """Return a launch with its accesses as the assembler made them."""
    if not made:
        return trace
    return AssembledLaunch(
        trace.number,
        trace.launch,
        trace.folder,
        trace.supposed,
        before=trace,
        made={access.pc: access for access in made},
    )


def count_empty(
    counts: pl.DataFrame, made: Sequence[AssembledAccess], instructions: pa.Table
) -> pl.DataFrame:
    """Return raw counts with what warps issued of each access without a lane in it."""
    rows = [
        row for access in made if access.issued >= 0 for row in _empty(counts, access, instructions)
    ]
    if not rows:
        return counts
    added = pl.from_dicts(rows, {n: counts.schema[n] for n in (*_KEYS, *EMPTY, SPARE)})
    numbers = [name for name in counts.columns if name not in _KEYS]
    both = pl.concat([counts, added], how="diagonal").with_columns(pl.col(numbers).fill_null(0))
    return both.group_by(_KEYS, maintain_order=True).agg(pl.col(numbers).sum())


def _empty(
    counts: pl.DataFrame, made: AssembledAccess, instructions: pa.Table
) -> Iterator[dict[str, object]]:
    """Yield rows of raw counts, one for each scope in which warps issued an access in vain."""
    space, access = (instructions[name][made.pc].as_py() for name in ("space", "access"))
    name, asked = f"{space}_{access}_empty", f"{space}_{access}_requests"
    if name not in EMPTY and not made.spare:
        return
    here = {pc: counts.filter(pl.col("pc") == pc) for pc in (made.pc, made.issued)}
    ran = here[made.issued].group_by("scope").agg(pl.col("ptx_instructions").sum())
    for scope, times in ran.iter_rows():
        found = dict.fromkeys((*EMPTY, SPARE), 0) | {SPARE: times * made.spare}
        if not made.spare:
            with_lanes = here[made.pc].filter(pl.col("scope") == scope)
            done = with_lanes[asked].sum() if asked in counts else 0
            found[name] = max(0, times * len(made.pieces) - done)
        if any(found.values()):
            yield {"pc": made.pc, "array": "", "scope": scope, **found}
