"""The estimate: how long a launch takes, from what its warps wait for and what its units do.

1. Some blocks' longest warps are run alone (`chain.py`), each load with the latency of what served
   it: of the first level, the second and memory in the shares that the caches' replay counted.
2. Blocks come in rounds: as many as fit on the SMs at a time, the last round as long as the others.
3. Beside that time stand those of the units: the pipes, issue, shared memory, L1, L2, DRAM, atomics
   on one address and the launching of blocks, with bandwidths and rates that were measured.
4. Times meet as the third root of the sum of their cubes: so did a chain of loads and the memory's
   bandwidth where loads on the way were raised from one a warp to more than enough
   (`read_dram_1` of models/devices/measured/sm_90.csv). What an empty kernel takes is added, and
   the way to memory for its arguments: the profiler empties the caches before each launch.

The clock is the one that the profiler sets, since its duration is what is estimated, unless the
device says another. Nothing is fitted to a kernel.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa

from ...models.replay.device.device import Device
from ...models.replay.device.measured import Measured
from ...models.replay.seam import ACCESSES
from ...traces.schema import Launch
from ..counting.bounds import Bound
from .chain import Chain, Step, run_chain
from .operands import read_address, read_operands
from .sample_warps import Histories

ISSUED = 4
"""Warp instructions that an SM issues in a cycle."""
MEET = 3
"""The power in which times meet."""
WAITS = {
    "dram": "memory",
    "l2": "L2",
    "l1": "L1",
    "shared": "shared memory",
    "atomic": "atomics",
    "const": "constants",
    "barrier": "barriers",
    "pipe": "results of arithmetic",
}
NEEDED = (
    *("_requests", "_passes", "_bytes_distinct"),
    *("_l1_reads", "_l1_read_hits", "_l1_writes", "_l2_reads", "_l2_read_hits"),
)
"""How the raw counts end that latencies and the first level's time need."""
STALLS = {
    **{"memory": "long_scoreboard", "L2": "long_scoreboard", "L1": "long_scoreboard"},
    **{"shared memory": "short_scoreboard", "barriers": "barrier", "atomics": "long_scoreboard"},
    **{"constants": "imc_miss", "results of arithmetic": "wait"},
}
"""What Nsight Compute calls the stall of a warp that waits for it."""


@dataclass(frozen=True, slots=True)
class Part:
    """What takes `ns` nanoseconds if it were alone."""

    what: str
    ns: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A launch's time in nanoseconds at a clock, and what it goes to, the longest first.

    `waits` are the shares of a warp's own time by what it waits for, `lines` those by pc.
    """

    ns: float
    mhz: float
    parts: tuple[Part, ...]
    waits: Mapping[str, float] = field(default_factory=dict)
    at: Mapping[tuple[int, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """What served the loads of each pc: sums of raw counts by pc."""

    counts: Mapping[int, Mapping[str, int]]
    shares: Mapping[int, tuple[float, float]]


def _shares(row: Mapping[str, int], space: str) -> tuple[float, float]:
    """The shares of a pc's requests that wait for the second level, and for memory."""
    reads = row.get(f"{space}_l1_reads") or 0
    hits = row.get(f"{space}_l1_read_hits") or 0
    far, far_hits = row.get(f"{space}_l2_reads") or 0, row.get(f"{space}_l2_read_hits") or 0
    missed = 1 - hits / reads if reads else 1.0
    farther = missed * (1 - far_hits / far) if far else 0.0
    if not _is_scattered(row, space):  # memory hands out two sectors at a time
        farther = min(missed, 2 * farther)
    return missed, farther


def _space(row: Mapping[str, int]) -> str:
    """The kind of load that a pc is."""
    spaces = ("global_load", "local_load", "texture_load")
    return next((space for space in spaces if row.get(f"{space}_requests")), "")


def _together(
    counts: Mapping[int, Mapping[str, int]], instructions: pa.Table, warps: int
) -> Mapping[int, tuple[float, float]]:
    """The shares of loads that wait, those of a basic block and of a block's warps seen together.

    Warps that go on side by side read the same lines: the first misses, and the others, which the
    replay counts as hits, wait for what it has asked for.
    """
    found: dict[int, dict[int, tuple[float, float]]] = {}
    for row in instructions.select(["pc", "block"]).to_pylist():
        counted = counts.get(row["pc"], {})
        if space := _space(counted):
            found.setdefault(row["block"], {})[row["pc"]] = _shares(counted, space)
    told: dict[int, tuple[float, float]] = {}
    for each in found.values():
        scale = [_scale([share[i] for share in each.values()], warps) for i in (0, 1)]
        for pc, (far, farther) in each.items():
            told[pc] = (min(1.0, far * scale[0]), min(1.0, farther * scale[1]))
    return told


