"""SASS view: the loads and stores of the machine code, where the trace has them, and its atomics.

Hardware: it runs machine code. ptxas merges neighbouring accesses into wide ones, removes dead ones
and those whose value is in a register, keeps arrays in registers, and replaces short branches by
predicates: then warps issue an access without an active lane. RED, which returns nothing, takes no
generic addresses, so that ptxas makes ATOM of each atomic at one. From 9.0 on it also keeps an
`atom` whose result is unused (ATOMG) in a kernel with a fence of threads, wherever the fence is; a
`red` stays RED. The profiler counts them as `atom`.

Model: `LaunchTrace`s with the rows and instructions of the machine code; readers treat them as
recorded ones. Atomics that return a value say `atomic` in place of `reduction` (`returning`).
Accesses without an active lane move nothing: they are counted as `empty`, for the
counters of issued instructions.

Limits: the lanes that run together are those of PTX, although ptxas unrolls loops whose lanes leave
in different iterations. Spills, which PTX has not, are missing. The architecture is the newest of
the trace that is not newer than the device's; devices before 7.0 have none. An address that is
generic in PTX may be one that ptxas proves to be global.

Source: `tracer/session/resources.py`; the code of ptxas 12.9 and 13.0 for 7.5 to 12.0; for the
accuracy, docs/validation.md and `tests/unit/models/test_returning_atomics.py`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.column import integers, with_columns
from ...traces.identity_cache import cached_by_identity, rows_of
from ...traces.reader import LaunchTrace
from ...traces.schema import AssembledAccess, Launch
from .interface.model import Ints
from .launch_view import LaunchView

EMPTY = tuple(
    f"{space}_{access}_empty"
    for space in ("global", "shared", "local")
    for access in ("load", "store")
)
"""Raw counters: warp instructions issued without an active lane."""
SPARE = "shared_load_spare"
"""Raw counter: loads before copies to shared memory that never run."""
_KEYS = ("pc", "array", "scope")
SINCE_FENCES = 9, 0
"""The first capability on which a fence keeps the results of atomics."""
_FENCES, _OTHER_FENCES = ("membar", "fence"), ("proxy", "mbarrier_init")


def accesses_on(launch: Launch, capability: tuple[int, int]) -> tuple[AssembledAccess, ...]:
    """Return the machine-code accesses of a launch; none if the trace has none."""
    assembled = launch.assembled_for(capability)
    return assembled.accesses if assembled else ()


@dataclass(frozen=True)
class SassLaunch(LaunchView):
    """A launch, `before`, with the machine-code accesses that ptxas made of its PTX's."""

    sass_accesses: Mapping[int, AssembledAccess] = field(kw_only=True, repr=False)

    def instructions(self) -> pa.Table:
        """Return all instructions, each with the bytes of its pieces."""
        return self._widened

    def access_batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield memory accesses, one row per piece."""
        source_columns = tuple(dict.fromkeys((*columns, "pc", "base"))) if columns else ()
        for batch in self.before.access_batches(source_columns):
            yield self._pieces(batch)

    def _pieces(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        first, shift = self._starts
        pc = batch["pc"].to_numpy()
        many = (first[1:] - first[:-1])[pc]
        if (many == 1).all() and not shift[first[pc]].any():
            return batch
        row = np.repeat(np.arange(len(pc)), many)
        piece = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        rows = batch.take(pa.array(row))
        moved = integers(rows, "base")[0] + shift[first[pc[row]] + piece]
        return with_columns(rows, base=moved.view(np.uint64))

    @cached_property
    def _starts(self) -> tuple[Ints, Ints]:
        """The first piece of each pc, (pcs + 1,), and the offset of each piece from its access."""
        whole = ((0, 0),)
        pieces = [
            self.sass_accesses[pc].pieces if pc in self.sass_accesses else whole
            for pc in range(self.before.instructions().num_rows)
        ]
        shifts = [at for each in pieces for at, _ in each]
        return np.cumsum([0, *map(len, pieces)]), np.array([*shifts, 0], np.int64)

    @cached_property
    def _widened(self) -> pa.Table:
        return _widen(self.before.instructions(), tuple(self.sass_accesses.values()))


@cached_by_identity
def _widen(table: pa.Table, accesses: tuple[AssembledAccess, ...]) -> pa.Table:
    """Return instructions with the bytes that the pieces of each access move."""
    width = table["bytes"].to_numpy().copy()
    for access in accesses:
        if access.pieces:
            width[access.pc] = access.pieces[0][1]
    return with_columns(table, bytes=width)


def sass_view(trace: LaunchTrace, accesses: Sequence[AssembledAccess]) -> LaunchTrace:
    """Return a launch with the accesses of its machine code."""
    if not accesses:
        return trace
    return SassLaunch.of(trace, sass_accesses={access.pc: access for access in accesses})


def count_empty(
    counts: pl.DataFrame, accesses: Sequence[AssembledAccess], instructions: pa.Table
) -> pl.DataFrame:
    """Add the instructions that warps issue without an active lane to raw counts."""
    issued = [access for access in accesses if access.issued >= 0]
    empties = _empty(counts, issued, instructions) if issued else {}
    if not empties:
        return counts
    keys = [(pc, "", scope) for pc, scope, _ in empties]
    row = {key: number for number, key in enumerate(counts.select(_KEYS).iter_rows())}
    if absent := [key for key in dict.fromkeys(keys) if key not in row]:
        row |= {key: counts.height + number for number, key in enumerate(absent)}
        types = {name: counts.schema[name] for name in _KEYS}
        added = pl.DataFrame(absent, types, orient="row")
        numbers = [name for name in counts.columns if name not in _KEYS]
        both = pl.concat([counts, added], how="diagonal")
        counts = both.with_columns(pl.col(numbers).fill_null(0))
    columns = {name: counts[name].to_list() for name in {name for _, _, name in empties}}
    for key, ((_, _, name), times) in zip(keys, empties.items(), strict=True):
        columns[name][row[key]] += times
    return counts.with_columns(pl.Series(name, column) for name, column in columns.items())


def _empty(
    counts: pl.DataFrame, accesses: Sequence[AssembledAccess], instructions: pa.Table
) -> Mapping[tuple[int, str, str], int]:
    """Return the accesses issued without an active lane, by pc, scope and raw counter; no zeros."""
    kinds = rows_of(instructions, "space", "access")
    pcs, scopes = counts["pc"].to_list(), counts["scope"].to_list()
    sums: dict[str, Counter[tuple[int, str]]] = {}

    def by_pc(name: str) -> Counter[tuple[int, str]]:
        """Return a raw counter by pc and scope; empty if it is not counted."""
        if name not in sums:
            sums[name] = Counter()
            values = counts[name].to_list() if name in counts.columns else ()
            for pc, scope, value in zip(pcs, scopes, values, strict=False):
                sums[name][pc, scope] += value
        return sums[name]

    empties: Counter[tuple[int, str, str]] = Counter()
    for access in accesses:
        prefix = "{space}_{access}".format(**kinds[access.pc])
        if f"{prefix}_empty" not in EMPTY and not access.spare:
            continue
        for scope in dict.fromkeys(scopes):
            times = by_pc("ptx_instructions")[access.issued, scope]
            if access.spare:
                empties[access.pc, scope, SPARE] += times * access.spare
            else:
                request_count = by_pc(f"{prefix}_requests")[access.pc, scope]
                lacking = times * len(access.pieces) - request_count
                empties[access.pc, scope, f"{prefix}_empty"] += max(0, lacking)
    return {key: times for key, times in empties.items() if times}


@dataclass(frozen=True)
class ReturningLaunch(LaunchView):
    """A launch, `before`, with the atomics that return a value in its machine code."""

    table: pa.Table = field(kw_only=True, repr=False)

    def instructions(self) -> pa.Table:
        """Return all instructions."""
        return self.table


def returning(trace: LaunchTrace, era: tuple[int, int]) -> LaunchTrace:
    """Return a launch with the atomics that return a value on devices from capability `era` on."""
    table = trace.instructions()
    changed = _return_values(table, era >= SINCE_FENCES)
    return trace if changed is table else ReturningLaunch.of(trace, table=changed)


@cached_by_identity
def _return_values(table: pa.Table, fences_count: bool) -> pa.Table:
    """Return the instructions with their atomics; the table itself if none changes."""
    rows = rows_of(table, "opcode", "mnemonic", "space", "access")
    is_fenced = fences_count and any(_is_fence(row["mnemonic"]) for row in rows)
    access = [_access(row, is_fenced) for row in rows]
    is_same = access == [row["access"] for row in rows]
    return table if is_same else with_columns(table, access=access)


def _access(row: Mapping[str, str], is_fenced: bool) -> str:
    """Return the access of an instruction in the machine code."""
    is_generic = row["opcode"] in ("atom", "red") and not row["space"]
    is_kept = is_generic or (is_fenced and row["opcode"] == "atom")
    return "atomic" if row["access"] == "reduction" and is_kept else row["access"]


def _is_fence(mnemonic: str) -> bool:
    """Return whether an instruction orders the accesses of threads."""
    opcode, _, modifiers = mnemonic.partition(".")
    return opcode in _FENCES and modifiers.partition(".")[0] not in _OTHER_FENCES
