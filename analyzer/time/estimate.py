"""The estimate: a launch's time, from the stalls of its warps and the work of its units.

1. The longest warps of some blocks run alone, in the machine code that the assembler made for this
   architecture or, where the trace has none, in PTX (`chain.py`). Each load takes the latency of
   L1, L2 and memory, in the shares that the cache replay counted.
2. Blocks run in rounds of as many as fit on the SMs: the time of a warp is multiplied.
3. The units' times are computed from measured bandwidths and rates: the pipes, issue, shared
   memory, L1, L2, DRAM, atomics on one address and the launching of blocks.
4. Times are combined as the third root of the sum of their cubes. The latency of a chain of loads
   and the memory's bandwidth combined this way, while loads in flight were raised from one per warp
   to more than enough (`read_dram_1` of models/devices/measured/sm_90.csv). The time of an empty
   kernel is added, and one load of its arguments from memory: the profiler empties caches before
   each launch.

The clock is the profiler's, since its duration is estimated, unless the device sets another.
Nothing is fitted to a kernel.

From a sample of blocks, instructions and L1 requests are scaled to the grid. A sample does not
determine cache hits, so the launch is estimated twice, with every load a hit and with every load a
miss. Both ends are widened by the confidence interval of the sample.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from math import inf, log

import polars as pl
import pyarrow as pa

from ...base.dataclass import dataclass
from ...models.replay.device.device import Device
from ...models.replay.device.measured import Measured
from ...traces.identity_cache import cached_by_identity, rows_of
from ...traces.schema import Launch
from ..counting.atomic_contention import AtomicContention
from ..counting.bounds import AT_ONE_ADDRESS, ATOMICS, Bound
from ..counting.derived_columns import LAUNCH_COLUMN
from ..counting.interval import Interval
from .asynchronous import GMMA, read_asynchronous
from .chain import Chain, Step, read_operands, run_chain, runs_in_machine_code
from .first_touches import Touches
from .host_memory import HostTraffic, host_times
from .polls import Lock, drop_polls, find_locks, find_polls, insists
from .sample_warps import Histories, Ran
from .units import (
    LOADS,
    REQUESTS_TO_L2,
    SECTOR,
    STORES,
    WIDE_DIVISION,
    Counts,
    Part,
    Work,
    busy_ns,
    is_own,
    is_scattered,
    sm_share,
    spilled_sectors,
    unit_times,
)

Misses = tuple[tuple[float, float, str], ...]
"""Shares of a load's executions, the cycles that each waits longer than a hit, and stall reasons.
"""
PRINTS = "vprintf"
"""Function that a printing kernel calls."""
EARLY = 1.5
"""Loads of a poll: what others wrote comes halfway through one of them, on average."""
CONFLICT = 2.0
"""Cycles that each further pass over the banks delays a warp. Passes of several warps overlap, one
a cycle: on an H100 a warp alone took 161 cycles for a load and a store of 32 passes each, and eight
warps 33 for each access (tests/validate/time/h100_kinds.csv, bank_rows). A load of L1 waits as
long: one of 16 passes 33 cycles longer than one of a single pass, one of 32 passes 69.
"""
MEET = 3
"""Exponent p of the p-norm that combines times."""
LATENCY, BLOCKS = "latency", "launching blocks"
STALL_OF = {
    "dram": "memory",
    "l2": "L2",
    "l1": "L1",
    "shared": "shared memory",
    "atomic": "atomics",
    "const": "constants",
    "barrier": "barriers",
    "branch": "branches",
    "pipe": "results of arithmetic",
    "tensor": "tensor products",
    "fence": "memory fences",
}
LANES_RUN = "thread_instructions"
NEEDED = (
    *("_requests", "_passes", "_bytes_distinct", "_load_transactions", "_store_transactions"),
    *("_bytes_asked", "_load_sectors"),
    *("_l1_reads", "_l1_read_hits", "_l1_writes", "_l2_reads", "_l2_read_hits", "_l2_writes"),
    *("_dram_bytes_read", "_dram_bytes_written", LANES_RUN),
)
"""Suffixes of the raw counts that latencies and L1 times need."""
READ = (
    *("pc", "block", "class", "mnemonic", "operation", "access", "barrier", "text"),
    *("space", "cache"),
)
"""Instruction columns from which a step is built."""
STALLS = {
    **{"memory": "long_scoreboard", "L2": "long_scoreboard", "L1": "long_scoreboard"},
    **{"shared memory": "short_scoreboard", "barriers": "barrier", "atomics": "long_scoreboard"},
    **{"branches": "branch_resolve", "constants": "imc_miss", "results of arithmetic": "wait"},
    **{"tensor products": "gmma", "memory fences": "membar"},
}
"""Stall reason to Nsight Compute's name."""
L1_UNIT, SHARED_QUEUE, L1_QUEUE = "L1 and shared memory", "queue of shared memory", "queue of L1"
QUEUE_OF = {
    **{"L2": "L2", "DRAM": "memory", "texture units": "queue of textures"},
    REQUESTS_TO_L2: L1_QUEUE,
    **{"PCIe": "memory", "PCIe, stores": "memory"},
    **{"issue slots": "issue slots", "ADU pipe": "", BLOCKS: ""},
    **{"atomics": "atomics", "atomics of a slice": "atomics", "atomics tried again": "atomics"},
    "locks": "atomics",
    AT_ONE_ADDRESS: "atomics",
}
"""Unit to the stall reason of warps that queue for it (empty: none of a warp's own); other units
are arithmetic pipes."""
PIPES = "arithmetic pipes"
STALLS |= {
    SHARED_QUEUE: "mio_throttle, short_scoreboard",
    **{L1_QUEUE: "long_scoreboard", PIPES: "math_pipe_throttle"},
    **{"issue slots": "not_selected", "queue of textures": "tex_throttle"},
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A launch's time in nanoseconds at a clock, and its parts, longest first.

    The first part is the limit: a unit, or `latency` if the stalls of warps take longer than any
    unit. `stalls` are the shares of a warp's time by stall reason: what it waits for alone, and the
    queue for the longest unit. `at` are the shares of its own time by pc.
    `busy` is the utilization of SM, L1, L2 and DRAM over the launch's time, as in the profiler's
    throughputs. `batches` of warps are on an SM at a time (`combine`).
    """

    ns: float
    mhz: float
    parts: tuple[Part, ...]
    stalls: Mapping[str, float] = field(default_factory=dict)
    at: Mapping[tuple[int, str], float] = field(default_factory=dict)
    busy: Mapping[str, float] = field(default_factory=dict)
    batches: float = inf


@dataclass(frozen=True, slots=True, eq=False)
class LoadService:
    """The caches that served each pc's loads: sums of raw counts, shares, and cycles of L1."""

    counts: Mapping[int, Mapping[str, int]]
    shares: Mapping[int, tuple[float, float]]
    passes: Mapping[int, float]
    host: Container[int] = ()


def _shares(row: Mapping[str, int], space: str, fresh_share: float = 1.0) -> tuple[float, float]:
    """Return the shares of a pc's requests that wait for L2, and for memory.

    A request of scattered lanes waits for its slowest lane, so one miss is enough. At most
    `fresh_share` of the requests, those with a lane at a new address, can miss that way.
    """
    reads = row.get(f"{space}_l1_reads") or 0
    hits = row.get(f"{space}_l1_read_hits") or 0
    far, far_hits = row.get(f"{space}_l2_reads") or 0, row.get(f"{space}_l2_read_hits") or 0
    missed = 1 - hits / reads if reads else 1.0
    farther = missed * (1 - far_hits / far) if far else 0.0
    if not is_scattered(row, space):  # memory returns two sectors at a time
        return missed, min(missed, 2 * farther)
    lanes = reads / (row.get(f"{space}_requests") or 1)
    return _any_lane_misses(missed, lanes, fresh_share), _any_lane_misses(
        farther, lanes, fresh_share
    )


def _any_lane_misses(missed: float, lanes: float, fresh_share: float) -> float:
    """Return the share of requests with a miss in at least one of several lanes."""
    return max(missed, min(fresh_share, float(1 - (1 - missed) ** lanes)))


def _space(row: Mapping[str, int]) -> str:
    """Return the kind of load at a pc."""
    spaces = ("global_load", "local_load", "texture_load", "bulk_load")
    return next((space for space in spaces if row.get(f"{space}_requests")), "")


def _outstanding_fills(
    counts: Mapping[int, Mapping[str, int]],
    instructions: pa.Table,
    per_group: tuple[int, int],
    touches: Touches,
) -> Mapping[int, tuple[float, float]]:
    """Return the shares of loads that wait for L2 and for memory, counting misses in flight.

    Warps that run in step read the same lines. The first warp misses. The others, which the replay
    counts as hits, wait for its fill if they touch the line for the first time. `per_group` is the
    number of such warps per SM and per chip. The longest warps may have fewer of the first-touch
    misses, where most warps of a block end early.
    """
    wait_shares: dict[int, tuple[float, float]] = {}
    for pc in range(instructions.num_rows):
        counted = counts.get(pc, {})
        if space := _space(counted):
            far, farther = _shares(counted, space, touches.refetched.get(pc, 1.0))
            firsts = touches.firsts.get(pc, 0.0)
            own = touches.longest.get(pc, firsts)
            far, farther = _own_misses(far, firsts, own), _own_misses(farther, firsts, own)
            firsts = 0.0 if pc in touches.any_order else own
            # A fill in flight serves all warps of its group, so up to that many loads wait for it,
            # but never more than touch the line for the first time.
            far = max(far, min(firsts, far * per_group[0]))
            # What a block beside has loaded before is in L2.
            firsts = max(0.0, firsts - touches.earlier.get(pc, 0.0))
            wait_shares[pc] = far, max(farther, min(firsts, far, farther * per_group[1]))
    return wait_shares


def _own_misses(missed: float, firsts: float, own: float) -> float:
    """Return the miss share of rows with another share of first touches than all rows have.

    >>> _own_misses(0.5, 0.5, 0.25), _own_misses(0.75, 0.5, 0.25), _own_misses(0.5, 0.0, 0.0)
    (0.25, 0.5, 0.5)
    """
    return missed if own >= firsts else missed - min(missed, firsts) * (1 - own / firsts)


@dataclass(frozen=True, slots=True, eq=False)
class EstimateInput:
    """A fully counted launch on a device; `resident` blocks fit on an SM.

    `sums` are the sums of raw counts by pc (`sum_by_pc`).
    """

    sums: Mapping[int, Mapping[str, int]]
    instructions: pa.Table
    bounds: Sequence[Bound]
    launch: Launch
    resident: int
    device: Device
    mhz: float
    contention: Callable[[], AtomicContention] | None = None
    host: HostTraffic = HostTraffic()


def estimate(request: EstimateInput, ran: Ran, measured: Measured) -> Estimate:
    """Estimate a launch from the execution of its sampled warps."""
    ns = 1000 / request.mhz
    sums = request.sums
    locks = find_locks(request.instructions, request.launch.waiting)
    polls = find_polls(request.instructions, request.launch.waiting)
    polls = {**polls, **{block: True for lock in locks for block in lock.blocks}}
    if polls:
        histories = [(tuple(drop_polls(each, polls)), many) for each, many in ran.histories]
        ran = replace(ran, histories=histories)
    served = _served_loads(request, ran)
    code = _code(request, served, measured, polls)
    units = read_asynchronous(
        *(request.launch, request.instructions, sums),
        lambda pc: served.shares.get(pc, (1.0, 0.0))[1],
        min(request.launch.blocks, request.resident * request.device.chip.sms),
        *(request.device.chip.sms, measured, request.mhz),
    )
    called = _calls(request.instructions), _divisions(request.instructions)
    run = runs_in_machine_code(request.launch, request.device, code, measured, units, *called)
    run = run or partial(run_chain, code=code)
    chains = [(run(history), weight) for history, weight in ran.histories]
    whole = sum(weight for _, weight in chains) or 1
    # The last round ends with the longest warp, so it replaces the mean in that round.
    cycles = sum(chain.cycles * weight for chain, weight in chains) / whole
    last = max((chain.cycles for chain, _ in chains), default=0.0)
    rounds = _rounds(request.launch.blocks, request.device.chip.sms * max(1, request.resident))
    latency = Part(
        LATENCY, (cycles * (rounds - 1) + last) * ns + _arrivals_ns(request, code, polls)
    )
    of_warp = max((chain.issued.get(GMMA, 0.0) for chain, _ in chains), default=0.0)
    products = of_warp * rounds * units.product_cycles if units else 0.0
    products += rounds * sum(chain.products * weight for chain, weight in chains) / whole
    work = _work(request, sums, ran, _issued(chains, ran, code), products)
    work = replace(work, polls=polls, spilled_sectors=_spilled(request, work.issued))
    if insists(request.instructions, request.launch.waiting):
        work = replace(work, insists=True)
    if locks:
        held = max(_held(lock, ran.histories, chains) for lock in locks)
        work = replace(work, held_ns=(held + measured.l2_cycles(request.mhz)) * ns)
    parts = [latency, *unit_times(work, measured), *host_times(request.host, measured)]
    parts = sorted((part for part in parts if part.ns > 0), key=lambda part: -part.ns)
    batches = _batches(request)
    met = combine(parts, batches)
    start = measured.launch_ns(request.mhz)
    if any(_space(row) for row in sums.values()):
        start += measured.dram_cycles(request.mhz) * ns
    if prints := _prints(request.instructions):
        calls = [sum(prints.get(block, 0) * n for block, n in each) for each, _ in ran.histories]
        start += measured.print_ns(max(1, *calls), *_printed(request), request.mhz)
    sms = request.device.chip.sms
    took, (own, at) = met + start, _stall_shares(chains, whole * cycles)
    stalls = _with_queue(own, parts, met, sums)
    # no unit is busy for longer than the launch takes: where its peak rate says so, it is full
    full = busy_ns(work, parts, measured, sms).items()
    busy = {name: min(each / took, 1.0) for name, each in full}
    return Estimate(took, request.mhz, tuple(parts), stalls, at, busy, batches)


def _arrivals_ns(
    request: EstimateInput, code: Mapping[int, Sequence[Step]], polls: Container[int]
) -> float:
    """Return how long blocks that poll wait for each other's atomics: a barrier of the grid ends
    when all have counted up one word, one after the other.
    """
    steps = [step for block, each in code.items() if block in polls for step in each]
    if not any(step.is_load or step.stall == "atomic" for step in steps):
        return 0.0
    return sum(bound.ns for bound in request.bounds if bound.resource == AT_ONE_ADDRESS)


def _held(lock: Lock, histories: Histories, chains: Sequence[tuple[Chain, int]]) -> float:
    """Return the cycles for which a warp holds a lock each time, on average."""
    cycles, times = 0.0, 0
    for (history, weight), (chain, _) in zip(histories, chains, strict=True):
        times += weight * sum(many for block, many in history if block == lock.release)
        cycles += weight * sum(took for (pc, _), took in chain.at.items() if pc in lock.section)
    return cycles / times if times else 0.0


def _with_queue(
    own: Mapping[str, float],
    parts: Sequence[Part],
    met: float,
    sums: Mapping[int, Mapping[str, int]],
) -> Mapping[str, float]:
    """Return the shares of a warp's time among others: they share the units, and queue for them."""
    alone = sum(part.ns for part in parts if part.what == LATENCY) / met if met else 1.0
    longest = next((part.what for part in parts if part.what != LATENCY), BLOCKS)
    reason = QUEUE_OF.get(longest, PIPES)
    if not reason or alone >= 1:
        return own
    shares = defaultdict[str, float](float, {why: share * alone for why, share in own.items()})
    if longest == L1_UNIT:
        passes, requests = (
            sum(row.get(f"{space}_load_{what}") or 0 for row in sums.values())
            for space, what in (("shared", "passes"), ("global", "requests"))
        )
        reason = SHARED_QUEUE if passes > requests else L1_QUEUE
    shares[reason] += 1 - alone
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def combine(parts: Sequence[Part], batches: float = inf) -> float:
    """Return the time of parts that overlap, in nanoseconds.

    The latency, the units of SMs and those beyond follow one another in a block whose warps keep
    step; they overlap as far as an SM has other `batches` of warps. Two stations that take equally
    long serve n customers in (n + 1) / n of the time of one of them (a closed queueing network).

    >>> round(combine([Part("L2", 1000.0), Part("DRAM", 1000.0)]))
    1260
    >>> [round(combine([Part("L1", 1000.0), Part("DRAM", 1000.0)], n)) for n in (1, 2, 3)]
    [2000, 1500, 1333]
    """
    groups = defaultdict[int, list[float]](list)
    for part in parts:
        groups[0 if part.what == LATENCY else 1 if is_own(part) else 2].append(part.ns)
    meet = min(MEET, log(2) / log(1 + 1 / batches)) if batches < inf else MEET
    return _norm([_norm(each, MEET) for each in groups.values()], meet)


def _norm(values: Sequence[float], power: float) -> float:
    return float(sum(value**power for value in values) ** (1 / power))


def _batches(request: EstimateInput) -> float:
    """Return how many batches of warps an SM has at a time: blocks, times the loads of a warp from
    one barrier to the next. Without barriers a block ends with all its warps, and another begins.

    The latency has the time of one warp at the units, so that a block of one is no batch; nor is
    one that only stores, for which no warp waits.
    """
    blocks, each = request.launch.blocks, request.launch.warps
    loads, phases = 0, blocks * each
    for row in rows_of(request.instructions, "pc", "access", "barrier", "operation"):
        many = (request.sums.get(row["pc"]) or {}).get("instructions") or 0
        loads += many * (row["access"] == "load")
        phases += many * (row["barrier"] is not None and row["operation"] != "arrive")
    if each == 1 or not loads:
        return inf
    at_once = max(1, min(request.resident, -(-blocks // request.device.chip.sms)))
    return at_once * max(1.0, loads / phases) * each / (each - 1)


@cached_by_identity
def _prints(instructions: pa.Table) -> Mapping[int, int]:
    """Return the calls that print of each basic block; a warp waits for each."""
    rows = rows_of(instructions, "block", "text")
    return Counter(row["block"] for row in rows if PRINTS in row["text"])


def _printed(request: EstimateInput) -> tuple[float, float]:
    """Return the calls that print of all warps, and those of all lanes."""
    rows = rows_of(request.instructions, "pc", "text")
    counted = [request.sums.get(row["pc"], {}) for row in rows if PRINTS in row["text"]]
    warps, lanes = (
        sum(row.get(name) or 0 for row in counted) for name in ("instructions", LANES_RUN)
    )
    return warps, lanes


def _spilled(request: EstimateInput, issued: Mapping[int, float]) -> float:
    """Return the sectors of spilled registers that go to L2."""
    launch, resident = request.launch, max(1, request.resident)
    resources = launch.assembled_for(request.device.capability)
    cache = next((each for each in request.device.stages if each.beside_shared), None)
    if resources is None or cache is None:
        return 0.0
    shared = resident * (launch.shared_static + launch.shared_dynamic)
    size = cache.keys.get("bytes")
    footprint = resident * launch.threads * resources.local_bytes
    left = (size if isinstance(size, int) else 0) - shared
    return spilled_sectors(issued, request.sums, footprint, left)


@cached_by_identity
def _calls(instructions: pa.Table) -> frozenset[int]:
    rows = rows_of(instructions, "pc", "opcode")
    return frozenset(row["pc"] for row in rows if row["opcode"] in ("call", "CALL"))


@cached_by_identity
def _divisions(instructions: pa.Table) -> frozenset[int]:
    """Return the pcs of divisions for which ptxas calls a routine each time: of 64-bit integers."""
    rows = rows_of(instructions, "pc", "mnemonic")
    return frozenset(row["pc"] for row in rows if WIDE_DIVISION.fullmatch(row["mnemonic"]))


def _issued(
    chains: Sequence[tuple[Chain, int]], ran: Ran, code: Mapping[int, Sequence[Step]]
) -> Mapping[int, float]:
    """Return machine instructions by operation per PTX instruction, from the sampled warps."""
    issued, of_ptx = defaultdict[int, float](float), 0
    counts = {block: sum(step.slots > 0 for step in each) for block, each in code.items()}
    for (chain, weight), (history, _) in zip(chains, ran.histories, strict=True):
        of_ptx += weight * sum(counts[block] * times for block, times in history)
        for operation, many in chain.issued.items():
            issued[operation] += weight * many
    return {operation: many / of_ptx for operation, many in issued.items()}


def _work(
    request: EstimateInput,
    sums: Mapping[int, Mapping[str, int]],
    ran: Ran,
    issued: Mapping[int, float],
    products: float,
) -> Work:
    launch, chip = request.launch, request.device.chip
    has_atomics = any(row.get(name) for row in sums.values() for name in ATOMICS)
    rounds = request.contention() if request.contention and has_atomics else AtomicContention(0, 0)
    resident = max(1, request.resident)
    share = sm_share(ran.sizes, launch.blocks, chip.sms, resident)
    what, activity = (
        (sums, request.instructions, request.bounds, launch),
        (rounds, ran.touches, issued),
    )
    return Work(*what, share, request.mhz, *activity, resident * chip.sms, products)


def _stall_shares(
    chains: Sequence[tuple[Chain, int]], cycles: float
) -> tuple[Mapping[str, float], Mapping[tuple[int, str], float]]:
    """Return the shares of warp cycles by stall reason, largest first, and by pc and reason."""
    stalls, at = defaultdict[str, float](float), defaultdict[tuple[int, str], float](float)
    for chain, weight in chains:
        for why, value in chain.stalls.items():
            stalls[STALL_OF[why]] += value * weight / cycles
        for (pc, why), value in chain.at.items():
            at[pc, STALL_OF[why]] += value * weight / cycles
    return dict(sorted(stalls.items(), key=lambda item: -item[1])), dict(at)


def _rounds(blocks: int, places: int) -> float:
    """Return how many rounds fill an SM's places: whole rounds while they are few.

    >>> _rounds(10, 132), _rounds(133, 132), _rounds(13200, 1320)
    (1.0, 2.0, 10.0)
    """
    exact = blocks / places
    return float(-(-blocks // places)) if exact <= 4 else exact


def _served_loads(request: EstimateInput, ran: Ran) -> LoadService:
    """Return which caches serve the loads of a launch."""
    sms, warps = request.device.chip.sms, request.launch.warps
    blocks = min(request.launch.blocks, request.resident * sms)
    warp_counts = -(-blocks // sms) * warps, blocks * warps
    shares = _outstanding_fills(request.sums, request.instructions, warp_counts, ran.touches)
    return LoadService(request.sums, shares, ran.touches.passes, request.host.pcs)


def _code(
    request: EstimateInput, served: LoadService, measured: Measured, polls: Container[int]
) -> Mapping[int, Sequence[Step]]:
    """Return the steps of each basic block on a device."""
    steps: dict[int, list[Step]] = {}
    for row in rows_of(request.instructions, *READ):
        step = _step(row, served, measured, request.launch, request.mhz)
        if (
            step.is_load and row["block"] in polls
        ):  # one that comes too early, half of it on average
            step = replace(step, latency=EARLY * step.latency)
        steps.setdefault(row["block"], []).append(step)
    return steps


def _step(
    row: Mapping[str, object], served: LoadService, measured: Measured, launch: Launch, mhz: float
) -> Step:
    pc, kind, mnemonic = int(str(row["pc"])), str(row["class"]), str(row["mnemonic"])
    operands = read_operands(str(row["text"]))
    access = str(row["access"])
    if kind == "free":
        return Step(pc, operands, 0, 0, "")
    if row["barrier"] is not None and row["operation"] != "arrive":
        return Step(pc, operands, measured.barrier(launch.warps), 1, "barrier", is_barrier=True)
    if access in ("load", "atomic") and (operands.writes or launch.code):
        latency, stall, misses = _memory(pc, row, served, measured, mhz)
        loads, space = stall in ("l1", "l2", "dram", "shared"), _aliases(row)
        queue = _conflict_cycles(served.counts.get(pc, {}), "shared_load")
        at = Step(pc, operands, latency, 1, stall, loads, space=space, queue=queue)
        return replace(at, misses=misses)
    if access:
        queue = _conflict_cycles(served.counts.get(pc, {}), "shared_store")
        return Step(pc, operands, 0, 1, "", stores=True, space=_aliases(row), queue=queue)
    if kind == "control":
        branches = bool(operands.reads)
        return Step(pc, operands, measured.branch_cycles * branches, 1, "", branches=branches)
    latency, rate = measured.costs(mnemonic, kind)
    is_local, product = ".cta" in mnemonic, measured.product_of_warp(mnemonic)
    slots = max(1.0, 4 * rate)
    return Step(pc, operands, latency, slots, "pipe", is_local=is_local, product=product)


def _aliases(row: Mapping[str, object]) -> str:
    """Return the space where an access may alias stores; `read-only` if no store aliases it."""
    return "read-only" if row["cache"] == "nc" else str(row["space"])


def _memory(
    pc: int, row: Mapping[str, object], served: LoadService, measured: Measured, mhz: float
) -> tuple[float, str, Misses]:
    """Return the mean cycles of a load or an atomic with a result, its reader's stall reason, and
    the misses among its executions.
    """
    counted = served.counts.get(pc, {})
    if counted.get("shared_load_requests") or counted.get("shared_atomic_requests"):
        passes = _conflict_cycles(counted, "shared_load")
        return measured.at("chase", "chase_shared") + passes, "shared", ()
    if counted.get("const_load_requests"):
        replays = _beyond_one(counted, "const_load_passes", "const_load_requests")
        return measured.at("chase", "chase_const") + replays * measured.replay_cycles, "const", ()
    if counted.get("global_atomic_requests"):
        return measured.l2_cycles(mhz), "atomic", ()
    if pc in served.host:
        return measured.host_ns("latency") * mhz / 1000, "dram", ()
    space = _space(counted) or "global_load"
    far, farther = served.shares.get(pc, (1.0, 0.0))
    near, second, memory = measured.l1_cycles, measured.l2_cycles(mhz), measured.dram_cycles(mhz)
    misses = ((max(0.0, far - farther), second - near, "l2"), (farther, memory - near, "dram"))
    latency = near + sum(share * longer for share, longer, _ in misses)
    if space == "texture_load":
        latency += measured.texture_cycles - near
    passes = CONFLICT * (served.passes.get(pc, 1.0) - 1)
    stall = "dram" if farther > 0.3 else "l2" if far > 0.3 else "l1"
    return latency + passes, stall, tuple(each for each in misses if each[0] > 0)


def _conflict_cycles(row: Mapping[str, int], access: str) -> float:
    """Return the cycles by which conflicts delay a warp's access to shared memory."""
    return CONFLICT * _beyond_one(row, f"{access}_passes", f"{access}_requests")


def _beyond_one(row: Mapping[str, int], over: str, under: str) -> float:
    """Return `over` per `under`, beyond the first."""
    below = row.get(under) or 0
    return (row.get(over) or 0) / below - 1 if below else 0.0


def sum_by_pc(counts: pl.DataFrame) -> Mapping[int, Mapping[int, Mapping[str, int]]]:
    """Return the sums that the latencies need by launch in LAUNCH_COLUMN and by pc, ascending."""
    fields = [
        name for name in counts.columns if name.endswith(NEEDED) and not name.startswith("surface")
    ]
    keys = (
        counts.lazy()
        .select(LAUNCH_COLUMN, "pc", *fields, "instructions")
        .group_by(LAUNCH_COLUMN, "pc")
    )
    sums: dict[int, dict[int, Mapping[str, int]]] = {}
    for row in keys.agg(pl.all().sum()).sort("pc").collect().iter_rows(named=True):
        sums.setdefault(row.pop(LAUNCH_COLUMN), {})[row["pc"]] = row
    return sums


def sums_of_one(counts: pl.DataFrame) -> Mapping[int, Mapping[str, int]]:
    """Return the same sums for one launch, without LAUNCH_COLUMN."""
    frame = counts.with_columns(pl.lit(0, pl.UInt32).alias(LAUNCH_COLUMN))
    return sum_by_pc(frame).get(0, {})


TRANSACTION_COUNTERS = {space: f"{space}_transactions" for space in (*LOADS, *STORES)}
"""Sectors requested from L1, by kind of access."""
TRANSACTION_COUNTERS["texture_load"] = "texture_load_sectors"


def estimate_between(
    request: EstimateInput, ran: Ran, measured: Measured, executed: Interval
) -> tuple[Estimate, Estimate] | None:
    """Return the least and the most time of a sampled launch; `executed` bounds its instructions.

    None if there are atomics on global memory, whose contention a sample does not determine.
    """
    whole = sum(row["instructions"] for row in request.sums.values())
    if not whole or any(row.get(name) for row in request.sums.values() for name in ATOMICS):
        return None
    ends = zip((True, False), executed, strict=True)
    least, most = (
        _stretched(estimate(_as_if(request, is_cached), ran, measured), end / whole)
        for is_cached, end in ends
    )
    return least, most


def _as_if(request: EstimateInput, is_cached: bool) -> EstimateInput:
    """Return the launch as if all loads hit in L1, or all went to memory."""
    sums = {pc: {**row, **_served(row, is_cached)} for pc, row in request.sums.items()}
    moved = sum(row[name] for row in sums.values() for name in row if "_dram_bytes_" in name)
    ns = moved / request.device.chip.memory_gb_per_s
    bounds = [Bound("DRAM", ns, moved, "bytes")] if moved else []
    return replace(request, sums=sums, bounds=bounds, contention=None)


def _served(row: Counts, is_cached: bool) -> Mapping[str, int]:
    """Return the counts that the caches would have. Stores go to L2 in either case."""
    served: dict[str, int] = {}
    for space, name in TRANSACTION_COUNTERS.items():
        sectors = row.get(name) or 0
        if space in STORES:
            served[f"{space}_l1_writes"] = served[f"{space}_l2_writes"] = sectors
            served[f"{space}_dram_bytes_written"] = 0 if is_cached else sectors * SECTOR
        else:
            served[f"{space}_l1_reads"] = sectors
            served[f"{space}_l1_read_hits"] = sectors if is_cached else 0
            served[f"{space}_l2_reads"] = 0 if is_cached else sectors
            served[f"{space}_l2_read_hits"] = 0
            served[f"{space}_dram_bytes_read"] = 0 if is_cached else sectors * SECTOR
    return served


def _stretched(base: Estimate, times: float) -> Estimate:
    parts = tuple(Part(part.what, part.ns * times) for part in base.parts)
    return replace(base, ns=base.ns * times, parts=parts)