def _scale(shares: Sequence[float], warps: int) -> float:
    """What shares of misses are multiplied with, so that the largest is that of all together.

    >>> _scale([0.25, 0.25], 1), _scale([0.5, 0.125], 8), _scale([0.0], 8)
    (2.0, 2.0, 1.0)
    """
    most = max(shares)
    return min(1.0, sum(shares) * warps) / most if most else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A launch of which all was counted, on a device; `resident` blocks fit on an SM."""

    counts: pl.DataFrame
    instructions: pa.Table
    bounds: Sequence[Bound]
    launch: Launch
    resident: int
    device: Device
    mhz: float


def estimate(asked: Asked, histories: Histories, measured: Measured) -> Estimate:
    """Estimate a launch from what some of its warps ran."""
    ns = 1000 / asked.mhz
    sums = _by_pc(asked.counts)
    code = _code(asked, sums, measured)
    chains = [(run_chain(history, code), weight) for history, weight in histories]
    whole = sum(weight for _, weight in chains) or 1
    cycles = sum(chain.cycles * weight for chain, weight in chains) / whole
    rounds = _rounds(asked.launch.blocks, asked.device.chip.sms * max(1, asked.resident))
    parts = [Part("waiting", cycles * rounds * ns), *_units(asked, sums, measured)]
    parts = sorted((part for part in parts if part.ns > 0), key=lambda part: -part.ns)
    met = sum(part.ns**MEET for part in parts) ** (1 / MEET)
    start = measured.launch_ns(asked.mhz)
    if _reads_parameters(asked.instructions):
        start += measured.dram_cycles(asked.mhz) * ns
    return Estimate(met + start, asked.mhz, tuple(parts), *_waits(chains, whole * cycles))


def _reads_parameters(instructions: pa.Table) -> bool:
    """Whether a kernel waits for its arguments: no cache has them when it starts."""
    rows = instructions.select(["opcode", "space"]).to_pylist()
    return any(row["opcode"] == "ld" and row["space"] == "param" for row in rows)


def _waits(
    chains: Sequence[tuple[Chain, int]], cycles: float
) -> tuple[Mapping[str, float], Mapping[tuple[int, str], float]]:
    """The shares of warps' cycles by what they waited for, the largest first; and by pc."""
    waits, at = defaultdict[str, float](float), defaultdict[tuple[int, str], float](float)
    for chain, weight in chains:
        for why, value in chain.waited.items():
            waits[WAITS[why]] += value * weight / cycles
        for (pc, why), value in chain.at.items():
            at[pc, WAITS[why]] += value * weight / cycles
    return dict(sorted(waits.items(), key=lambda item: -item[1])), dict(at)


