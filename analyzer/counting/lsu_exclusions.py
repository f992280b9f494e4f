"""Accesses that Nsight Compute does not count as loads or stores: asynchronous copies, matrices.

A copy from global to shared memory (`cp.async`, machine instruction LDGSTS) and a load or store of
matrices (`ldmatrix`, `stmatrix`: LDSM, STSM) have counts of their own there. Requests and sectors
of L1, and wavefronts by address, have them all the same. Found on an H200: docs/validation.md.
"""

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from .with_columns import Added, widen, with_zeros

SUFFIX = "_apart"
_ASKED = ("requests", "bytes_distinct")
_COPIED = tuple(f"{access}_{what}" for access in ("global_load", "shared_store") for what in _ASKED)
_STORED = ("shared_store_passes", "shared_store_conflicts")
APART: Mapping[str, tuple[tuple[int, int], tuple[str, ...]]] = {
    "cp": ((8, 0), (*_COPIED, "global_load_transactions", *_STORED)),
    "ldmatrix": ((7, 5), tuple(f"shared_load_{what}" for what in _ASKED)),
    "stmatrix": ((9, 0), tuple(f"shared_store_{what}" for what in _ASKED)),
}
"""Opcode to the capability from which on there is such an instruction, and the raw counters of
which a part is kept out; a device without it runs loads and stores in its place."""
COUNTERS = tuple(sorted({counter for _, counters in APART.values() for counter in counters}))


def with_apart(
    counts: pl.DataFrame, instructions: pa.Table, capability: tuple[int, int]
) -> pl.DataFrame:
    """The counts with a column `<counter>_apart` for each of COUNTERS: its excluded part."""
    used = set(instructions["opcode"].to_pylist())
    makers = [o for o, (since, _) in APART.items() if o in used and capability >= since]
    known = [counter for counter in COUNTERS if counter in counts.columns]
    if not makers:
        return with_zeros(counts, (name + SUFFIX for name in known))
    added = []
    for counter in known:
        mine = [opcode for opcode in makers if counter in APART[opcode][1]]
        kept_out = pl.col("opcode").is_in(mine).cast(pl.Int64)
        added.append((pl.col(counter) * kept_out).alias(counter + SUFFIX))
    return widen(counts, pl.DataFrame(instructions.select(["pc", "opcode"])), Added(added))
