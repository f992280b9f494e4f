"""Units: the time that each unit of a chip takes alone for a launch.

Bandwidths and rates were measured (`scripts/measure/contention.py`, `latencies.py`). Sectors in any
order have lower rates than whole lines, and partly stored sectors lower ones still. The time of an
SM's units is that of the SM with most instructions.

Throughput: the busy time of SM, L1, L2 and DRAM, as Nsight Compute counts it.

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

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush

import pyarrow as pa

from ...base.dataclass import dataclass
from ...models.replay.device.measured import Measured
from ...models.replay.interface.model import ACCESSES, Ints
from ...traces.identity_cache import rows_of
from ...traces.schema import Launch
from ..counting.atomic_contention import AtomicContention
from ..counting.bounds import AT_ONE_ADDRESS, Bound
from ..machine.machine_code import ISSUED, pipe_cycles
from .first_touches import Touches

LSU = frozenset({
    *(0x180, 0x181, 0x183, 0x184, 0x185, 0x186, 0x187, 0x188, 0x189, 0x18A, 0x18B, 0x18C, 0x18D),
    *(0x18E, 0x1A3, 0x1A6, 0x1A8, 0x1A9, 0x1AE, 0x03B),
})  # fmt: skip
"""LD, LDG, LDL, LDS, ST, STG, STL, STS, SHFL, ATOM, ATOMS; RED, ATOMG, LDGSTS, LDSM."""
ADU = frozenset({0x182, 0x1C3, 0x11D, 0x119})
"""LDC, S2UR, BAR, S2R; an S2R that reads the lane's number belongs to the load-store unit."""
ADU_CYCLES = 2
WIDE_DIVISION = re.compile(r"(?:div|rem)\.[us]64")
"""Divisions for which ptxas calls a routine each time."""
DIVISION = "64-bit division"
REQUESTS_TO_L2 = "requests to L2"
LANE = re.compile(r"%(?:tid\.[xyz]|laneid|lanemask_\w+)")
"""Special registers that differ between lanes."""
REQUESTS = tuple(
    f"{space}_{access}_requests"
    for space in ("global", "shared", "local")
    for access in ACCESSES[space]
)


@dataclass(frozen=True, slots=True)
class LoadStore:
    """Load-store instructions, shared-memory passes without data, and ADU cycles of all SMs."""

    instructions: float
    without_data: float
    adu_cycles: float


def load_store(
    sums: Mapping[int, Mapping[str, int]],
    instructions: pa.Table,
    warps: int,
    issued: Mapping[int, float],
    polls: Container[int] = (),
) -> LoadStore:
    """Count load-store work from sums of raw counts by pc; blocks have `warps` warps.

    `issued` is machine instructions by operation per PTX instruction; without it the PTX counts.
    """
    memory = shuffles = whole = barriers = requests = replays = constants = 0
    of_lane, ran = dict[str, int](), dict[int, int]()
    for row in rows_of(instructions, "pc", "block", "class", "opcode", "text", "barrier"):
        for name in LANE.findall(row["text"]):  # these reads have no counts of their own
            of_lane.setdefault(name, row["block"])
        counted = sums.get(row["pc"])
        if not counted or row["block"] in polls:
            continue
        many = ran[row["block"]] = counted["instructions"]
        whole += many * (row["class"] != "free")
        memory += many * (row["class"] == "memory")
        shuffles += many * (row["opcode"] == "shfl")
        barriers += many * (row["barrier"] is not None)
        requests += sum(counted.get(name) or 0 for name in REQUESTS)
        constants += counted.get("const_load_requests") or 0
        replays += max(
            0, _counter(counted, "const_load_passes") - _counter(counted, "const_load_requests")
        )
    reads = sum(ran.get(block, 0) for block in of_lane.values())
    moves = whole * _sum(issued, LSU) if issued else memory + shuffles - constants
    uniform = whole * _sum(issued, ADU) - reads if issued else constants + barriers
    idle = max(0.0, moves - requests) + reads + barriers / max(1, warps)
    return LoadStore(moves + reads, idle, ADU_CYCLES * (max(0.0, uniform) + replays))


def _counter(counted: Mapping[str, int], name: str) -> int:
    return counted.get(name) or 0


def _sum(mix: Mapping[int, float], operations: Sequence[int] | frozenset[int]) -> float:
    return sum(mix.get(operation, 0.0) for operation in operations)


