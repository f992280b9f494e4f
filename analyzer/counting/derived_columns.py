"""Columns derived from the raw counters, and the launch facts that formulas may read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from math import prod

import polars as pl
import pyarrow as pa

from ...models.cache import Cache
from ...models.memory import Memory
from ...models.replay.device.device import Device
from ...models.replay.histogram.counts import LaunchCounts
from ...models.replay.interface.model import ACCESSES
from ...models.replay.schedule.place import Waves, count_padding_lanes, count_waves
from ...traces.machine_schedule import CODE_BYTES, count_instructions
from ...traces.schema import Launch

PINNED = "pinned"
"""The `memory` of an array that lies in the host's memory, which kernels access over its link."""
CLUSTER = ("cluster_x", "cluster_y", "cluster_z")
LIMITS = ("blocks", "warps", "registers", "shared", "barriers")


def launch_facts(counts: LaunchCounts, device: Device) -> Mapping[str, int | None]:
    """Return every known fact about the launch as a whole, by name; None where unknown.

    `limit_*` is the number of blocks that fit on an SM per resource, `resident_blocks` the least of
    them. Shared memory is in bytes per block: `shared_driver` is the part that the device reserves,
    `shared_allocated` the total, rounded up. `carveout` is the shared memory that the SM sets
    aside, enough for `limit_carveout` blocks. `code_fetched` is in bytes. Blocks run in `waves`, as
    in `models/replay/schedule/place.py`.
    """
    launch, resident, limits = counts.launch, counts.occupancy, device.limits
    shared_bytes = resident.need.shared + limits.shared_reserved
    allocated = -(-shared_bytes // limits.shared_unit) * limits.shared_unit
    waves = count_waves(device.chip, launch.blocks, resident.blocks)
    return {
        **dict.fromkeys((field.name for field in fields(Waves)), None),
        **(asdict(waves) if waves else {}),
        "padding_lanes": count_padding_lanes(launch.blocks, launch.threads),
        "active_warps": resident.active_warps,
        "max_warps": resident.max_warps,
        "registers": resident.registers,
        "resident_blocks": resident.blocks,
        **{f"limit_{name}": resident.limits.get(name) for name in LIMITS},
        **{f"grid_{axis}": extent for axis, extent in zip("xyz", launch.grid, strict=True)},
        **{f"block_{axis}": extent for axis, extent in zip("xyz", launch.block, strict=True)},
        **dict(zip(CLUSTER, launch.cluster or (0, 0, 0), strict=True)),
        "cluster_blocks": prod(launch.cluster) if launch.cluster else 0,
        "grid_blocks": launch.blocks,
        "block_threads": launch.threads,
        "shared_static": launch.shared_static,
        "shared_dynamic": launch.shared_dynamic,
        "shared_driver": limits.shared_reserved,
        "shared_allocated": allocated,
        "carveout": resident.carveout,
        "limit_carveout": resident.carveout // allocated if allocated else None,
        "sms": device.chip.sms,
        "code_fetched": device.chip.fetch_code(_code_size(launch, device)),
    }


def _code_size(launch: Launch, device: Device) -> int:
    """Return the bytes of a launch's machine code on a device; 0 if the trace has none."""
    assembled = launch.assembled_for(device.capability)
    return CODE_BYTES * count_instructions(assembled.schedule) if assembled else 0


LAUNCH_COLUMN = " launch"
"""Column with the number of the launch, in frames of several launches."""


class Added(tuple[pl.Expr, ...]):
    """Expressions of new columns, and the columns that they read (`reads`)."""

    reads: frozenset[str]

    def __new__(cls, columns: Iterable[pl.Expr]) -> "Added":
        """Collect the columns that the expressions read."""
        instance = super().__new__(cls, columns)
        instance.reads = frozenset(name for column in instance for name in column.meta.root_names())
        return instance


def widen(counts: pl.DataFrame, by_pc: pl.DataFrame, added: Added) -> pl.DataFrame:
    """Add columns computed from the counts and from the per-pc facts `by_pc`."""
    own = [name for name in counts.columns if name in added.reads and name != "pc"]
    narrow = counts.lazy().select("pc", *own)
    wide = narrow.join(by_pc.lazy(), on="pc", how="left", maintain_order="left")
    return counts.hstack(wide.select(added).collect())


def with_zeros(counts: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Add columns of zeros to the counts."""
    zeros = pl.zeros(counts.height, pl.Int64, eager=True)
    return counts.hstack([zeros.alias(name) for name in names])


def sums_of_each(counts: pl.DataFrame, launches: int) -> Sequence[Mapping[str, int]]:
    """Return the sum of each raw counter per launch; LAUNCH_COLUMN has the launch's number."""
    each = pl.col(pl.Int64).sum()
    if launches == 1:
        return counts.select(each).rows(named=True)
    sums = counts.group_by(LAUNCH_COLUMN).agg(each)
    numbers = sums.drop_in_place(LAUNCH_COLUMN).to_list()
    rows = dict(zip(numbers, sums.iter_rows(named=True), strict=True))
    return [rows.get(number) or dict.fromkeys(sums.columns, 0) for number in range(launches)]


HOST_COLUMNS = (
    "host_reads",
    "host_stores",
    "host_updates",
    "host_bytes_read",
    "host_bytes_written",
)
"""Sectors of the host's memory that SMs read, store and update, and bytes over the link to it."""
SECTOR = 32


def with_host_memory(
    counts: pl.DataFrame, launches: Sequence[Launch], device: Device
) -> pl.DataFrame:
    """Add HOST_COLUMNS, and take what belongs to arrays in the host's memory out of DRAM's.

    LAUNCH_COLUMN has the index of the launch. An H100 sends each request of its L1s over the link:
    neither are equal ones joined, nor does L2 keep what was read
    (tests/validate/caches/h100_host.csv). A device that shares the host's memory has no link.
    """
    owners: dict[tuple[str, ...], list[int]] = {}
    for number, launch in enumerate(launches if device.chip.host_gb_per_s else ()):
        names = tuple(each.name for each in launch.arrays if each.memory == PINNED)
        owners.setdefault(names, []).append(number)
    owners.pop((), None)
    if not owners:
        return with_zeros(counts, HOST_COLUMNS)
    array = pl.col("array").cast(pl.String)
    pairs = (pl.col(LAUNCH_COLUMN).is_in(n) & array.is_in(names) for names, n in owners.items())
    mine = pl.any_horizontal(pairs).cast(pl.Int64)
    reads = {name: pl.col(name) for name in counts.columns if name.endswith("_l2_reads")}
    for name in counts.columns:
        if name.endswith("_joined"):
            reads[f"{name.rpartition('_')[0].rpartition('_')[0]}_l2_reads"] += mine * pl.col(name)
    counts = counts.with_columns(reads[name].alias(name) for name in reads)

    def total(end: str, *kinds: str) -> pl.Expr:
        names = [name for name in counts.columns if name.endswith(end)]
        names = [name for name in names if any(f"_{kind}_" in name for kind in kinds)]
        return (pl.sum_horizontal(pl.lit(0), *names) * mine).cast(pl.Int64)

    updates, stores = total("_l2_writes", "atomic", "reduction"), total("_l2_writes", "store")
    asked = total("_l2_reads", "load")
    moved = [SECTOR * (asked + updates), SECTOR * (stores + updates)]
    if not reads:  # without caches
        moved = [total(f"_dram_bytes_{way}", *ACCESS_KINDS) for way in ("read", "written")]
    host = counts.select(
        column.alias(name)
        for name, column in zip(HOST_COLUMNS, (asked, stores, updates, *moved), strict=True)
    )
    gone = [name for name in counts.columns if name.endswith(_ABSENT)]
    return counts.with_columns(pl.col(name) * (1 - mine) for name in gone).hstack(host)


ACCESS_KINDS = ("load", "store", "atomic", "reduction")
_ABSENT = ("_dram_bytes_read", "_dram_bytes_written", "_l2_read_hits", "_joined")
COUNTED = (*Cache.counters, *Memory.counters)
PREFIXES = tuple(f"{space}_{access}_" for space in ACCESSES for access in ACCESSES[space])


@lru_cache(maxsize=64)
def find_levels(columns: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Map each level's counter to the raw counters behind it: `l2_reads` to all that end in it."""
    levels: dict[str, list[str]] = {}
    for column in columns:
        for prefix in PREFIXES:
            own = column.removeprefix(prefix)
            if own != column and any(own.endswith(f"_{name}") for name in COUNTED):
                levels.setdefault(own, []).append(column)
    return levels


def with_levels(counts: pl.DataFrame) -> pl.DataFrame:
    """Add a column for each counter of each memory level of the device."""
    return counts.hstack(counts.select(_sums(tuple(counts.columns))))


@lru_cache(maxsize=64)
def _sums(columns: tuple[str, ...]) -> Added:
    return Added(
        pl.sum_horizontal(each).cast(pl.Int64).alias(name)
        for name, each in find_levels(columns).items()
    )


SUFFIX = "_apart"
_REQUEST_COLUMNS = ("requests", "bytes_distinct")
_COPIED = tuple(
    f"{access}_{what}" for access in ("global_load", "shared_store") for what in _REQUEST_COLUMNS
)
_STORED = ("shared_store_passes", "shared_store_conflicts")
_COPY = (8, 0), (*_COPIED, "global_load_transactions", *_STORED)
_LOAD = (7, 5), tuple(f"shared_load_{what}" for what in (*_REQUEST_COLUMNS, "passes"))
_STORE = (9, 0), tuple(f"shared_store_{what}" for what in _REQUEST_COLUMNS)
APART: Mapping[str, tuple[tuple[int, int], tuple[str, ...]]] = {
    **{"cp": _COPY, "ldmatrix": _LOAD, "stmatrix": _STORE},
    **{"LDGSTS": _COPY, "LDSM": _LOAD, "STSM": _STORE},
}
"""Opcode to the first capability that has the instruction, and to the raw counters whose part by
this opcode is kept separately. Older devices run loads and stores instead.
"""
COUNTERS = tuple(sorted({counter for _, counters in APART.values() for counter in counters}))


def with_apart(
    counts: pl.DataFrame, instructions: pa.Table, capability: tuple[int, int]
) -> pl.DataFrame:
    """Add a column `<counter>_apart` for each of COUNTERS: its excluded part."""
    used = set(instructions["opcode"].to_pylist())
    makers = [o for o, (since, _) in APART.items() if o in used and capability >= since]
    raw_counters = [counter for counter in COUNTERS if counter in counts.columns]
    if not makers:
        return with_zeros(counts, (name + SUFFIX for name in raw_counters))
    added = []
    for counter in raw_counters:
        mine = [opcode for opcode in makers if counter in APART[opcode][1]]
        kept_out = pl.col("opcode").is_in(mine).cast(pl.Int64)
        added.append((pl.col(counter) * kept_out).alias(counter + SUFFIX))
    return widen(counts, pl.DataFrame(instructions.select(["pc", "opcode"])), Added(added))
