"""Texture: which bytes the samples of a warp touch.

What the hardware does. A sample reads one texel, or with a linear filter the two, four or eight
around its coordinate. Textures made of arrays are cut into small tiles, so that neighbours in
every direction lie near each other in memory; those over linear memory lie in plain rows. The
texture unit serves groups of neighbouring threads, and texels of one group that lie in one sector
of 32 bytes are read together.

What is modelled: `split_requests`, the groups of `request_lanes` threads with an active one;
`sectors`, the distinct sectors of each group of `merge_lanes` threads; `bytes_moved`, their size;
`texels`, the distinct texels of each such group. A tap beyond the border reads nothing.

`tile` is the arrangement of an array's texels: a letter for each bit of the offset in a tile, from
the lowest, `x` from the byte's place in its row and `y` from the row's. Tiles follow one another
in rows of tiles. A texture of one row lies in a row.

What is not: that a tap of weight zero may be left out; mipmaps, of which there are none.

Source: CUDA C Programming Guide 7.5, appendix F; Tegra X1 Technical Reference Manual (tiles since
2.x); envytools, G80 surface formats (tiles of 1.x); docs/validation.md for what was measured.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..errors import CutraceError
from .replay.lanes import NONE, count_distinct
from .replay.seam import (
    ROW_SHIFT,
    SLICE_SHIFT,
    Batch,
    Bools,
    Image,
    Ints,
    Kind,
    Step,
    join_batches,
)

SECTOR = 32
THREADS = 32


@dataclass(frozen=True)
class Texture:
    """The texture unit of one device, up to its cache."""

    tile: str
    request_lanes: int
    merge_lanes: int

    counters: ClassVar[tuple[str, ...]] = ("split_requests", "sectors", "bytes_moved", "texels")
    period: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Refuse tiles that are none."""
        if not self.tile or set(self.tile) - set("xy"):
            raise CutraceError(f"texture: tile = {self.tile!r}; expected letters x and y")

    def step(self, batch: Batch) -> Step:
        """Find the texels of each row in memory, and count what they touch."""
        counts = {name: np.zeros(len(batch), np.int64) for name in self.counters}
        passed: list[Batch] = []
        for kind, rows in batch.parts():
            if kind.image is None:
                raise CutraceError("texture: this stage is for rows of textures only")
            active = batch.active[rows]
            addresses = np.where(active, self._locate(kind.image, batch.addresses[rows]), NONE)
            taps = active.shape[1] // THREADS
            asking = active.reshape(-1, self.request_lanes * taps).any(axis=1)
            groups = addresses.reshape(-1, self.merge_lanes * taps)
            sectors = np.sort(groups // SECTOR, axis=1)
            new = _is_new(sectors)
            texels = count_distinct(groups, groups != NONE)
            counts["split_requests"][rows] = asking.reshape(len(rows), -1).sum(axis=1)
            counts["sectors"][rows] = new.reshape(len(rows), -1).sum(axis=1)
            counts["texels"][rows] = texels.reshape(len(rows), -1).sum(axis=1)
            if batch.passes_on:
                passed.append(_pass_on(kind, sectors, new, batch.row[rows]))
        counts["bytes_moved"] = SECTOR * counts["sectors"]
        return Step(counts, join_batches(passed) if passed else None)

    def _locate(self, image: Image, places: Ints) -> Ints:
        """Return the address of each texel's place in memory."""
        x: Ints = places & ((1 << ROW_SHIFT) - 1)
        y: Ints = (places >> ROW_SHIFT) & ((1 << (SLICE_SHIFT - ROW_SHIFT)) - 1)
        z: Ints = places >> SLICE_SHIFT
        if image.pitch or image.rows == 1:
            pitch = image.pitch or image.row_bytes
            plain: Ints = image.base + (z * image.rows + y) * pitch + x
            return plain
        wide, high = 1 << self.tile.count("x"), 1 << self.tile.count("y")
        in_row, in_slice = -(-image.row_bytes // wide), -(-image.rows // high)
        number = (z * in_slice + y // high) * in_row + x // wide
        tiled: Ints = image.base + number * (wide * high) + self._inside(x, y)
        return tiled

    def _inside(self, x: Ints, y: Ints) -> Ints:
        """Return the offset in its tile of byte `x` of row `y`."""
        taken, offset = {"x": 0, "y": 0}, np.zeros_like(x)
        for bit, letter in enumerate(self.tile):
            value = (x if letter == "x" else y) >> taken[letter] & 1
            offset |= value << bit
            taken[letter] += 1
        return offset


def _is_new(sectors: Ints) -> Bools:
    """Whether each of the sorted sectors of a group is the first of its number, and one at all."""
    new = sectors < NONE // SECTOR
    new[:, 1:] &= sectors[:, 1:] != sectors[:, :-1]
    return new


def _pass_on(kind: Kind, sectors: Ints, new: Bools, row: Ints) -> Batch:
    """Return the distinct sectors as rows of one lane, for the next stage."""
    group, column = np.nonzero(new)
    return Batch(
        (Kind(kind.space, kind.access, kind.cache, SECTOR),),
        np.zeros(len(group), np.int64),
        sectors[group, column][:, None] * SECTOR,
        np.ones((len(group), 1), np.bool_),
        row[group // (len(sectors) // max(1, len(row)))],
    )