SECTOR, HANDED_OUT, WORD, WARP_BYTES = 32, 64, 4, 128
"""Bytes of a sector, bytes that memory returns at a time, and bytes of a word and of a warp's."""
ROUNDS = 8
"""Rounds of blocks from which all SMs are assumed to finish together."""
AGAIN = 4
"""Attempts per lane from which nearly every lane is assumed to retry."""
PIPED = ("integer", "single", "half", "double", "conversion")
"""Classes of instructions whose time comes from the machine code's pipes."""
LOADS = ("global_load", "local_load")
STORES = ("global_store", "local_store")
BULK_STORES = ("bulk_store", "bulk_reduction")
BULK = ("bulk_load", *BULK_STORES)
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A unit, and the `ns` nanoseconds that it takes alone."""

    what: str
    ns: float


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The work of a launch's units: sums of raw counts by pc, and samples of the trace.

    `share` is the part of all instructions that the busiest SM runs. `touches` are the access
    statistics. `issued` is machine instructions by operation per PTX instruction, if known. The
    chip holds `at_once` blocks. `products` are the cycles of the tensor pipe that are part of the
    latency already, `polls` the basic blocks of polls, which no other warp waits for.
    `spilled_sectors` are those of registers that went past L1. A lane `insists` on its exchanges
    until they succeed. A lock is held for `held_ns` each time; 0: there is none.
    """

    sums: Mapping[int, Counts]
    instructions: pa.Table
    bounds: Sequence[Bound]
    launch: Launch
    share: float
    mhz: float
    contention: AtomicContention
    touches: Touches
    issued: Mapping[int, float] = field(default_factory=dict)
    at_once: int = 0
    products: float = 0.0
    polls: Container[int] = ()
    spilled_sectors: float = 0.0
    insists: bool = False
    held_ns: float = 0.0

    def load_stores(self) -> LoadStore:
        """The work of the load-store units."""
        return load_store(
            *(self.sums, self.instructions, self.launch.warps, self.issued, self.polls)
        )


LDL, STL = 0x183, 0x187
"""Operations of local memory."""
OF_A_ROW = 4
"""Sectors of a register of a warp."""


def spilled_sectors(
    issued: Mapping[int, float], sums: Mapping[int, Counts], footprint: float, cache: float
) -> float:
    """Return the sectors of spilled registers that L1 does not hold.

    `issued` are machine instructions per PTX instruction, `footprint` the bytes of local memory of
    an SM's threads, `cache` those of its L1. What is used in turn misses each time where it does
    not fit.
    """
    if footprint <= cache:
        return 0.0
    executed = sum(row["instructions"] for row in sums.values())
    counted = sum(
        _of(row, "local_load_requests") + _of(row, "local_store_requests") for row in sums.values()
    )
    moves = executed * _sum(issued, (LDL, STL)) - counted
    return OF_A_ROW * max(0.0, moves)


