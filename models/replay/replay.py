"""Replay: one reading of a launch's trace, through the models of any number of devices."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
import pyarrow as pa

from ...errors import CutraceError
from ...traces.schema import BARRIERS, AssembledAccess, Launch
from ...traces.table.remembered import remembered, rows_of
from ..analyses.control import COUNTERS
from ..analyses.occupancy import Occupancy, launch_occupancy, refuse_launch
from .assembled import EMPTY, SPARE, accesses_on, assembled, count_empty
from .device.device import Device
from .device.fallback import adapt_kinds, substitute
from .device.wiring import Wire, wire
from .kept import Frames
from .options import CODE, ReplayOptions, tell_nobody, tell_part
from .ordered.ordered import count_ordered
from .rows.arrays import cut_zones
from .rows.lanes_on import SCHEMA, LanesOnCounter
from .rows.patterns import Shapes
from .rows.sites import read_sites
from .rows.texels import texture_arrays
from .schedule.barrier_intervals import Intervals
from .schedule.place import place
from .schedule.schedule import read_barriers, schedule
from .stages import split_wires, with_sources
from .tally.accesses import AccessCounter, Track
from .tally.counts import LaunchCounts, Ledger
from .tally.histories import HistoryCounter
from .tally.samples import SampleCounter
from .tally.tally import READ
from .unrolled import SINCE, fold, unrolled

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace


Wires: TypeAlias = tuple[tuple[Wire, ...], tuple[Wire, ...], tuple[Wire, ...]]

LOCAL_BYTES = 1 << 20
"""Local memory of a thread where the launch does not say how much it has."""


FEW_BLOCKS = 1 << 16
"""Blocks of a grid for which no rows are asked."""

IDLE = 1 << 6
"""One of so many blocks accesses memory, at least, where nothing else is recorded."""


class LaunchReplay:
    """The models of several devices at work on one launch."""

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
        fits = [fit_launch(device, launch, instructions, options) for device in devices]
        self._tracks = [
            self._track(device, fit, intervals) for device, fit in zip(devices, fits, strict=True)
        ]
        running = [t for t in self._tracks if options.as_if or not refuse_launch(t.device, launch)]
        self.running = running
        self.accesses = AccessCounter(running, self.sites, self.zones, shapes)
        self.samples = SampleCounter(launch, instructions, running, self.sites, self.zones)
        self.histories = HistoryCounter(launch, instructions, running)
        self.lanes_on = LanesOnCounter(running)

    def close(self) -> None:
        """Enter all that was taken."""
        if self.running:
            self.accesses.close()
            self.histories.close()

    def results(self, number: int) -> list[LaunchCounts]:
        """Return what was counted of the launch, which has this `number`, by device."""
        told, none = (self._launch, number, self._instructions), pl.DataFrame(schema=SCHEMA)
        keys = (track.device.key for track in self.running)
        lanes = dict(zip(keys, self.lanes_on.close(), strict=True))
        found = []
        for track in self._tracks:
            frames = *track.ledger.close(), lanes.get(track.device.key, none)
            found.append(launch_counts(told, track.device, self._options, frames))
        return found

    def _track(self, device: Device, fit: Occupancy, intervals: Intervals | None) -> Track:
        """Set up one device."""
        options, launch = self._options, self._launch
        wired = _wire_anew if device.has_foreign_models else _wire_once
        wires, repeating, lasting = wired(device, fit.carveout, options.caches)
        placement = place(device.chip, launch.blocks, options.profiled_blocks, launch.kept.sample)
        names = [*COUNTERS, *EMPTY, SPARE, *(name for w in wires for name in w.names())]
        ordered = placement if lasting else place(device.chip, 0)
        return Track(
            device,
            adapt_kinds(self.sites.kinds, device.capability, options.dlcm),
            placement,
            Ledger(self.sites, self.zones, names, placement.names),
            repeating,
            lasting,
            tuple(w for w in with_sources(lasting, wires) if w not in lasting),
            schedule(ordered, fit.blocks, launch.warps, options.schedule, intervals),
            launch.local_bytes or LOCAL_BYTES,
        )


def _wire_anew(device: Device, carveout: int, caches: bool) -> Wires:
    """Return all stages of a device, those whose answers repeat, and those that keep state."""
    wires = wire([stage.without(carveout) for stage in device.stages], device.file)
    repeating, lasting = split_wires(wires)
    return (wires, repeating, lasting) if caches else (repeating, repeating, ())


_wire_once = remembered(_wire_anew)


def fit_launch(
    device: Device, launch: Launch, instructions: pa.Table, options: ReplayOptions
) -> Occupancy:
    """How many blocks of a launch an SM of a device holds at once, and what limits them.

    Where the assembler did not say how many barriers a block takes, it takes those from 0 to the
    highest that its code names, and all if one comes from a register, as the assembler does.
    """
    ids = [row["barrier"] for row in rows_of(instructions, "barrier") if row["barrier"] is not None]
    is_known = all(0 <= number < BARRIERS for number in ids)
    barriers = 1 + max(ids, default=0) if is_known else BARRIERS
    return launch_occupancy(device, launch, barriers, options)


def launch_counts(
    told: tuple[Launch, int, pa.Table], device: Device, options: ReplayOptions, frames: Frames
) -> LaunchCounts:
    """Return what was counted of a launch on a device with what follows from the launch alone.

    `told` are the launch, its number and its instructions.
    """
    launch, number, instructions = told
    placement = place(device.chip, launch.blocks, options.profiled_blocks, launch.kept.sample)
    on_sm, beside = placement.count_profiled()
    return LaunchCounts(
        device.key,
        launch,
        number,
        *frames,
        fit_launch(device, launch, instructions, options),
        refuse_launch(device, launch),
        substitute(instructions, device.capability),
        on_sm,
        on_sm + beside,
    )


def replay(
    launch_trace: "LaunchTrace",
    devices: Sequence[Device],
    options: ReplayOptions | None = None,
    tell: Callable[[float], None] = tell_nobody,
) -> list[LaunchCounts]:
    """Count one launch on each device, reading its trace once; `tell` hears how much is done.

    Raises `CutraceError` for a broken trace. A device that cannot launch it says so in `refusal`.
    What is supposed has the accesses of the PTX: where arrays lie decides which can be joined.
    """
    options = options or ReplayOptions()
    _check_grid(launch_trace)
    if not has_all_before(launch_trace.launch):
        options = replace(options, caches=False)
    groups: dict[tuple[tuple[AssembledAccess, ...], bool], list[Device]] = {}
    for device in devices:
        is_assembled = options.code == CODE[0]
        known = accesses_on(launch_trace.launch, device.capability) if is_assembled else ()
        loops = is_assembled and device.capability >= SINCE
        groups.setdefault((known, loops), []).append(device)
    found: dict[str, LaunchCounts] = {}
    for (made, loops), alike in groups.items():
        part = partial(tell_part, tell, len(found), len(alike), len(devices))
        seen = assembled(launch_trace, made)
        seen = unrolled(seen) if loops else seen
        for each in _replay(seen, alike, options, part):
            counts = count_empty(fold(each.counts, seen), made, seen.instructions())
            found[each.device] = replace(each, counts=counts, mixed=fold(each.mixed, seen))
    return [found[device.key] for device in devices]


def _replay(
    launch_trace: "LaunchTrace",
    devices: Sequence[Device],
    options: ReplayOptions,
    tell: Callable[[float], None],
) -> list[LaunchCounts]:
    """Count a launch on devices that run the same code."""
    launch = launch_trace.launch
    shapes = Shapes(launch_trace.pattern_store())
    ordered = options.caches and launch.kept.control
    intervals = read_barriers(launch_trace) if ordered else None
    instructions = launch_trace.instructions()
    counting = LaunchReplay(launch, instructions, devices, options, shapes, intervals)
    if counting.running:
        _read(launch_trace, counting, tell)
    return counting.results(launch_trace.number)


def has_all_before(launch: Launch) -> bool:
    """Whether what keeps state can be asked: it needs all accesses, and each block a place."""
    known = launch.kept.is_whole or launch.blocks <= FEW_BLOCKS
    return launch.kept.has_accesses and known


def _check_grid(trace: "LaunchTrace") -> None:
    """Refuse a grid of which there are too few rows: each block would be given a place for nothing.

    In a whole trace every warp has rows of control, if any has; blocks that access no memory have
    none in a trace of accesses alone.
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


def _read(trace: "LaunchTrace", counting: LaunchReplay, tell: Callable[[float], None]) -> None:
    """Take all rows of a trace; those of accesses once, in order if any stage keeps state."""
    is_ordered = any(track.lasting for track in counting.running)
    seen, rows = 0, max(1, trace.count("accesses"))
    for batch in () if is_ordered else trace.access_batches(READ):
        counting.accesses.take(batch)
        seen += batch.num_rows
        tell(seen / rows)
    for batch in trace.texel_batches():
        counting.samples.take(batch)
    paths = trace.path_store()
    for batch in trace.control_batches():
        counting.histories.take(batch, paths)
    for batch in trace.lanes_on_batches():
        counting.lanes_on.take(batch)
    if is_ordered:
        take = counting.accesses.take
        count_ordered(trace, counting.running, counting.sites, counting.zones, take, tell)
    counting.close()
