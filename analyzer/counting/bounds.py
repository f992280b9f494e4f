"""Bounds: the least time that each resource of a device needs for a launch on its own.

A bound is a counted amount divided by the peak rate of the resource. Nothing is fitted and no
latency is included, so a launch takes longer than its longest bound. The longest bound is the
limit: only less of that work makes the launch faster. Work spreads over at most as many SMs as
there are blocks.

Instruction counts are those of the PTX, or fewer where the machine code from ptxas is known
(`machine.machine_code`); elsewhere the assembler may still shorten them. Bytes of DRAM and caches
assume that the launch starts with empty caches. Constant loads count only the extra wavefronts of
divergent addresses, atomics only the turns at one address. Launch overhead has no bound.

Rates and their sources are in the device's file, [rates] and [chip].
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...base.dataclass import dataclass
from ...models.replay.device.device import Device
from ...traces.schema import Launch
from .atomic_contention import AtomicContention
from .evaluate import Raw
from .instruction_mix import FLOP_COLUMNS
from .interval import sum_intervals

SPACES = ("global_load", "global_store", "global_atomic", "global_reduction")
L1 = (*SPACES, "local_load", "local_store", "texture_load")
SHARED = ("shared_load", "shared_store", "shared_atomic", "shared_reduction")

ON_AN_SM: Sequence[tuple[str, str, Sequence[str], str]] = (
    ("l1_bytes", "L1 data", [f"{name}_bytes_moved" for name in L1], "bytes"),
    ("shared", "shared memory", [f"{name}_passes" for name in SHARED], "wavefronts"),
    ("constant", "constant cache", ["const_load_conflicts"], "replays"),
    ("texture", "texture units", ["texture_load_lanes"], "samples"),
    ("issue", "issue slots", ["instructions"], "warp instructions"),
    ("half", "half-precision units", ["lanes_half"], "lane instructions"),
    ("single", "single-precision units", ["lanes_single"], "lane instructions"),
    ("double", "double-precision units", ["lanes_double"], "lane instructions"),
    ("special", "special function units", ["lanes_single_special"], "lane instructions"),
)
"""Resources of an SM: rate, name, the raw counts that are summed, and their unit."""
HOST = {"PCIe": "host_bytes_read", "PCIe, stores": "host_bytes_written"}
"""Each way of the link to the host, and its raw count."""
EXACT_BYTES = 10_000
SEVEN_DIGITS = 10**7
ATOMICS = ("global_atomic_requests", "global_reduction_requests")
AT_ONE_ADDRESS = "atomics at one address"


@dataclass(frozen=True, slots=True)
class Bound:
    """`amount` of a resource takes at least `ns` nanoseconds."""

    resource: str
    ns: float
    amount: int
    unit: str


def find_bounds(
    sums: Mapping[str, int],
    device: Device,
    launch: Launch,
    contention: Callable[[], AtomicContention],
    shares: Mapping[str, float],
) -> tuple[Bound, ...]:
    """Return the bounds of a launch from the sums of its raw counts, longest first.

    `contention` counts the atomics at one address (`counting.atomic_contention`). `shares` is the
    part of each PTX count that the machine code is sure to have (`machine.machine_code`). Empty
    without caches, and for a partial trace, since its counts would be too low.
    """
    if not launch.kept.is_whole or "dram_bytes_read" not in sums:
        return ()
    bounds = [bound for bound in _bounds(sums, device, launch, shares) if bound.amount]
    if device.rates.atomic and any(sums.get(name) for name in ATOMICS):
        bounds.extend(_atomics(contention(), device))
    return tuple(sorted(bounds, key=lambda bound: -bound.ns))


def _bounds(
    sums: Mapping[str, int], device: Device, launch: Launch, shares: Mapping[str, float]
) -> Iterator[Bound]:
    def total(names: Sequence[str]) -> int:
        return sum(round(sums.get(name, 0) * shares.get(name, 1.0)) for name in names)

    moved = total(["dram_bytes_read", "dram_bytes_written"])
    yield Bound("DRAM", moved / device.chip.memory_gb_per_s, moved, "bytes")
    for resource, name in HOST.items():  # reads and stores pass each other
        if amount := total([name]):
            yield Bound(resource, amount / device.chip.host_gb_per_s, amount, "bytes")
    cycles = device.chip.clock_mhz / 1000  # cycles per nanosecond
    if not cycles:
        return
    sectors = total(["l2_reads", "l2_writes"]) * _sector(device)
    if device.rates.l2_bytes:
        whole = device.rates.l2_bytes * device.chip.sms * cycles
        yield Bound("L2", sectors / whole, sectors, "bytes")
    busy = min(device.chip.sms, launch.blocks) * cycles
    for key, resource, names, unit in ON_AN_SM:
        if rate := getattr(device.rates, key):
            amount = total(names)
            yield Bound(resource, amount / (rate * busy), amount, unit)


def sampled_bounds(
    raw: Raw, device: Device, launch: Launch, shares: Mapping[str, float]
) -> tuple[tuple[Bound, Bound], ...]:
    """Return the confidence interval of the bound of each SM resource of a sampled launch.

    The intervals hold 95 times in 100, highest first. A sample does not determine cache contents or
    atomic contention.
    """
    cycles = min(device.chip.sms, launch.blocks) * device.chip.clock_mhz / 1000
    if not cycles or not launch.kept.sample.blocks:
        return ()
    rates = {name: getattr(device.rates, key) * cycles for key, name, _, _ in ON_AN_SM}
    sums = {name: names for _, name, names, _ in ON_AN_SM if rates[name]}
    units = {name: unit for _, name, _, unit in ON_AN_SM}
    pairs = []
    for name, between in sum_intervals(raw, launch, sums).items():
        ends = [end * shares.get(sums[name][0], 1.0) for end in between]
        if between.high:
            pairs.append(tuple(Bound(name, e / rates[name], int(e), units[name]) for e in ends))
    return tuple((low, high) for low, high in sorted(pairs, key=lambda pair: -pair[1].ns))


def _atomics(contention: AtomicContention, device: Device) -> Iterator[Bound]:
    """Yield the bounds of atomics at one address; floating-point atomics may be slower."""
    cycles = device.chip.clock_mhz / 1000
    slower = device.rates.atomic_real or device.rates.atomic
    amounts = ((contention.integer, device.rates.atomic), (contention.real, slower))
    amount, rate = max(amounts, key=lambda each: each[0] / each[1])
    if amount and cycles:
        yield Bound(AT_ONE_ADDRESS, amount / (rate * cycles), amount, "turns")


def _sector(device: Device) -> int:
    """Return the bytes of one L2 read or write."""
    stage = next((stage for stage in device.stages if stage.name == "l2"), None)
    size = stage.keys.get("sector") if stage else None
    return size if isinstance(size, int) else 0


def verdict(bounds: Sequence[Bound]) -> str:
    """Return the limit and the next bound in a sentence; empty if nothing is known.

    >>> verdict([Bound("DRAM", 2000.0, 9600000, "bytes"), Bound("L2", 500.0, 9600000, "bytes")])
    'limited by DRAM: at least 2 us for 9.6 MB; next: L2, 500 ns'
    """
    if not bounds:
        return ""
    first, *others = bounds
    next_ = f"; next: {others[0].resource}, {time_text(others[0].ns)}" if others else ""
    least = f"at least {time_text(first.ns)} for {amount_text(first)}"
    return f"limited by {first.resource}: {least}{next_}"


def sampled_text(between: Sequence[tuple[Bound, Bound]]) -> str:
    """Return the times of the first two resources of a sampled launch; empty if unknown.

    >>> ends = Bound("L1 data", 2000.0, 4000, "bytes"), Bound("L1 data", 2500.0, 5000, "bytes")
    >>> sampled_text([ends])
    'L1 data 2 us to 2.5 us'
    """
    ranges = ((low.resource, *map(time_text, (low.ns, high.ns))) for low, high in between[:2])
    return ", ".join(f"{name} {a}" + (f" to {b}" if a != b else "") for name, a, b in ranges)


def amount_text(bound: Bound) -> str:
    """Format the amount of a bound: bytes as `traffic_text`, others in at most seven digits.

    >>> amount_text(Bound("L2", 1.0, 9437184, "bytes"))
    '9.44 MB'
    >>> amount_text(Bound("issue slots", 1.0, 123456789, "warp instructions"))
    '123 million warp instructions'
    """
    if bound.unit == "bytes" and bound.amount >= EXACT_BYTES:
        return traffic_text(bound.amount)
    if bound.amount == 1:
        return f"1 {bound.unit.removesuffix('s')}"
    if bound.amount < SEVEN_DIGITS:
        return f"{bound.amount:,} {bound.unit}"
    return f"{_in_steps(bound.amount / 10**6, ('million', 'billion', 'trillion'))} {bound.unit}"


def traffic_text(number: int) -> str:
    """Format bytes that were moved, in decimal units as rates are; exact below 10,000.

    >>> traffic_text(1), traffic_text(9216), traffic_text(4194304), traffic_text(10**7)
    ('1 B', '9,216 B', '4.19 MB', '10 MB')
    """
    if number < EXACT_BYTES:
        return f"{number:,} B"
    return _in_steps(number / 1000, ("kB", "MB", "GB", "TB"))


def _in_steps(amount: float, steps: Sequence[str]) -> str:
    """Format an amount with three digits, in the step of 1000 that leaves the fewest."""
    step, *larger = steps
    while amount >= 999.5 and larger:
        amount, (step, *larger) = amount / 1000, larger
    return f"{amount:.3g} {step}" if amount < 999.5 else f"{amount:.0f} {step}"


def time_text(ns: float) -> str:
    """Format a time with three digits, in the unit that leaves the fewest.

    >>> time_text(12.345), time_text(1234.5), time_text(98765432.1)
    ('12.3 ns', '1.23 us', '98.8 ms')
    """
    for unit in ("ns", "us", "ms"):
        if ns < 999.5:
            return f"{ns:.3g} {unit}"
        ns /= 1000
    return f"{ns:.3g} s"


@dataclass(frozen=True, slots=True)
class Roof:
    """The roofline at a kernel's arithmetic intensity. GFLOPS are 10**9 operations per second.

    `memory_gflops` is the roof of the memory, `peak_gflops` that of the cores that have a block
    (None: unknown).
    """

    intensity: float
    gb_per_s: float
    memory_gflops: float
    peak_gflops: float | None

    @property
    def bound(self) -> str:
        """`memory-bound` or `compute-bound`; empty where the peak of the cores is unknown."""
        if self.peak_gflops is None:
            return ""
        return "memory-bound" if self.memory_gflops < self.peak_gflops else "compute-bound"

    @property
    def gflops(self) -> float:
        """The lower of both roofs."""
        limits = (self.memory_gflops, self.peak_gflops)
        return min(limit for limit in limits if limit is not None)

    def __str__(self) -> str:
        moved = f"{_plain(self.intensity)} FLOP/byte of DRAM x {self.gb_per_s:g} GB/s"
        most = f"roofline: {moved} = {_plain(self.memory_gflops)} GFLOPS at most"
        if self.peak_gflops is None:
            return most
        return f"{most}; its cores do {_plain(self.peak_gflops)} at most"


def _plain(value: float) -> str:
    """Format four significant digits, or all digits before the point.

    >>> _plain(66908.16), _plain(0.49230769)
    ('66908', '0.4923')
    """
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def roofline(flops: int, bytes_moved: int, gb_per_s: float, peak_gflops: float | None) -> Roof:
    """Place a kernel under the roofline of a device; `bytes_moved` must not be 0."""
    intensity = flops / bytes_moved
    return Roof(intensity, gb_per_s, flops * gb_per_s / bytes_moved, peak_gflops)


def find_roof(sums: Mapping[str, int], bounds: Sequence[Bound], gb_per_s: float) -> Roof | None:
    """Return the roofline of a launch from the sums of its raw counts and its DRAM bytes.

    None if the launch computes or moves nothing, or if the caches are not modelled.
    """
    flops = sum(sums.get(name, 0) for name in FLOP_COLUMNS)
    moved = next((bound.amount for bound in bounds if bound.resource == "DRAM"), 0)
    return roofline(flops, moved, gb_per_s, peak_gflops(bounds, flops)) if flops and moved else None


def peak_gflops(bounds: Sequence[Bound], flops: float) -> float | None:
    """Return the peak of the compute units for `flops` operations, FLOP per ns; None if unknown."""
    units = [bound.ns for bound in bounds if bound.resource.endswith("-precision units")]
    return flops / longest if (longest := max(units, default=0.0)) else None
