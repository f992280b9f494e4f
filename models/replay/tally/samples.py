"""Counting texture samples: each row of texels through the texture stages of every device.

Samples rarely repeat, so models see each row; devices with equal stages share the counts.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ....traces.schema import Launch, Space
from ..rows.arrays import SPACE_SHIFT, Zones
from ..rows.sites import Sites
from ..rows.texels import SampleReader, Samples, window
from ..seam import Ints
from ..stages import Answers, Stages
from .accesses import Track, enter, group_places


class SampleCounter:
    """Counts the texture samples of a launch for all devices, batch by batch."""

    def __init__(
        self,
        launch: Launch,
        instructions: pa.Table,
        tracks: Sequence[Track],
        sites: Sites,
        zones: Zones,
    ) -> None:
        self._reader = SampleReader(launch, instructions)
        self._tracks = tracks
        self._sites = sites
        self._zones = zones

    def take(self, batch: pa.RecordBatch) -> None:
        """Count rows of TEXELS."""
        for samples in self._reader.read(batch):
            self._count(samples)

    def _count(self, samples: Samples) -> None:
        site, zone = locate(samples, self._sites, self._zones)
        groups = group_places(site, zone, np.zeros(len(site), np.bool_))
        known: dict[str, Answers] = {}
        for track in self._tracks:
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
