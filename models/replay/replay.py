"""Replay: read a launch's trace once, and run the models of any number of devices on it.

`replay` wires the stages of each device, sends the rows of the trace through them, and returns a
`LaunchCounts` per device. `replay_in_jobs` divides the devices among processes and caches results.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from ...base import progress
from ...base.cores import cores
from ...base.errors import CutraceError
from ...base.executor import WorkerProcess
from ...traces.column import integers
from ...traces.identity_cache import cached_by_identity, rows_of
from ...traces.schema import BARRIERS, AssembledAccess, Launch
from ..analyses.control import COUNTERS
from ..analyses.occupancy import Occupancy, launch_occupancy
from .atomic_loops import SINCE, fold, unrolled
from .device.device import Device
from .device.fallback import adapt_kinds, substitute
from .device.wiring import Wire, wire
from .histogram.accesses import AccessCounter, DeviceReplay, HistoryCounter, SampleCounter
from .histogram.counts import LaunchCounts, Ledger
from .histogram.histogram import READ
from .histogram.stages import split_wires, with_sources
from .interface.options import CODE, WARM, ReplayOptions
from .replay_cache import Frames, keys_of, load_counts, store_counts
from .rows.patterns import Shapes
from .rows.sites import broken, cut_zones, read_sites
from .rows.texels import texture_arrays
from .sass_view import (
    EMPTY,
    SINCE_FENCES,
    SPARE,
    accesses_on,
    count_empty,
    returning,
    sass_view,
)
from .schedule.barrier_intervals import Intervals
from .schedule.place import Placement, place
from .schedule.schedule import read_barriers, schedule
from .stateful.ordered import count_ordered

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace


Wires: TypeAlias = tuple[tuple[Wire, ...], tuple[Wire, ...], tuple[Wire, ...], tuple[str, ...]]

LOCAL_BYTES = 1 << 20
"""Local memory per thread, for launches that do not record its size."""


AS_WRITTEN = 0, 0
"""The era of devices that run the atomics of the PTX."""

FEW_BLOCKS = 1 << 16
"""Blocks of a grid up to which a trace may have no rows at all."""

IDLE = 1 << 6
"""At least one of so many blocks accesses memory, in a trace with nothing but accesses."""


class LaunchReplay:
    """The models of several devices, run on one launch."""

    def __init__(
        self,
        launch: Launch,
        instructions: pa.Table,
        devices: Sequence[Device],
        options: ReplayOptions,
        shapes: Shapes,
        intervals: Intervals | None,
    ) -> None:
        self._launch = launch
        self._instructions = instructions
        self._options = options
        self.sites = read_sites(instructions, options.dlcm)
        self.zones = cut_zones([*launch.arrays, *texture_arrays(launch.textures)])
        self._tracks = [self._track(device, intervals) for device in devices]
        running = [t for t in self._tracks if options.as_if or not t.occupancy.refusal]
        self.running = running
        self.accesses = AccessCounter(running, self.sites, self.zones, shapes)
        self.samples = SampleCounter(launch, instructions, running, self.sites, self.zones)
        self.histories = HistoryCounter(launch, instructions, running)
        self.lanes_on = LanesOnCounter(running)

    def results(self, number: int) -> list[LaunchCounts]:
        """Return the counts of the launch with this `number`, per device."""
        launch, none = self._launch, pl.DataFrame(schema=SCHEMA)
        keys = (track.device.key for track in self.running)
        lanes = dict(zip(keys, self.lanes_on.close(), strict=True))
        results = []
        for track in self._tracks:
            frames = *track.ledger.close(), lanes.get(track.device.key, none)
            placed = track.device, track.occupancy, track.placement
            results.append(launch_counts(launch, number, self._instructions, placed, frames))
        return results

    def _track(self, device: Device, intervals: Intervals | None) -> DeviceReplay:
        """Set up the replay of one device."""
        options, launch = self._options, self._launch
        _, fit, placement = place_launch(device, launch, self._instructions, options)
        wired = _wire_anew if device.has_foreign_models else _wire_once
        wires, repeating, lasting, counters = wired(device, fit.carveout, options.caches)
        ordered = placement if lasting else place(device.chip, 0)
        return DeviceReplay(
            device,
            fit,
            adapt_kinds(self.sites.kinds, device.capability, options.dlcm),
            placement,
            Ledger(self.sites, self.zones, counters, placement.names),
            repeating,
            lasting,
            tuple(w for w in with_sources(lasting, wires) if w not in lasting),
            schedule(ordered, fit.blocks, launch.warps, options.schedule, intervals),
            launch.local_bytes or LOCAL_BYTES,
        )


def _wire_anew(device: Device, carveout: int, caches: bool) -> Wires:
    """Return all stages of a device, the stateless ones, those that keep state, and the names of
    all counters.
    """
    wires = wire([stage.without(carveout) for stage in device.stages], device.file)
    repeating, lasting = split_wires(wires)
    if not caches:
        wires, lasting = repeating, ()
    names = (*COUNTERS, *EMPTY, SPARE, *(name for each in wires for name in each.names()))
    return wires, repeating, lasting, names


_wire_once = cached_by_identity(_wire_anew)


def fit_launch(
    device: Device, launch: Launch, instructions: pa.Table, options: ReplayOptions
) -> Occupancy:
    """Return the blocks of a launch that are resident on an SM of a device, and the limiting
    resource.

    Where the assembler did not record the number of barriers, a block takes all from 0 to the
    highest that its code names, and all that exist if a register names one, as the assembler has
    it.
    """
    ids = [row["barrier"] for row in rows_of(instructions, "barrier") if row["barrier"] is not None]
    is_known = all(0 <= number < BARRIERS for number in ids)
    barriers = 1 + max(ids, default=0) if is_known else BARRIERS
    return launch_occupancy(device, launch, barriers, options)


Placed: TypeAlias = tuple[Device, Occupancy, Placement]
"""A device, and where a launch's blocks are on it."""


