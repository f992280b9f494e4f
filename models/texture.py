"""Texture: the bytes that the samples of a warp touch.

What the hardware does. A sample reads one texel, or with a linear filter the two, four or eight
around its coordinate. Textures made of arrays are stored in small tiles, so that neighbours in
every direction are near each other in memory; those over linear memory are stored in plain rows.
The texture unit serves a quad of neighbouring threads at a time (`request_lanes`), and for texels
by number (tex1Dfetch) up to 4, 8 and 16 bytes wide `fetch_lanes` of them. Texels of one request in
one sector of 32 bytes are read together. A filter that needs more than 16 bytes per thread splits
the quad into pairs, and serves each pair again for every further 32 bytes.

What is modelled: `split_requests` counts requests with an active thread, each a quad of threads (or
`fetch_lanes` threads of `tex1Dfetch`). A request with wide texels is served in several turns, by
pairs of threads. `sectors` counts the distinct sectors of each pair and turn, `bytes_moved` their
bytes, `texels` the distinct texels of each request. A tap, one of the texels of a filter, is left
out if its weight is zero; beyond the border it reads the texel that clamping gives.

`tile` is the layout of an array's texels: a letter for each bit of the offset in a tile, from the
lowest, `x` for a bit of the byte's place in its row and `y` for a bit of the row's number. Tiles
are stored in rows of tiles.

What is not: a sample of two levels of a mipmapped texture. On 9.0 it is one request, with the
sectors of both levels; the model counts each level as a separate texture, so two requests.

Source: CUDA C Programming Guide 7.5, appendix F; Tegra X1 Technical Reference Manual (tiles since
2.x); envytools, G80 surface formats (tiles of 1.x); docs/validation.md for requests, which were
measured on 9.0 and are assumed for older devices.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from .replay.interface.model import (
    ROW_SHIFT,
    SLICE_SHIFT,
    Batch,
    Bools,
    Image,
    Ints,
    Kind,
    Step,
    join_batches,
    one_lane,
)
from .replay.rows.lanes import NONE, check_lanes, count_distinct, mark_new, sum_parts

SECTOR = 32
FILTER_BYTES = 16
"""The bytes per thread of a quad that a filter reads at once."""


@dataclass(frozen=True)
class Texture:
    """The texture unit of one device, up to its cache."""

    tile: str
    request_lanes: int
    fetch_lanes: Sequence[int]

    counters: ClassVar[tuple[str, ...]] = ("split_requests", "sectors", "bytes_moved", "texels")
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse invalid tiles, and groups that do not divide a warp."""
        check_lanes("texture: request_lanes", [self.request_lanes], 1)
        check_lanes("texture: fetch_lanes", self.fetch_lanes)
        if not self.tile or set(self.tile) - set("xy"):
            raise CutraceError(f"texture: tile = {self.tile!r}; expected letters x and y")

    def step(self, batch: Batch) -> Step:
        """Compute the texels' addresses, and count the footprint of each row."""
        counts = {name: np.zeros(len(batch), np.int64) for name in self.counters}
        passed: list[Batch] = []
        for kind, rows in batch.parts():
            if kind.image is None:
                raise CutraceError("texture: this stage is for rows of textures only")
            addresses = self._locate(kind.image, batch.addresses[rows])
            addresses[~batch.active[rows]] = NONE
            lanes, pairs, passes = self._serve(kind, kind.image)
            requests = addresses.reshape(-1, lanes * kind.image.taps)
            sectors = np.sort(requests.reshape(-1, pairs * kind.image.taps) // SECTOR, axis=1)
            new = mark_new(sectors, NONE // SECTOR)
            asking: Bools = np.any(batch.active[rows].reshape(requests.shape), axis=1)
            counts["split_requests"][rows] = sum_parts(asking, len(rows))
            counts["sectors"][rows] = passes * sum_parts(new, len(rows))
            texels = count_distinct(requests, requests != NONE)
            counts["texels"][rows] = sum_parts(texels, len(rows))
            if batch.passes_on:
                passed.append(_pass_on(kind, sectors, new, batch.row[rows]))
        counts["bytes_moved"] = SECTOR * counts["sectors"]
        return Step(counts, join_batches(passed) if passed else None)

    def _serve(self, kind: Kind, image: Image) -> tuple[int, int, int]:
        """Return the lanes per request, the lanes that share sectors, and the turns of each."""
        if image.is_fetch:
            lanes = self.fetch_lanes[(kind.width > 4) + (kind.width > 8)]
            return lanes, lanes, 1
        portions = -(-image.taps * kind.width // FILTER_BYTES)
        if image.taps == 1 or portions == 1:
            return self.request_lanes, self.request_lanes, 1
        return self.request_lanes, self.request_lanes // 2, portions // 2

    def _locate(self, image: Image, places: Ints) -> Ints:
        """Return the address of each texel's place in memory."""
        x: Ints = places & ((1 << ROW_SHIFT) - 1)
        y: Ints = (places >> ROW_SHIFT) & ((1 << (SLICE_SHIFT - ROW_SHIFT)) - 1)
        z: Ints = places >> SLICE_SHIFT
        if image.pitch:
            return image.base + (z * image.rows + y) * image.pitch + x
        wide, high = 1 << self.tile.count("x"), 1 << self.tile.count("y")
        in_row, in_slice = -(-image.row_bytes // wide), -(-image.rows // high)
        number = (z * in_slice + y // high) * in_row + x // wide
        return image.base + number * (wide * high) + self._inside(x, y)

    def _inside(self, x: Ints, y: Ints) -> Ints:
        """Return the offset in its tile of byte `x` of row `y`."""
        bit_cursors, offset = {"x": 0, "y": 0}, np.zeros_like(x)
        for bit, letter in enumerate(self.tile):
            value = (x if letter == "x" else y) >> bit_cursors[letter] & 1
            offset |= value << bit
            bit_cursors[letter] += 1
        return offset


def _pass_on(kind: Kind, sectors: Ints, new: Bools, row: Ints) -> Batch:
    """Return the distinct sectors as rows of one lane, for the next stage."""
    group, column = np.nonzero(new)
    of = row[group // (len(sectors) // max(1, len(row)))]
    passed = Kind(kind.space, kind.access, kind.cache, SECTOR)
    return one_lane((passed,), np.zeros_like(of), sectors[group, column] * SECTOR, of)
