"""Memory of the host that a launch reads and writes over PCIe, and what no estimate knows.

An H100 behind PCIe 5.0 x16 takes as long for each line of 128 bytes that its L1 asks for, less for
a single sector, and as long for each line that it stores; reads and stores pass each other. A load
waits for the way there and back (models/devices/measured/sm_90.csv, `host`).
"""

import re
from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...models.replay.device.measured import Measured
from ...traces.identity_cache import rows_of
from ...traces.schema import Launch
from ..counting.derived_columns import PINNED
from .units import LOADS, STORES, Part, is_scattered

MANAGED, MOVED = "managed", "moved"
STARTS_KERNELS = "LaunchDevice"
"""Part of the names of functions with which a kernel launches another."""
_HEAP = re.compile(r"\b(__cudaCDP2)?([mM]alloc|[fF]ree)\b")
"""Functions of the device's heap: their time depends on which lanes call them and on its state."""
LINE = 4
"""Sectors of a line."""
LINK = 63.015
"""The peak rate of the link of `host` in models/devices/measured/sm_90.csv, GB/s each way."""


@dataclass(frozen=True, slots=True)
class HostTraffic:
    """Lines and single sectors that are read from the host's memory, and those stored there.

    `pcs` are the loads that wait for them. `slowness` is LINK over the rate of the device's link.
    """

    lines: float = 0.0
    sectors: float = 0.0
    stored_lines: float = 0.0
    stored_sectors: float = 0.0
    pcs: frozenset[int] = frozenset()
    slowness: float = 1.0


def find_host_traffic(counts: pl.DataFrame, launch: Launch, gb_per_s: float) -> HostTraffic:
    """Count what a launch asks of the host's memory, from its raw counts by pc and array.

    `gb_per_s` is the rate of the device's link to the host; 0 if it has none.
    """
    pinned = [each.name for each in launch.arrays if each.memory == PINNED]
    if not (pinned and gb_per_s) or "global_load_l2_reads" not in counts.columns:
        return HostTraffic()
    mine = counts.filter(pl.col("array").cast(pl.String).is_in(pinned))
    names = [name for name in mine.columns if name.startswith(("global_load_", "global_store_"))]
    rows = mine.group_by("pc").agg(pl.col(names).sum()).to_dicts()
    lines, sectors, pcs = {"load": 0.0, "store": 0.0}, {"load": 0.0, "store": 0.0}, set[int]()
    for row in rows:
        for space, name in ((LOADS[0], "l2_reads"), (STORES[0], "l2_writes")):
            moved, kind = row.get(f"{space}_{name}") or 0, space.rpartition("_")[2]
            if is_scattered(row, space):
                sectors[kind] += moved
            else:
                lines[kind] += moved / LINE
        if row.get("global_load_requests"):
            pcs.add(row["pc"])
    ways = ((lines[kind], sectors[kind]) for kind in ("load", "store"))
    return HostTraffic(*next(ways), *next(ways), frozenset(pcs), LINK / gb_per_s)


def host_times(traffic: HostTraffic, measured: Measured) -> Iterator[Part]:
    """Yield the times of the way from the host's memory, and of that to it."""
    names = "line", "sector", "stored_line"
    line, sector, stored = (measured.host_ns(name) * traffic.slowness for name in names)
    yield Part("PCIe", traffic.lines * line + traffic.sectors * sector)
    yield Part("PCIe, stores", (traffic.stored_lines + traffic.stored_sectors) * stored)


def why_no_estimate(
    counts: pl.DataFrame, launch: Launch, instructions: pa.Table, sums: Mapping[int, object]
) -> str:
    """Return why the time of a launch cannot be estimated; empty if it can."""
    for row in rows_of(instructions, "pc", "opcode", "text"):
        if row["opcode"] != "call" or row["pc"] not in sums:
            continue
        if STARTS_KERNELS in row["text"]:
            return "the kernel launches kernels"
        if _HEAP.search(row["text"]):
            return "the kernel allocates memory (malloc)"
    if used := _used(counts, launch, MANAGED):
        return f"pages of managed memory ({used}) move to the device"
    return ""


def moved_pages(counts: pl.DataFrame, launch: Launch) -> str:
    """Return what an estimate assumes about managed memory; empty if the launch uses none."""
    if used := _used(counts, launch, MOVED):
        return (
            f"the estimate takes managed memory ({used}) to be on the device, as an earlier launch"
            " left it: pages that the host has used since move again"
        )
    return ""


def _used(counts: pl.DataFrame, launch: Launch, memory: str) -> str:
    """Return the names of the arrays in a kind of memory that a launch accesses."""
    names = {each.name for each in launch.arrays if each.memory == memory}
    used = names & {*counts["array"].cast(pl.String).unique().to_list()} if names else set[str]()
    return ", ".join(sorted(used))