def place_launch(
    device: Device, launch: Launch, instructions: pa.Table, options: ReplayOptions
) -> Placed:
    """Return where a launch's blocks are on a device."""
    shape = launch.grid, launch.cluster
    sample = launch.kept.sample
    placement = place(device.chip, launch.blocks, options.profiled_blocks, sample, shape)
    return device, fit_launch(device, launch, instructions, options), placement


def launch_counts(
    launch: Launch, number: int, instructions: pa.Table, placed: Placed, frames: Frames
) -> LaunchCounts:
    """Return a launch's counts on a device, with the values that follow from the launch alone."""
    device, fit, placement = placed
    on_sm, peer_blocks = placement.count_profiled()
    return LaunchCounts(
        device.key,
        launch,
        number,
        *frames,
        fit,
        substitute(instructions, device.capability),
        on_sm,
        on_sm + peer_blocks,
    )


def check_code(launch_trace: "LaunchTrace", device: Device) -> None:
    """Refuse machine code that a device does not run: of another generation, or newer."""
    launch, (major, minor) = launch_trace.launch, device.capability
    own, newest = divmod(int(launch.code.removeprefix("sm_") or 0), 10)
    if launch.code and (own != major or newest > minor):
        raise CutraceError(
            f"launch {launch_trace.number} ran the machine code of `{launch.name}` for "
            f"{launch.code}, and {device.key} has capability {major}.{minor}: name a device of "
            f"that code, as in -d {launch.code}, or record the PTX, without --code"
        )


