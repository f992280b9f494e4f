"""Occupancy for users: limits, the limiting one, curves, block size advice.

The input is a trace's launch or numbers alone; the integers come from
`models/analyses/occupancy.py`. Equations 6.3 to 6.5 of a textbook chapter on CUDA give a block
size: the least of the threads that keep all warp schedulers busy, that the registers of a block
feed, that its shared memory holds, and that an SM holds; then whole warps, then as many blocks as
the threads need. The chapter rounds up to whole warps, which can break the binding limit: this
module rounds down. The chapter's size ignores how many blocks an SM takes, so it can hold fewer
warps than the present block. Advice is therefore a size only if an SM holds more warps with it; of
equals the chapter's size wins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.analyses.occupancy import Need, Occupancy, occupancy
from ...models.replay.device.device import Device, Limits
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.replay import fit_launch
from ...traces.reader import LaunchTrace
from ...traces.schema import LANES, Launch
from ..text.launch_text import launch_text

SCHEDULERS = (((6, 1), 4), ((6, 0), 2), ((3, 0), 4), ((2, 0), 2), ((1, 0), 1))
"""Warp schedulers of an SM from each capability on, newest first (CUDA C Programming Guide 7.5, G.2
to G.6, and 4.2, F.3 to F.5).
"""
FIELDS = ("threads", "registers", "shared")
"""The x axes of curves."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values `first` to `last` of a curve with equal warps and equal limits."""

    first: int
    last: int
    warps: int
    limited_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Resident warps against one of FIELDS; `here` is the present value, None if unknown."""

    field: str
    here: int | None
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Textbook:
    """Equations 6.3 to 6.5: threads per block, the limit, and blocks for all the threads."""

    threads: int
    bound_by: str
    blocks: int | None


@dataclass(frozen=True, slots=True)
class Advice:
    """The block with which an SM holds most warps, and blocks for all the threads of the grid.

    `is_better` marks a block that holds more warps than the present one. Shared memory is in
    proportion to the threads.
    """

    occupancy: Occupancy
    blocks: int | None
    is_better: bool


@dataclass(frozen=True, slots=True)
class Resident:
    """The answer for one device. `heading` is the launch, empty for numbers alone.

    `requested_blocks` are the blocks that should fit on an SM at once, and `too_few` every limit
    that has no room for them.
    """

    device: str
    device_name: str
    heading: str
    occupancy: Occupancy
    limits: Limits
    advice: Advice
    requested_blocks: int | None = None

    @property
    def too_few(self) -> tuple[str, ...]:
        """All limits without room for the requested blocks."""
        return tuple(
            n
            for n, capacity in self.occupancy.limits.items()
            if capacity < (self.requested_blocks or 0)
        )


def from_numbers(
    device: Device,
    need: Need,
    options: ReplayOptions,
    total: int | None = None,
    target_blocks: int | None = None,
) -> Resident:
    """Compute occupancy from threads, registers per thread, and bytes of shared memory.

    `total` is the number of threads of the grid, for advice. Shared memory is taken as given: on
    1.x the user must add the parameters that are kept there.
    """
    _check(need)
    residency = occupancy(device.limits, need, options.cache_config)
    advice = advise(device, residency, total, options)
    return Resident(device.key, device.name, "", residency, device.limits, advice, target_blocks)


def from_launch(
    trace: LaunchTrace, device: Device, options: ReplayOptions, target_blocks: int | None = None
) -> Resident:
    """Compute the occupancy of a trace's launch."""
    residency = fit_launch(device, trace.launch, trace.instructions(), options)
    return Resident(
        device.key,
        device.name,
        launch_text(trace.launch),
        residency,
        device.limits,
        advise(
            device,
            residency,
            trace.launch.blocks * trace.launch.threads,
            options,
            sizes_for(trace.launch, device.limits),
        ),
        target_blocks,
    )


