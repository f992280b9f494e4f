"""Replay: one reading of a launch's trace, through the models of any number of devices."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...traces.schema import Launch
from ..control import COUNTERS
from ..occupancy import Occupancy, launch_occupancy, refuse_launch
from .accesses import Track, count_accesses
from .arrays import Zones, cut_zones
from .counts import LaunchCounts, Ledger
from .device import Device
from .histories import count_histories
from .intervals import Intervals
from .lacking import adapt_kinds, substitute
from .options import ReplayOptions
from .ordered import count_ordered
from .place import place
from .samples import count_samples
from .schedule import read_barriers, schedule
from .sites import Sites, read_sites
from .stages import split_wires, with_sources
from .texels import texture_arrays
from .wiring import wire

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace


LOCAL_BYTES = 1 << 20
"""Local memory of a thread where the launch does not say how much it has."""


def replay(
    launch_trace: "LaunchTrace", devices: Sequence[Device], options: ReplayOptions | None = None
) -> list[LaunchCounts]:
    """Count one launch on each device, reading its trace once.

    Raises `CutraceError` for a broken trace. A device that cannot launch it says so in `refusal`.
    """
    options = options or ReplayOptions()
    if not launch_trace.launch.kept.is_whole:  # what keeps state needs all that came before
        options = replace(options, caches=False)
    launch, instructions = launch_trace.launch, launch_trace.instructions()
    sites = read_sites(instructions, options.dlcm)
    zones = cut_zones([*launch.arrays, *texture_arrays(launch.textures)])
    intervals = read_barriers(launch_trace) if options.caches else None
    named = _barriers(instructions)
    resident = [launch_occupancy(device, launch, named, options) for device in devices]
    tracks = [
        _track(device, fit, launch, sites, zones, options, intervals)
        for device, fit in zip(devices, resident, strict=True)
    ]
    refusals = [refuse_launch(device, launch) for device in devices]
    running = [t for t, no in zip(tracks, refusals, strict=True) if options.as_if or not no]
    if running:
        count_accesses(launch_trace, running, sites, zones)
        count_samples(launch_trace, running, sites, zones)
        count_ordered(launch_trace, running, sites, zones)
        count_histories(launch_trace, running, instructions)
    return [
        _result(launch_trace, track, fit, refusal, instructions)
        for track, fit, refusal in zip(tracks, resident, refusals, strict=True)
    ]


def _track(
    device: Device,
    fit: Occupancy,
    launch: Launch,
    sites: Sites,
    zones: Zones,
    options: ReplayOptions,
    intervals: Intervals | None,
) -> Track:
    """Set up one device."""
    wires = wire([stage.without(fit.carveout) for stage in device.stages], device.file)
    repeating, lasting = split_wires(wires)
    if not options.caches:
        wires, lasting = repeating, ()
    placement = place(device.chip, launch.blocks, options.profiled_blocks, launch.kept.sample)
    return Track(
        device,
        adapt_kinds(sites.kinds, device.capability, options.dlcm),
        placement,
        Ledger(
            sites,
            zones,
            [*COUNTERS, *(name for w in wires for name in w.names())],
            placement.names,
        ),
        repeating,
        lasting,
        tuple(w for w in with_sources(lasting, wires) if w not in lasting),
        schedule(placement, fit.blocks, launch.warps, options.schedule, intervals),
        launch.local_bytes or LOCAL_BYTES,
    )


def _result(
    trace: "LaunchTrace", track: Track, fit: Occupancy, refusal: str, instructions: pa.Table
) -> LaunchCounts:
    """Close one device's ledger."""
    counts, mixed = track.ledger.close()
    on_sm, beside = track.placement.count_profiled()
    return LaunchCounts(
        track.device.key,
        trace.launch,
        trace.number,
        counts,
        mixed,
        fit,
        refusal,
        substitute(instructions, track.device.capability),
        on_sm,
        on_sm + beside,
    )


def _barriers(instructions: pa.Table) -> int:
    """Return how many barriers of a block a kernel names, at least the one that all have."""
    return max(1, len({n for n in instructions["barrier"].to_pylist() if n is not None}))