def replay(
    launch_trace: "LaunchTrace",
    devices: Sequence[Device],
    options: ReplayOptions | None = None,
) -> list[LaunchCounts]:
    """Count one launch on each device, reading its trace once; report the share that is done.

    Raises `CutraceError` for a broken trace. The counts of a device that cannot launch it have a
    `refusal`. A what-if launch has the accesses of the PTX: array addresses decide which accesses
    can be joined.
    """
    options = options or ReplayOptions()
    _check_grid(launch_trace)
    for device in devices:
        check_code(launch_trace, device)
    if not has_all_before(launch_trace.launch):
        options = replace(options, caches=False)
    groups: dict[tuple[tuple[AssembledAccess, ...], tuple[int, int]], list[Device]] = {}
    for device in devices:
        is_assembled = options.code == CODE[0]
        device_accesses = (
            accesses_on(launch_trace.launch, device.capability) if is_assembled else ()
        )
        eras = [since for since in (SINCE, SINCE_FENCES) if device.capability >= since]
        era = eras[-1] if is_assembled and eras else AS_WRITTEN
        groups.setdefault((device_accesses, era), []).append(device)
    results: dict[str, LaunchCounts] = {}
    for (sass_accesses, era), device_group in groups.items():
        trace_view = sass_view(launch_trace, sass_accesses)
        if era != AS_WRITTEN:
            trace_view = unrolled(returning(trace_view, era))
        with progress.part(len(results), len(device_group), len(devices)):
            replayed = _replay(trace_view, device_group, options)
        for each in replayed:
            counts = count_empty(
                fold(each.counts, trace_view), sass_accesses, trace_view.instructions()
            )
            results[each.device] = replace(each, counts=counts, mixed=fold(each.mixed, trace_view))
    return [results[device.key] for device in devices]


def _replay(
    launch_trace: "LaunchTrace", devices: Sequence[Device], options: ReplayOptions
) -> list[LaunchCounts]:
    """Count a launch on devices that run the same code, reading all rows of its trace."""
    launch = launch_trace.launch
    shapes = Shapes(launch_trace.pattern_store())
    ordered = options.caches and launch.kept.control
    intervals = read_barriers(launch_trace) if ordered else None
    instructions = launch_trace.instructions()
    counting = LaunchReplay(launch, instructions, devices, options, shapes, intervals)
    if not counting.running:
        return counting.results(launch_trace.number)
    is_ordered = any(track.lasting for track in counting.running)
    row_offset, rows = 0, max(1, launch_trace.count("accesses"))
    for batch in () if is_ordered else launch_trace.access_batches(READ):
        counting.accesses.take(batch)
        row_offset += batch.num_rows
        progress.report(row_offset / rows)
    for batch in launch_trace.texel_batches():
        counting.samples.take(batch)
    paths = launch_trace.path_store()
    for batch in launch_trace.control_batches():
        counting.histories.take(batch, paths)
    for batch in launch_trace.lanes_on_batches():
        counting.lanes_on.take(batch)
    if is_ordered:  # a stage keeps state: its rows come in issue order
        running, sites, take = counting.running, counting.sites, counting.accesses.take
        count_ordered(launch_trace, running, sites, counting.zones, take, options.l2 == WARM)
    counting.accesses.close()
    counting.histories.close()
    return counting.results(launch_trace.number)


def has_all_before(launch: Launch) -> bool:
    """Return whether stateful stages can run: they need all accesses and a place per block."""
    is_placeable = launch.kept.is_whole or launch.blocks <= FEW_BLOCKS
    return launch.kept.has_accesses and is_placeable


def _check_grid(trace: "LaunchTrace") -> None:
    """Refuse a grid with too few rows, for which each block would be placed in vain.

    In a full trace every warp has rows of control, if any has; in a trace of accesses alone, blocks
    that access no memory have no rows.
    """
    launch = trace.launch
    if not launch.kept.is_whole or launch.blocks <= FEW_BLOCKS:
        return
    control = trace.count("control")
    rows = control + trace.count("accesses") + trace.count("texels")
    lacks = control < launch.blocks * launch.warps if control else rows < launch.blocks // IDLE
    if lacks:
        raise CutraceError(
            f"{trace.folder}: broken trace: its grid has {launch.blocks} blocks of {launch.warps} "
            f"warps, but there are {rows} rows of them, {control} of control"
        )


SCHEMA = {"pc": pl.UInt32, "scope": pl.String, "lanes": pl.Int64}


