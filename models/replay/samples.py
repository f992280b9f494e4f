"""Counting texture samples: each row of texels through the texture stages of every device.

Samples rarely repeat, so each row is asked about; devices with like stages share the answers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...traces.schema import Space
from .accesses import Track, enter, group_places
from .arrays import SPACE_SHIFT, Zones
from .seam import Ints
from .sites import Sites
from .stages import Answers, Stages
from .texels import Samples, read_samples, window

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace


def count_samples(
    trace: "LaunchTrace", tracks: Sequence[Track], sites: Sites, zones: Zones
) -> None:
    """Read all texel rows once, and enter every device's counts."""
    for samples in read_samples(trace):
        site, zone = locate(samples, sites, zones)
        groups = group_places(site, zone, np.zeros(len(site), np.bool_))
        known: dict[str, Answers] = {}
        for track in tracks:
            wires = [wire for wire in track.repeating if "texture" in wire.spaces]
            stages = repr([wire.stage for wire in wires])
            if stages not in known:
                known[stages] = Stages(tuple(wires)).run(samples.batch, {})
            times = track.placement.times(samples.block)
            enter(track.ledger, wires, groups, times, known[stages], np.arange(len(site)))


def locate(samples: Samples, sites: Sites, zones: Zones) -> tuple[Ints, Ints]:
    """Return the site and the zone of each row, (n,)."""
    site = sites.locate(samples.pc, np.full(len(samples.pc), Space.TEXTURE, np.int64))
    place = np.array([(Space.TEXTURE << SPACE_SHIFT) + window(samples.texture)], np.int64)
    return site, np.repeat(zones.find(place), len(site))
