"""Throughput: how long SM, L1, L2 and DRAM are at work, as Nsight Compute counts it.

Each of the profiler's `sm__throughput`, `l1tex__`, `lts__` and `dram__throughput` is the highest of
several counts, each over the most of it in a cycle, over all units of the chip, idle ones
included. The counts modelled here, each as the time that it takes at its best:

- SM: warp instructions, those of the load-store unit, one a cycle, and the cycles of each pipe;
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
"""The unit that a part keeps busy, the SM unless said."""
PROFILED = {"L1": "l1tex", "SM": "sm", "L2": "lts", "DRAM": "dram"}
"""The profiler's names of the units."""
OF_A_LAUNCH_NS = 33.4
"""Time of the second level for any launch: code, arguments, and what follows the end."""
FABRIC = (0.0, 0.0210, 0.0053, 0.0053)
FROM_SMS = (0.0035, 0.0008, 0.0066, 0.0132)
TO_SMS = (0.0033, 0.0039, 0.0, 0.0)
"""Nanoseconds of the second level for a sector that it has, one that it has not, one stored with
others of its line, one stored alone."""
LOOKED_UP, STORE_LOOKED_UP = 0.0150, 0.0039
"""The same for a load's request, and for a sector stored."""
LOAD_CYCLES, SECTOR_CYCLES, STORE_CYCLES = 1.0, 0.73, 0.82
"""Cycles of a first level for a load's request of the second, a sector stored, a store."""


def busy_ns(work: Work, parts: Sequence[Part], measured: Measured, sms: int) -> Mapping[str, float]:
    """How long each unit would be at work at its best."""
    unit_ns = dict.fromkeys(PROFILED, 0.0)
    of_one = 1 / (work.share * sms)  # the parts of an SM are the busiest one's
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
    """Whether a part is of what each SM has for itself: its units, and its warps' waiting."""
    return part.what == "latency" or UNIT.get(part.what, "SM") in ("SM", "L1")


def _asking(sums: Mapping[int, Counts]) -> float:
    """Cycles in which first levels ask something of the second."""
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
    """The longest of what the second level does."""
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