class LanesOnCounter:
    """Adds up the active lanes of predicated instructions for all devices, batch by batch."""

    def __init__(self, tracks: Sequence[DeviceReplay]) -> None:
        self._placements = [track.placement for track in tracks]
        self._sums = [pl.DataFrame(schema=SCHEMA) for _ in tracks]
        self._rows = [np.empty((2, 0), np.int64)]

    def take(self, batch: pa.RecordBatch) -> None:
        """Count rows of LANES_ON."""
        self._rows.append(np.stack(integers(batch, "block", "pc")))
        for number, placement in enumerate(self._placements):
            parts = [self._sums[number], _table(batch, placement)]
            self._sums[number] = _sum(pl.concat(parts))

    def close(self) -> list[pl.DataFrame]:
        """Return for each device a table of `pc`, `scope` and `lanes`.

        CutraceError if a block has two sums for an instruction.
        """
        rows = np.concatenate(self._rows, axis=1)
        rows = rows[:, np.lexsort(rows)]
        twice = np.flatnonzero((rows[:, 1:] == rows[:, :-1]).all(axis=0))
        if len(twice):
            block, pc = rows[:, twice[0]]
            raise broken(f"lanes_on has two rows of block {block} and instruction {pc}")
        return self._sums


def _table(batch: pa.RecordBatch, placement: Placement) -> pl.DataFrame:
    block, lanes = integers(batch, "block", "lanes")
    weight = placement.weight(block)
    columns = {
        "pc": batch["pc"].to_numpy(),
        "scope": np.array(placement.names)[placement.scope(block)].tolist(),
        "lanes": lanes if weight is None else lanes * weight,
    }
    return _sum(pl.DataFrame(columns, SCHEMA))


def _sum(lanes: pl.DataFrame) -> pl.DataFrame:
    """Add up the lanes of each pc and scope."""
    return lanes.group_by("pc", "scope").agg(pl.col("lanes").sum())


Result = TypeVar("Result")


def run_beside(
    mine: Callable[[], Result],
    work: Callable[..., Result],
    others: Sequence[tuple[Any, ...]],
) -> list[Result]:
    """Run `mine` in this process, and `work` with each of the other arguments in a process of its
    own.

    Returns the result of each. `work` is a module-level function, pickled by its name; its
    errors are raised here.
    """
    children = [WorkerProcess() for _ in others]
    try:
        for child, arguments in zip(children, others, strict=True):
            child.send(work, *arguments)
        return [mine(), *(child.receive() for child in children)]
    finally:
        for child in children:
            child.end()


def replay_in_jobs(
    trace: "LaunchTrace",
    devices: Sequence[Device],
    options: ReplayOptions,
) -> list[LaunchCounts]:
    """Count one launch on each device, in at most `options.jobs` processes, a core each.

    Counts that are in the cache (`replay_cache.py`) are not computed again, and those of devices
    that differ in nothing that counts, such as in clocks, are computed once.
    """
    keys = {d.key: key for d, key in zip(devices, keys_of(trace, devices, options), strict=True)}
    entries = {device.key: load_counts(keys[device.key]) for device in devices}
    alike: dict[str, list[Device]] = {}
    for device in devices:
        if entries[device.key] is None:
            alike.setdefault(_what_counts(device), []).append(device)
    unknown = [group[0] for group in alike.values()]
    fresh: dict[str, LaunchCounts] = {}
    if unknown:
        jobs = min(options.jobs or 1, len(unknown), cores())
        first, *others = [unknown[number::jobs] for number in range(jobs)]
        parts = [(trace, part, options.of_a_device) for part in others]
        for each in run_beside(partial(replay, trace, first, options), replay, parts):
            fresh |= {counts.device: counts for counts in each}
    trace.check_unchanged()
    for group in alike.values():
        counts = fresh[group[0].key]
        for device in group:
            entries[device.key] = counts.counts, counts.mixed, counts.lanes_on
            store_counts(keys[device.key], (counts.counts, counts.mixed, counts.lanes_on))
    launch, code = trace.launch, trace.instructions()
    return [
        fresh[device.key]
        if device.key in fresh
        else launch_counts(
            launch, trace.number, code, place_launch(device, launch, code, options), frames
        )
        for device in devices
        if (frames := entries[device.key])
    ]


def _what_counts(device: Device) -> str:
    """Return what counts depend on; models that do not come with cutrace may read anything."""
    own = device.key if device.has_foreign_models else ""
    chip = device.chip.sms, device.chip.sms_per_cluster
    return repr((own, device.capability, chip, device.limits, device.stages))
