"""Ask the stages of a device about warps written by hand."""

from collections.abc import Mapping

import numpy as np
from warps import Warp

from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.wiring import wire
from cutrace.models.replay.histogram.stages import Stages
from cutrace.models.replay.interface.model import Batch, Kind
from cutrace.models.replay.rows.lanes import unpack_masks


def batch_of(*warps: Warp, kind: Kind) -> Batch:
    """Warps as a batch of one kind."""
    return Batch(
        (kind,),
        np.zeros(len(warps), np.int64),
        np.array([w.base + w.offsets.astype(np.int64) for w in warps]),
        unpack_masks(np.array([w.active for w in warps], np.uint32)),
        np.arange(len(warps)),
    )


def serve(
    device: str,
    lanes: Warp,
    width: int = 4,
    access: str = "load",
    space: str = "global",
    cache: str = "ca",
    settings: Mapping[str, object] | None = None,
    collision: str = "",
) -> dict[str, int]:
    """Every counter that a device's stages give for one warp, by the counter's own name."""
    wires = wire(load_device(device, settings).stages, device)
    batch = batch_of(lanes, kind=Kind(space, access, cache, width, collision=collision))
    answers = Stages(wires).run(batch, {})
    return {
        name: value
        for wired in wires
        if space in wired.spaces
        for name, value in zip(
            wired.counters, answers[wired.stage.name][:, 0].tolist(), strict=True
        )
    }