def _rounds(blocks: int, places: int) -> float:
    """How often in turn an SM's places are filled: whole rounds while they are few.

    >>> _rounds(10, 132), _rounds(133, 132), _rounds(13200, 1320)
    (1.0, 2.0, 10.0)
    """
    exact = blocks / places
    return float(-(-blocks // places)) if exact <= 4 else exact


def _code(
    asked: Asked, sums: Mapping[int, Mapping[str, int]], measured: Measured
) -> Mapping[int, Sequence[Step]]:
    """The steps of each basic block on a device."""
    served = Served(sums, _together(sums, asked.instructions, asked.launch.warps))
    found: dict[int, list[Step]] = {}
    columns = ["pc", "block", "class", "mnemonic", "operation", "access", "barrier", "text"]
    columns += ["space", "cache"]
    for row in asked.instructions.select(columns).to_pylist():
        step = _step(row, served, measured, asked.launch, asked.mhz)
        found.setdefault(row["block"], []).append(step)
    return found


def _step(
    row: Mapping[str, object], served: Served, measured: Measured, launch: Launch, mhz: float
) -> Step:
    pc, kind, mnemonic = int(str(row["pc"])), str(row["class"]), str(row["mnemonic"])
    operands = read_operands(str(row["text"]))
    access = str(row["access"])
    if kind == "free":
        return Step(pc, operands, 0, 0, "")
    if row["barrier"] is not None and row["operation"] != "arrive":
        return Step(pc, operands, measured.barrier(launch.warps), 1, "barrier", is_barrier=True)
    if access in ("load", "atomic") and operands.writes:
        latency, waits = _memory(pc, row, served, measured, mhz)
        loads, space = waits in ("l1", "l2", "dram", "shared"), _aliases(row)
        address = read_address(str(row["text"]))
        return Step(pc, operands, latency, 1, waits, loads, space=space, address=address)
    if access:
        address = read_address(str(row["text"]))
        return Step(pc, operands, 0, 1, "", stores=True, space=_aliases(row), address=address)
    if kind == "control":
        return Step(pc, operands, 0, 1, "")
    latency, rate = measured.costs(mnemonic, kind)
    return Step(pc, operands, latency, max(1.0, 4 * rate), "pipe")


def _aliases(row: Mapping[str, object]) -> str:
    """The space that an access may share with others; `read-only` if with no store."""
    return "read-only" if row["cache"] == "nc" else str(row["space"])


def _memory(
    pc: int, row: Mapping[str, object], served: Served, measured: Measured, mhz: float
) -> tuple[float, str]:
    """Cycles of a load or an atomic with a result, and what its reader waits for."""
    counted = served.counts.get(pc, {})
    if counted.get("shared_load_requests") or counted.get("shared_atomic_requests"):
        passes = _beyond_one(counted, "shared_load_passes", "shared_load_requests")
        return measured.at("chase", "chase_shared") + passes, "shared"
    if counted.get("const_load_requests"):
        return measured.at("chase", "chase_const"), "const"
    if counted.get("global_atomic_requests"):
        return measured.l2_cycles(mhz), "atomic"
    space = _space(counted) or "global_load"
    far, farther = served.shares.get(pc, (1.0, 0.0))
    near, second, memory = measured.l1_cycles, measured.l2_cycles(mhz), measured.dram_cycles(mhz)
    latency = near + far * (second - near) + farther * (memory - second)
    sectors = _beyond_one(counted, f"{space}_l1_reads", f"{space}_requests")
    waits = "dram" if farther > 0.3 else "l2" if far > 0.3 else "l1"
    return latency + sectors, waits


def _beyond_one(row: Mapping[str, int], over: str, under: str) -> float:
    """How many there are for each, beyond the first."""
    below = row.get(under) or 0
    return (row.get(over) or 0) / below - 1 if below else 0.0


def _by_pc(counts: pl.DataFrame) -> Mapping[int, Mapping[str, int]]:
    """Sums of what the latencies need, by pc."""
    wanted = [
        name for name in counts.columns if name.endswith(NEEDED) and not name.startswith("surface")
    ]
    sums = counts.group_by("pc").agg(pl.col([*wanted, "instructions"]).sum())
    return {int(row["pc"]): row for row in sums.iter_rows(named=True)}


def _units(
    asked: Asked, sums: Mapping[int, Mapping[str, int]], measured: Measured
) -> Iterator[Part]:
    """The time of each unit alone; an SM's is that of the one that has most blocks."""
    blocks = asked.launch.blocks
    ns = -(-blocks // asked.device.chip.sms) / blocks * 1000 / asked.mhz
    issue, pipes, data = 0.0, defaultdict[str, float](float), 0.0
    for row in asked.instructions.select(["pc", "class", "mnemonic"]).to_pylist():
        counted = sums.get(row["pc"])
        if not counted or row["class"] == "free":
            continue
        issue += counted["instructions"] / ISSUED
        data += _l1_cycles(counted)
        if row["class"] not in ("memory", "control"):
            rate = measured.costs(row["mnemonic"], row["class"])[1]
            pipes[row["class"]] += counted["instructions"] * rate
    yield Part("issue slots", issue * ns)
    for name, cycles in pipes.items():
        yield Part(f"{name} arithmetic", cycles * ns)
    yield Part("L1 and shared memory", data * ns)
    for bound in asked.bounds:
        if bound.resource == "DRAM":
            yield Part("DRAM", bound.ns / measured.dram_share())
        elif bound.resource == "L2":
            yield Part("L2", bound.amount / measured.l2_gb_per_s())
        elif bound.resource.startswith("atomics"):
            yield Part(bound.resource, bound.ns)
    yield Part("launching blocks", blocks * measured.block_ns(asked.mhz))


def _l1_cycles(counted: Mapping[str, int]) -> float:
    """Cycles of the first level for a pc: a line a cycle, or 128 bytes; or passes over banks."""
    found = float(sum(counted.get(f"shared_{access}_passes") or 0 for access in ACCESSES["shared"]))
    for space in ("global_load", "global_store", "local_load", "local_store", "texture_load"):
        requests = counted.get(f"{space}_requests") or 0
        sectors = counted.get(f"{space}_l1_reads") or counted.get(f"{space}_l1_writes") or 0
        if not requests:
            continue
        found += max(requests, sectors if _is_scattered(counted, space) else sectors / 4)
    return found


def _is_scattered(counted: Mapping[str, int], space: str) -> bool:
    """Whether lanes want few bytes each of many sectors."""
    requests = counted.get(f"{space}_requests") or 0
    sectors = counted.get(f"{space}_l1_reads") or counted.get(f"{space}_l1_writes") or 0
    distinct = counted.get(f"{space}_bytes_distinct") or 0
    return sectors > 4 * requests and distinct <= 8 * sectors
