"""Throughput: how long SM, L1, L2 and DRAM are at work, as Nsight Compute counts it.

Each of the profiler's `sm__throughput`, `l1tex__`, `lts__` and `dram__throughput` is the highest of
several counts, each over the most of it in a cycle, over all units of the chip, idle ones
included. Those that are counted here, each as the time that it takes at its best:

- SM: warp instructions, those of the load-store unit, one a cycle, and those of each pipe;
- L1: passes over the data banks, and what it asks of the second level, a request in two cycles;
- L2: sectors, half of those of the SMs looked up again at the far side, and loads' requests;
- DRAM: the bytes at the board's bandwidth.

Every launch has the second level look up some sectors besides: on an H100 ten times as many as on
an H200, by an empty kernel on it (`empty_l2_base` of measured/h100.csv). All others of these were
read from the profiler's counters of *programs* on an H200 (docs/time.md).
"""

from collections.abc import Mapping, Sequence

from ...models.replay.device.measured import Measured
from ...traces.table.remembered import rows_of
from .units import LOADS, SECTOR, STORES, Counts, Part, Work, is_scattered

UNIT = {
    **{"L1 and shared memory": "L1", "texture units": "L1", "atomics": "L2"},
    **{"L2": "", "DRAM": "", "launching blocks": "", "latency": ""},
    **{"atomics at one address": "slice", "atomics of a slice": "slice"},
}
"""The unit that a part keeps busy, the SM unless said."""
PROFILED = {"L1": "l1tex", "SM": "sm", "L2": "lts", "DRAM": "dram"}
"""The profiler's names of the units."""
LOOKED_UP = 1.5
"""Sectors that the second level looks up for each that an SM wants."""
OF_A_LAUNCH = 6200
"""Sectors that it looks up for any launch: code, arguments, and what follows the end."""
OF_BEST = 0.93
"""What sectors over throughput end at, of the sectors that a measured bandwidth is of."""
REQUESTS = 42
"""Loads' requests that it takes in a cycle of the SMs, each of sectors of a line."""
ASKING = 2
"""Cycles of a first level for a load's request of the second."""


def busy_ns(work: Work, parts: Sequence[Part], measured: Measured, sms: int) -> Mapping[str, float]:
    """How long each unit would be at work at its best."""
    found = dict.fromkeys(PROFILED, 0.0)
    of_one = 1 / (work.share * sms)  # the parts of an SM are the busiest one's
    of_slice = measured.atomic_sector_ns / measured.turn_ns
    mean = {"SM": of_one, "L1": of_one, "L2": 1.0, "slice": of_slice}
    for part in parts:
        if unit := UNIT.get(part.what, "SM"):
            name = "L2" if unit == "slice" else unit
            found[name] = max(found[name], part.ns * mean[unit])
    cycle = 1000 / work.mhz
    sectors, requests = _wanted(work.sums)
    found["SM"] = max(found["SM"], _load_store(work) * cycle / sms)
    found["L1"] = max(found["L1"], requests * ASKING * cycle / sms)
    best = OF_BEST * measured.at("bytes", "read_l2_4", 131072) / SECTOR
    of_launch = measured.l2_of_launch_ns
    looked_up = sectors * LOOKED_UP + (OF_A_LAUNCH if of_launch is None else 0)
    l2 = looked_up / best * cycle + (of_launch or 0.0)
    found["L2"] = max(found["L2"], l2, requests / REQUESTS * cycle)
    moved = next((bound.ns for bound in work.bounds if bound.resource == "DRAM"), 0.0)
    return {**found, "DRAM": moved}


def is_own(part: Part) -> bool:
    """Whether a part is of what each SM has for itself: its units, and its warps' waiting."""
    return part.what == "latency" or UNIT.get(part.what, "SM") in ("SM", "L1")


def _load_store(work: Work) -> int:
    """Instructions of the load-store units."""
    rows = rows_of(work.instructions, "pc", "class", "mnemonic")
    mine = (row["pc"] for row in rows if row["class"] == "memory")
    return sum(work.sums[pc]["instructions"] for pc in mine if pc in work.sums)


def _wanted(sums: Mapping[int, Counts]) -> tuple[int, float]:
    """Sectors that SMs want of the second level, and requests of loads: a line, or a far sector."""
    sectors, requests = 0, 0.0
    for counted in sums.values():
        sectors += sum(counted.get(f"{space}_l2_writes") or 0 for space in STORES)
        for space in (*LOADS, "texture_load", "const_load"):
            wanted = counted.get(f"{space}_l2_reads") or 0
            sectors += wanted
            requests += wanted if is_scattered(counted, space) else wanted / 4
    return sectors, requests
