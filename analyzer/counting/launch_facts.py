"""Facts of a launch on a device: what formulas may read beside the raw counters."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from math import prod

from ...models.replay.device.device import Device
from ...models.replay.schedule.place import Waves, count_padding_lanes, count_waves
from ...models.replay.tally.counts import LaunchCounts

CLUSTER = ("cluster_x", "cluster_y", "cluster_z")
LIMITS = ("blocks", "warps", "registers", "shared", "barriers")


def launch_facts(counts: LaunchCounts, device: Device) -> Mapping[str, int | None]:
    """Everything that is known of the launch as a whole, by name; None where it is not known.

    `limit_*` are the blocks that an SM has room for, by resource; `resident_blocks` the least of
    them. Shared memory is in bytes a block: `shared_driver` is what the device reserves of it, and
    `shared_allocated` all of it rounded up. `carveout` is what the SM sets apart for it, enough for
    `limit_carveout` blocks. Blocks run in `waves`, as `models/replay/schedule/place.py` says.
    """
    launch, resident, limits = counts.launch, counts.occupancy, device.limits
    asked = resident.need.shared + limits.shared_reserved
    allocated = -(-asked // limits.shared_unit) * limits.shared_unit
    waves = count_waves(device.chip, launch.blocks, resident.blocks)
    return {
        **dict.fromkeys((field.name for field in fields(Waves)), None),
        **(asdict(waves) if waves else {}),
        "padding_lanes": count_padding_lanes(launch.blocks, launch.threads),
        "active_warps": resident.active_warps,
        "max_warps": resident.max_warps,
        "registers": resident.registers,
        "resident_blocks": resident.blocks,
        **{f"limit_{name}": resident.limits.get(name) for name in LIMITS},
        **{f"grid_{axis}": extent for axis, extent in zip("xyz", launch.grid, strict=True)},
        **{f"block_{axis}": extent for axis, extent in zip("xyz", launch.block, strict=True)},
        **dict(zip(CLUSTER, launch.cluster or (0, 0, 0), strict=True)),
        "cluster_blocks": prod(launch.cluster) if launch.cluster else 0,
        "grid_blocks": launch.blocks,
        "block_threads": launch.threads,
        "shared_static": launch.shared_static,
        "shared_dynamic": launch.shared_dynamic,
        "shared_driver": limits.shared_reserved,
        "shared_allocated": allocated,
        "carveout": resident.carveout,
        "limit_carveout": resident.carveout // allocated if allocated else None,
        "sms": device.chip.sms,
    }
