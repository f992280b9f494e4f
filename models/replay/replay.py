"""Replay: one reading of a launch's trace, through the models of any number of devices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ..control import COUNTERS
from ..occupancy import launch_occupancy, refuse_launch
from .accesses import Track, count_accesses
from .arrays import Zones, cut_zones
from .counts import LaunchCounts, Ledger
from .device import Device
from .histories import count_histories
from .lacking import adapt_kinds, substitute
from .options import ReplayOptions
from .place import place
from .samples import count_samples
from .sites import Sites, read_sites
from .stages import Stages, split_wires, with_sources
from .texels import texture_arrays
from .wiring import wire

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace


def replay(
    launch_trace: "LaunchTrace", devices: Sequence[Device], options: ReplayOptions | None = None
) -> list[LaunchCounts]:
    """Count one launch on each device, reading its trace once.

    Raises `CutraceError` for a broken trace. A device that cannot launch it says so in `refusal`.
    """
    options = options or ReplayOptions()
    launch, instructions = launch_trace.launch, launch_trace.instructions()
    sites = read_sites(instructions, options.dlcm)
    zones = cut_zones([*launch.arrays, *texture_arrays(launch.textures)])
    tracks = [_track(d, launch.blocks, sites, zones, options) for d in devices]
    refusals = [refuse_launch(device, launch) for device in devices]
    running = [t for t, no in zip(tracks, refusals, strict=True) if options.as_if or not no]
    if running:
        count_accesses(launch_trace, running, sites, zones)
        count_samples(launch_trace, running, sites, zones)
        count_histories(launch_trace, running, instructions)
    return [
        _result(launch_trace, track, refusal, instructions, options)
        for track, refusal in zip(tracks, refusals, strict=True)
    ]


def _track(
    device: Device, blocks: int, sites: Sites, zones: Zones, options: ReplayOptions
) -> Track:
    """Set up one device."""
    wires = wire(device.stages, device.file)
    ledger = Ledger(sites, zones, [*COUNTERS, *(name for w in wires for name in w.names())])
    repeating, lasting = split_wires(wires)
    placement = place(device.chip, blocks, options.profiled_blocks)
    kinds = adapt_kinds(sites.kinds, device.capability, options.dlcm)
    stages = Stages(with_sources(lasting, wires))
    return Track(device, kinds, placement, ledger, repeating, lasting, stages)


def _result(
    trace: "LaunchTrace",
    track: Track,
    refusal: str,
    instructions: pa.Table,
    options: ReplayOptions,
) -> LaunchCounts:
    """Close one device's ledger."""
    counts, mixed = track.ledger.close()
    on_sm, beside, _ = track.placement.count_scopes()
    return LaunchCounts(
        track.device.key,
        trace.launch,
        trace.number,
        counts,
        mixed,
        launch_occupancy(track.device, trace.launch, _barriers(instructions), options),
        refusal,
        substitute(instructions, track.device.capability),
        on_sm,
        on_sm + beside,
    )


def _barriers(instructions: pa.Table) -> int:
    """Return how many barriers of a block a kernel names, at least the one that all have."""
    return max(1, len({n for n in instructions["barrier"].to_pylist() if n is not None}))
