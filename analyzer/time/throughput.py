"""Throughput: the busy time of SM, L1, L2 and DRAM, as Nsight Compute counts it.

Each of the profiler's `sm__throughput`, `l1tex__`, `lts__` and `dram__throughput` is the highest of
several counts, each relative to its maximum per cycle, over all units of the chip, idle ones
included. The counts modelled here, each as its time at peak rate:

- SM: warp instructions, those of the load-store unit, one per cycle, and the cycles of each pipe;
- L1: passes over the data banks, and requests to L2;
- L2: sectors moved between its halves, looked up, received from SMs and sent to them;
- DRAM: the bytes at the board's bandwidth.

Every launch, even of an empty kernel, adds sectors looked up in L2: on an H100 ten times as many as
on an H200 (`empty_l2_base` of measured/h100.csv). Requests of L1 and the four counts of L2 are
fitted to the profiler's counters of the launches of tests/validate/time on an H100
(h100_units.csv); the clock of L2, 1,700 MHz, does not depend on that of the SMs.
"""

from collections.abc import Mapping, Sequence

from ...models.replay.device.measured import Measured
from ..counting.bounds import AT_ONE_ADDRESS
from .units import LOADS, STORES, Counts, Part, Work, is_scattered

UNIT = {
    **{"L1 and shared memory": "L1", "texture units": "L1", "atomics": "L2"},
    **{"L2": "", "DRAM": "", "launching blocks": "", "latency": ""},
    **{AT_ONE_ADDRESS: "slice", "atomics of a slice": "slice"},
    "atomics tried again": "slice",
}
"""Part to the unit that it keeps busy; default: the SM."""
PROFILED = {"L1": "l1tex", "SM": "sm", "L2": "lts", "DRAM": "dram"}
"""The profiler's names of the units."""
OF_A_LAUNCH_NS = 33.4
"""Nanoseconds of L2 for any launch: code, arguments, and the work after its end."""
FABRIC = (0.0, 0.0210, 0.0053, 0.0053)
FROM_SMS = (0.0035, 0.0008, 0.0066, 0.0132)
TO_SMS = (0.0033, 0.0039, 0.0, 0.0)
"""L2 nanoseconds per sector: a hit, a miss, a sector stored with others of its line, and one stored
alone.
"""
LOOKED_UP, STORE_LOOKED_UP = 0.0150, 0.0039
"""L2 lookup nanoseconds for a load's request, and for a stored sector."""
LOAD_CYCLES, SECTOR_CYCLES, STORE_CYCLES = 1.0, 0.73, 0.82
"""L1 cycles for a load's request to L2, a stored sector, and a store."""


def busy_ns(work: Work, parts: Sequence[Part], measured: Measured, sms: int) -> Mapping[str, float]:
    """Return how long each unit would be busy at its peak rate."""
    unit_ns = dict.fromkeys(PROFILED, 0.0)
    of_one = 1 / (work.share * sms)  # a part of an SM is the busiest SM's
    of_slice = measured.atomic_sector_ns / measured.turn_ns
    mean = {"SM": of_one, "L1": of_one, "L2": 1.0, "slice": of_slice}
    for part in parts:
        if unit := UNIT.get(part.what, "SM"):
            name = "L2" if unit == "slice" else unit
            unit_ns[name] = max(unit_ns[name], part.ns * mean[unit])
    cycle = 1000 / work.mhz
    unit_ns["L1"] = max(unit_ns["L1"], _asking(work.sums) * cycle / sms)
    of_launch = measured.l2_of_launch_ns or OF_A_LAUNCH_NS
    unit_ns["L2"] = max(unit_ns["L2"], of_launch + _second_level_ns(work.sums))
    moved = next((bound.ns for bound in work.bounds if bound.resource == "DRAM"), 0.0)
    return {**unit_ns, "DRAM": moved}


def is_own(part: Part) -> bool:
    """Return whether a part belongs to each SM: its units, and the stalls of its warps."""
    return part.what == "latency" or UNIT.get(part.what, "SM") in ("SM", "L1")


def _asking(sums: Mapping[int, Counts]) -> float:
    """Return the cycles that L1 needs to send its requests to L2."""
    cycles = 0.0
    for counted in sums.values():
        for space in (*LOADS, "texture_load", "const_load"):
            l2_reads = counted.get(f"{space}_l2_reads") or 0
            cycles += LOAD_CYCLES * (l2_reads if is_scattered(counted, space) else l2_reads / 4)
        for space in STORES:
            cycles += SECTOR_CYCLES * (counted.get(f"{space}_l2_writes") or 0)
            cycles += STORE_CYCLES * (counted.get(f"{space}_requests") or 0)
    return cycles


def _second_level_ns(sums: Mapping[int, Counts]) -> float:
    """Return the longest of the L2 times."""
    hits = misses = stored = apart = 0
    requests = 0.0
    for counted in sums.values():
        for space in STORES:
            sectors = counted.get(f"{space}_l2_writes") or 0
            isolated = sectors * is_scattered(counted, space)
            stored, apart = stored + sectors - isolated, apart + isolated
        for space in (*LOADS, "texture_load", "const_load"):
            l2_reads = counted.get(f"{space}_l2_reads") or 0
            l2_hits = counted.get(f"{space}_l2_read_hits") or 0
            hits, misses = hits + l2_hits, misses + l2_reads - l2_hits
            requests += l2_reads if is_scattered(counted, space) else l2_reads / 4
    every = hits, misses, stored, apart
    ns = [
        sum(a * b for a, b in zip(every, costs, strict=True))
        for costs in (FABRIC, FROM_SMS, TO_SMS)
    ]
    return max(*ns, requests * LOOKED_UP + (stored + apart) * STORE_LOOKED_UP)