def advise(
    device: Device,
    here: Occupancy,
    total: int | None,
    options: ReplayOptions,
    sizes: Sequence[int] = (),
) -> Advice:
    """Return the block with most warps per SM; ties: the present, the chapter's, the smallest.

    Default for `sizes` are all whole warps.
    """
    need, limits = here.need, device.limits
    sizes = sizes or (textbook(device, need, total).threads, *_block_sizes(limits))
    fits = [_resize(limits, need, threads, options) for threads in sizes if threads]
    best = max((here, *fits), key=lambda candidate: candidate.active_warps)  # the first of equals
    blocks = -(-total // best.need.threads) if total and best.blocks else None
    return Advice(best, blocks, best is not here)


def _block_sizes(limits: Limits) -> range:
    """Return the threads of every block size in whole warps."""
    return range(LANES, limits.threads_per_block + 1, LANES)


def sizes_for(launch: Launch, limits: Limits) -> Sequence[int]:
    """Return the block sizes in whole warps that divide the work of a launch.

    They are parts and multiples of its block, and of a block of one dimension, which is mostly no
    tile, powers of two.

    >>> from cutrace.models.replay.device.device import load_device
    >>> limits = load_device("h100").limits
    >>> sizes_for(Launch("k", "k", (256, 1, 1), (32, 32, 1), 0, 0, 0), limits)
    [32, 64, 128, 256, 512, 1024]
    >>> sizes_for(Launch("k", "k", (256, 1, 1), (32, 24, 1), 0, 0, 0), limits)
    [32, 64, 96, 128, 192, 256, 384, 768]
    """
    is_tile = launch.block[1] * launch.block[2] > 1
    work = launch.blocks * launch.threads
    return [
        size
        for size in _block_sizes(limits)
        if work % size == 0
        and (
            launch.threads % size == 0
            or size % launch.threads == 0
            or (size.bit_count() == 1 and not is_tile)
        )
    ]


def _resize(limits: Limits, need: Need, threads: int, options: ReplayOptions) -> Occupancy:
    """Return the occupancy with other threads per block, shared memory in proportion."""
    shared = -(-need.shared * threads // need.threads)
    resized = replace(need, threads=threads, shared=shared)
    return occupancy(limits, resized, options.cache_config)


def textbook(device: Device, need: Need, total: int | None) -> Textbook:
    """Solve equations 6.3 to 6.5, rounded down to whole warps."""
    limits = device.limits
    candidates = {
        "warp schedulers": count_schedulers(device.capability) * LANES,
        "registers": limits.registers_per_block // need.registers if need.registers else None,
        "shared memory": limits.shared_per_block * need.threads // need.shared
        if need.shared
        else None,
        "threads of an SM": limits.warps_per_sm * LANES,
        "threads of a block": limits.threads_per_block,
    }
    bounds = {name: most for name, most in candidates.items() if most is not None}
    bound_by = min(bounds, key=lambda name: bounds[name])
    threads = bounds[bound_by] // LANES * LANES
    return Textbook(threads, bound_by, -(-total // threads) if total and threads else None)


def count_schedulers(capability: tuple[int, int]) -> int:
    """Return the number of warp schedulers of an SM."""
    return next(count for since, count in SCHEDULERS if capability >= since)


def draw_curves(resident: Resident, options: ReplayOptions) -> tuple[Curve, ...]:
    """Return resident warps against each of FIELDS, with the others unchanged."""
    limits, need = resident.limits, resident.occupancy.need
    values = {
        "threads": _block_sizes(limits),
        "registers": range(1, limits.registers_per_thread + 1),
        "shared": range(0, limits.shared_per_block + 1, limits.shared_unit),
    }

    def fit(field: str) -> Callable[[int], Occupancy]:
        return lambda value: occupancy(
            limits, replace(need, **{field: value}), options.cache_config
        )

    return tuple(
        Curve(field, getattr(need, field), tuple(_stretch(values[field], fit(field))))
        for field in FIELDS
    )


def _stretch(values: Sequence[int], fit: Callable[[int], Occupancy]) -> Iterator[Stretch]:
    """Merge neighbouring values with equal results."""
    current: Stretch | None = None
    for value in values:
        residency = fit(value)
        here = Stretch(value, value, residency.active_warps, residency.limited_by)
        if current and (current.warps, current.limited_by) == (here.warps, here.limited_by):
            current = replace(current, last=value)
            continue
        if current:
            yield current
        current = here
    if current:
        yield current


def _check(need: Need) -> None:
    """Reject impossible numbers."""
    least = {"threads": 1, "registers": 1, "shared": 0, "barriers": 1}
    for name, low in least.items():
        value: int | None = getattr(need, name)
        if value is not None and value < low:
            raise CutraceError(f"--{name} {value}: expected {low} or more")


WORDS = {
    "threads": "threads a block",
    "registers": "registers a thread",
    "shared": "bytes of shared memory a block",
}


def share(occupancy: Occupancy, warps: int) -> str:
    """Format warps as a percentage of those that an SM holds.

    >>> from cutrace.models.analyses.occupancy import Need
    >>> share(Occupancy(Need(32), 48), 16)
    '33.3 %'
    """
    return f"{100 * warps / occupancy.max_warps:.1f}".removesuffix(".0") + " %"


def resident_text(occupancy: Occupancy) -> str:
    """Return how many blocks fit on an SM, the limit, and the source of the register count.

    >>> from cutrace.models.analyses.occupancy import Need
    >>> resident_text(Occupancy(Need(32, 16), 48, {"blocks": 8, "warps": 48}, "given"))
    '8 blocks fit on an SM, limited by blocks, with 16 registers a thread (given)'
    """
    registers = "an unknown number of" if occupancy.registers is None else occupancy.registers
    fit = "1 block fits" if occupancy.blocks == 1 else f"{occupancy.blocks} blocks fit"
    return (
        f"{fit} on an SM, limited by {', '.join(occupancy.limited_by)},"
        f" with {registers} registers a thread ({occupancy.registers_from})"
    )