def sm_share(sizes: Ints, blocks: int, sms: int, resident: int) -> float:
    """Return the share of instructions on the busiest SM; a block starts where one has ended.

    >>> import numpy as np
    >>> sm_share(np.array([4, 1, 1, 1, 1]), 5, 2, 1)
    0.5
    >>> sm_share(np.array([3, 2, 3, 2]), 4, 2, 2)  # two places an SM: the first blocks part
    0.6
    """
    equal = -(-blocks // sms) / blocks
    if len(sizes) != blocks or blocks > ROUNDS * sms * resident or not sizes.any():
        return equal
    if sizes.min() == sizes.max():
        return equal
    loads = [0] * sms
    # A heap of (finish time, place): the next block takes the first free place. Places of one SM
    # are `sms` apart, so that the first blocks go to all SMs in turn.
    free = [(0, place) for place in range(sms * resident)]
    for size in sizes.tolist():
        ends, place = heappop(free)
        loads[place % sms] += size
        heappush(free, (ends + size, place))
    return max(loads) / int(sizes.sum())


def unit_times(work: Work, measured: Measured) -> Iterator[Part]:
    """Yield the time of each unit alone: of sampled warps, so that its bound may be longer."""
    least = {bound.resource: bound.ns for bound in work.bounds}
    for part in _times(work, measured):
        yield Part(part.what, max(part.ns, least.get(part.what, 0.0)))


def _times(work: Work, measured: Measured) -> Iterator[Part]:
    yield from _sm_times(work, measured)
    yield Part("L2", _l2_ns(work, measured))
    yield Part("DRAM", _dram_ns(work, measured))
    yield from (Part(b.resource, b.ns) for b in work.bounds if b.resource == AT_ONE_ADDRESS)
    yield Part("atomics of a slice", work.contention.slice * measured.turn_ns)
    yield Part("atomics", _atomic_turns(work, measured) * measured.atomic_sector_ns)
    yield Part("atomics tried again", _tries_ns(work, measured))
    yield Part("locks", _locks_ns(work, measured))
    yield Part("launching blocks", work.launch.blocks * measured.block_ns(work.mhz))


def _sm_times(work: Work, measured: Measured) -> Iterator[Part]:
    """Yield the times of the units of an SM."""
    ns = work.share * 1000 / work.mhz
    units = work.load_stores()
    issued, pipes, data = 0, defaultdict[str, float](float), units.without_data
    texture = 0.0
    tensor = bulk = 0.0
    for row in rows_of(work.instructions, "pc", "block", "class", "mnemonic"):
        counted = work.sums.get(row["pc"])
        if not counted or row["class"] == "free" or row["block"] in work.polls:
            continue
        bulk += sum(_of(counted, f"{space}_bytes_distinct") for space in BULK)
        if cycles := measured.tensor_cycles(row["mnemonic"]):
            tensor += counted["instructions"] * cycles
            continue
        issued += counted["instructions"]
        data += _l1_cycles(counted, work.touches.passes.get(row["pc"], 1.0), measured)
        texture += _texture_cycles(counted, row["mnemonic"], measured)
        if WIDE_DIVISION.fullmatch(row["mnemonic"]):
            rate = measured.costs(row["mnemonic"], row["class"])[1]
            pipes[DIVISION] += counted["instructions"] * rate
        elif row["class"] not in ("memory", "control", *(PIPED if work.issued else ())):
            rate = measured.costs(row["mnemonic"], row["class"])[1]
            pipes[row["class"]] += counted["instructions"] * rate
    if not work.issued:
        yield Part("issue slots", issued / ISSUED * ns)
    for name, cycles in pipe_cycles(work.issued, measured) if work.issued else ():
        yield Part(name, issued * cycles * ns)
    for name, cycles in pipes.items():
        yield Part(name if name == DIVISION else f"{name} arithmetic", cycles * ns)
    yield Part("L1 and shared memory", data * ns)
    yield Part(REQUESTS_TO_L2, _port_cycles(work, measured) * ns)
    yield Part("texture units", texture * ns)
    tensor = max(0.0, (tensor * work.share) ** 3 - work.products**3) ** (1 / 3)
    yield Part("tensor pipe", tensor * 1000 / work.mhz)
    yield Part("bulk copies", bulk / measured.bulk_bytes * ns)
    yield Part("ADU pipe", units.adu_cycles * ns)


def _port_cycles(work: Work, measured: Measured) -> float:
    """Return the cycles of the SMs' ports to L2: those of each line, and of stored data.

    On an H100 an SM alone stored 32 words that lie 1, 2, 4, 8, 16 and 32 words apart in 4.9, 8.5,
    19.7, 39.2, 47.9 and 64.4 cycles, the sum of their sectors and lines: 5, 10, 20, 40, 48 and 64.
    It loaded 16 lines in 15.5 cycles, 32 in 31.7.
    """
    line, sector = measured.port_cycles
    cycles = 0.0
    for pc, counted in work.sums.items():
        lines = max(0.25, work.touches.apart.get(pc, 0.25))
        for space in (*LOADS, "texture_load", "const_load"):
            cycles += line * lines * _of(counted, f"{space}_l2_reads")
        for space in STORES:
            cycles += (sector + line * lines) * _of(counted, f"{space}_l2_writes")
    return cycles


def _atomic_turns(work: Work, measured: Measured) -> float:
    """Return the turns of all sectors; one that compares takes longer."""
    counted, longer = work.contention, measured.compared_turns
    attempts = 0 if work.held_ns or _tries_again(work) else counted.attempts
    return counted.sectors + counted.compared * (longer - 1) + attempts * longer


def _tries_again(work: Work) -> bool:
    """Return whether nearly every lane tries again, unlike in a search for the maximum."""
    return work.insists and work.contention.tries >= AGAIN * work.contention.rivals


def _tries_ns(work: Work, measured: Measured) -> float:
    """Return the time of all attempts to exchange the words of the most contended slice."""
    counted = work.contention
    if work.held_ns or not counted.tries:
        return 0.0
    if not _tries_again(work):
        return counted.tries * counted.beside / counted.rivals * measured.turn_ns
    tries = measured.tries(counted.rivals)
    if counted.beside > counted.rivals:
        # others' turns come between two attempts: those that are in flight at once try in turn
        width = counted.rivals * min(1.0, work.at_once / work.launch.blocks)
        tries = min(tries, tries_in_turn(counted.rivals, width))
    # lanes of a warp at different words of a sector take one turn
    return counted.beside * tries * counted.attempts / counted.attempted * measured.turn_ns


def tries_in_turn(rivals: float, width: float) -> float:
    """Return the attempts of each lane until all have exchanged one word, `width` at a time.

    One lane succeeds while all others in flight fail; towards the end fewer are in flight.

    >>> tries_in_turn(32, 32)  # a warp: (32 + 31 + ... + 1) / 32 are 16.5
    16.0
    """
    return width - width**2 / rivals / 2


def _locks_ns(work: Work, measured: Measured) -> float:
    """Return the time in which all lanes that want the most contended lock hold it.

    The next one's attempt waits for those of all others at its slice, half of them on average.
    """
    counted = work.contention
    waiting = counted.beside * min(1.0, work.at_once / work.launch.blocks) / 2
    return counted.rivals * (work.held_ns + waiting * measured.turn_ns) if work.held_ns else 0.0


def _names(work: Work, endings: str | tuple[str, ...]) -> list[str]:
    """Return the raw counters with these suffixes; every pc has the same ones."""
    return [name for name in next(iter(work.sums.values()), {}) if name.endswith(endings)]


def _of(counted: Counts, name: str) -> int:
    return counted.get(name) or 0


def _l1_cycles(counted: Counts, passes: float, measured: Measured) -> float:
    """Return the L1 cycles of a pc: one per pass over banks or four lines, on most chips.

    Load-store units of 16 lanes move 64 bytes per cycle, also where lanes share an address; those
    of 32 lanes are not known to take longer for wide accesses.
    """
    requests = asked = cycles = 0.0
    for access in ACCESSES["shared"]:
        cycles += _of(counted, f"shared_{access}_passes")
        requests += _of(counted, f"shared_{access}_requests")
        asked += _of(counted, f"shared_{access}_bytes_asked")
    for space in LOADS[:1] + STORES[:1]:
        requests += _of(counted, f"{space}_requests")
        asked += _of(counted, f"{space}_bytes_asked")
        cycles += measured.pass_cycles * passes * _of(counted, f"{space}_requests")
    for space in LOADS[1:] + STORES[1:]:
        requests += _of(counted, f"{space}_requests")
        lines = max(_of(counted, f"{space}_requests"), _sectors(counted, space) / 4)
        cycles += measured.pass_cycles * lines
    words = max(requests, asked / WARP_BYTES) if measured.request_cycles > 1 else requests
    return max(cycles, measured.request_cycles * words)


def _texture_cycles(counted: Counts, mnemonic: str, measured: Measured) -> float:
    """Return the texture-unit cycles of a pc."""
    requests = _of(counted, "texture_load_requests")
    least = measured.at("texture", "line" if ".1d" in mnemonic else "plane_point", 1)
    return max(requests * least, _sectors(counted, "texture_load") / 4)


def _sectors(counted: Counts, space: str) -> int:
    """Return the sectors that L1 looks up."""
    return _of(counted, f"{space}_l1_reads") or _of(counted, f"{space}_l1_writes")


def is_scattered(counted: Counts, space: str) -> bool:
    """Return whether lanes request few bytes each of many sectors."""
    requests, sectors = _of(counted, f"{space}_requests"), _sectors(counted, space)
    return sectors > 4 * requests and _of(counted, f"{space}_bytes_distinct") <= 8 * sectors


def _l2_ns(work: Work, measured: Measured) -> float:
    """Return the L2 time: lines, sectors in any order, sectors of many lines, and partly stored
    ones.

    A request costs the more the more lines it has: a load of a word of each of 32 lines takes as
    long as one in any order.

    A sector of a whole line costs the more the fewer of its bytes a request stores, down to a word
    (`scatter_turn`, measured). On an H100 `coarse<3>` of tests/validate/variants stored a word of
    each sector in 11.9 ps, `smoothed<2>` two words in 5.9 ps, near the rate of whole sectors. One
    that is alone in its line costs more (`scatter`, measured): a transpose stored a word of each
    line in 17 ps, `swapped<1>` of more.cu two words in 12 ps.
    """
    lines, gathered, scattered, ns = 0, 0, 0, 0.0
    whole = SECTOR / measured.l2_gb_per_s()
    together, alone = measured.sector_ns("scatter_turn"), measured.sector_ns("scatter")
    for pc, counted in work.sums.items():
        mixed, apart = pc in work.touches.any_order, work.touches.apart.get(pc)
        for space in (*LOADS, "texture_load", "const_load", "bulk_load"):
            sectors = _of(counted, f"{space}_l2_reads")
            if mixed and is_scattered(counted, space):
                gathered += sectors
            elif is_scattered(counted, space):
                ns += sectors * _by_lines(whole, measured.sector_ns("gather"), apart)
            else:
                lines += sectors
        for space in STORES:
            sectors = _of(counted, f"{space}_l2_writes")
            stored, parts = _of(counted, f"{space}_bytes_distinct"), _sectors(counted, space)
            if 4 * stored > 3 * SECTOR * parts:
                lines += sectors
            elif mixed:
                scattered += sectors
            else:
                share = min(1.0, WORD * parts / stored) if stored else 1.0
                own = _by_lines(share * together, (1 + share) / 2 * alone, apart)
                ns += sectors * max(whole, own)
        lines += sum(_of(counted, f"{space}_l2_writes") for space in BULK_STORES)
    ns += (lines + work.spilled_sectors) * whole
    return ns + gathered * measured.sector_ns("gather") + scattered * measured.sector_ns("scatter")


def _by_lines(together: float, alone: float, apart: float | None) -> float:
    """Return the time of a sector by the lines per sector of its request.

    `together` is that of a sector of a whole line, `alone` that of the only sector of its line.

    >>> [_by_lines(4.0, 7.0, apart) for apart in (None, 0.25, 0.5, 1.0)]
    [4.0, 4.0, 5.0, 7.0]
    """
    return together + (alone - together) * (4 * (apart or 0.25) - 1) / 3


def _dram_ns(work: Work, measured: Measured) -> float:
    """Return the DRAM time: lines, sectors in any order, and partial stores with their fills."""
    lines = gathered = scattered = written = 0
    names = _names(work, ("_dram_bytes_read", "_bytes_written"))
    for pc, counted in work.sums.items():
        mixed = pc in work.touches.any_order
        for name in names:
            space = name.partition("_dram")[0]
            moved = _of(counted, name)
            if mixed and space in LOADS and is_scattered(counted, space):
                gathered += moved
            elif mixed and (_stores_parts(counted, space) or _is_spread(counted, space)):
                scattered += moved
            else:
                lines += moved
                written += moved * name.endswith("written")
    # lines that are read and written in turn take longer than those of one direction
    both = 2 * min(written, lines - written)
    ns = (lines - both) / measured.dram_gb_per_s() + both / measured.copy_gb_per_s()
    ns += gathered / HANDED_OUT * measured.far_sector_ns("gather")
    return ns + scattered / HANDED_OUT * measured.far_sector_ns("scatter")


def _stores_parts(counted: Counts, space: str) -> bool:
    """Return whether lanes store parts of many sectors, which memory fills first."""
    if space not in STORES:
        return False
    requests, sectors = _of(counted, f"{space}_requests"), _sectors(counted, space)
    stored = _of(counted, f"{space}_bytes_distinct")
    return sectors > 4 * requests and 4 * stored <= 3 * SECTOR * sectors


def _is_spread(counted: Counts, space: str) -> bool:
    """Return whether atomics of a request go to more sectors than those of one line."""
    if space not in ("global_atomic", "global_reduction"):
        return False
    return _of(counted, f"{space}_l2_writes") > 4 * _of(counted, f"{space}_requests")


UNIT = {
    **{"L1 and shared memory": "L1", REQUESTS_TO_L2: "L1"},
    **{"texture units": "L1", "atomics": "L2"},
    **{"L2": "", "DRAM": "", "launching blocks": "", "latency": "", "PCIe": "", "PCIe, stores": ""},
    **{AT_ONE_ADDRESS: "slice", "atomics of a slice": "slice"},
    **{"atomics tried again": "slice", "locks": ""},
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
        unit = UNIT.get(part.what, "SM")
        if unit and part.what != REQUESTS_TO_L2:  # the profiler counts these in its own way, below
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
        stored += sum(counted.get(f"{space}_l2_writes") or 0 for space in BULK_STORES)
        for space in (*LOADS, "texture_load", "const_load", "bulk_load"):
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
