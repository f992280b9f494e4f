"""Returning atomics: what PTX reduces without a result, and the machine code executes with one.

Hardware: RED, which returns nothing, takes no generic addresses, so that ptxas makes ATOM of each
atomic at one. From 9.0 on it also keeps an `atom` whose result is unused (ATOMG) in a kernel with a
fence of threads, wherever the fence is; a `red` stays RED. The profiler counts them as `atom`.

Model: `LaunchTrace`s whose instructions say `atomic` in place of `reduction`.

Limits: an address that is generic in PTX, and that ptxas proves to be global.

Source: the code of ptxas 12.9 and 13.0 for 7.5 to 12.0;
`tests/unit/models/test_returning_atomics.py`.
"""

from collections.abc import Mapping
from dataclasses import field

import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.column import with_columns
from ...traces.identity_cache import cached_by_identity, rows_of
from ...traces.reader import LaunchTrace
from .launch_view import LaunchView

SINCE_FENCES = 9, 0
"""The first capability on which a fence keeps the results of atomics."""
_FENCES, _OTHER_FENCES = ("membar", "fence"), ("proxy", "mbarrier_init")


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
