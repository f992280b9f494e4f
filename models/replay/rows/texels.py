"""Texture samples: the texels (taps) that each sample reads, from the corners in the trace.

A trace has the lower corner texel of each sample; the taps follow from the texture's descriptor. A
linear filter reads the corner and its neighbour in each dimension with a nonzero weight, and each
index is folded by the dimension's address mode. Wrap and mirror exist for normalised coordinates
only and otherwise clamp. Beyond a border the chip reads the texel that clamping gives
(docs/validation.md). Integer coordinates (tex1Dfetch) are never filtered. Gathers (`tld4`) read the
taps of a linear filter in two dimensions.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ....base.dataclass import dataclass
from ....traces.column import integers
from ....traces.schema import LANES, LAYER_BITS, Array, Launch, Space, Texture
from ....traces.unique import sorted_unique
from ..interface.model import ROW_SHIFT, SLICE_SHIFT, Batch, Bools, Image, Ints, Kind

if TYPE_CHECKING:
    from ....traces.reader import LaunchTrace

SAMPLES = 1 << 11
"""Rows whose taps are in memory at a time: 4 MiB of addresses in three dimensions."""
WINDOW = 40
"""Textures that are copies are 2**40 bytes apart in an address space of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rows of one texture and one way of reading. `batch` has their taps; `block`, `warp` and
    `step` (n,) are the owners, `pc` (n,) the instructions.
    """

    batch: Batch
    texture: int
    block: Ints
    warp: Ints
    step: Ints
    pc: Ints


def texture_arrays(textures: Sequence[Texture]) -> tuple[Array, ...]:
    """Return the array to which each texture's samples are attributed: itself, or the array under
    it.
    """
    return tuple(
        Array(texture.array or texture.name, Space.TEXTURE, window(number), 1 << WINDOW)
        for number, texture in enumerate(textures)
    )


def window(texture: int) -> int:
    """Return the first byte of a texture in the address space of textures."""
    return (texture + 1) << WINDOW


class SampleReader:
    """Reads the texture samples of a launch."""

    def __init__(self, launch: Launch, instructions: pa.Table) -> None:
        self._textures = launch.textures
        operations = instructions["operation"].to_pylist()
        self._way = np.array([_WAYS.get(name, FILTERS) for name in operations], np.int64)
        self._kinds = [_kind(launch, number) for number in range(len(launch.textures))]

    def read(self, batch: pa.RecordBatch) -> Iterator[Samples]:
        """Yield the samples of rows of TEXELS in their order, a few at a time."""
        for start in range(0, batch.num_rows, SAMPLES):
            yield from self._split(batch.slice(start, SAMPLES))

    def _split(self, batch: pa.RecordBatch) -> Iterator[Samples]:
        """Group rows by texture, way of reading and number of taps, and yield each group."""
        block, warp, step, pc, of, masks = integers(
            batch, "block", "warp", "step", "pc", "texture", "active"
        )
        corners = batch["corner"].flatten().to_numpy().reshape(-1, LANES, 4)
        active = masks[:, None] >> np.arange(LANES) & 1 != 0
        key = of * (GATHERS + 1) + self._way[pc]
        for number in sorted_unique(key).tolist():
            rows = np.flatnonzero(key == number)
            texture, how = divmod(number, GATHERS + 1)
            kind = self._kinds[texture]
            places, inside = find_taps(self._textures[texture], kind.width, how, corners[rows])
            taps = places.shape[2]
            image = replace(kind.image, taps=taps, is_fetch=how == FETCHES) if kind.image else None
            mask = np.repeat(active[rows], taps, axis=1) & inside.reshape(len(rows), -1)
            kinds, nothing = (replace(kind, image=image),), np.zeros(len(rows), np.int64)
            tap_batch = Batch(
                kinds, nothing, places.reshape(mask.shape), mask, np.arange(len(rows))
            )
            yield Samples(tap_batch, texture, block[rows], warp[rows], step[rows], pc[rows])


def read_samples(trace: "LaunchTrace") -> Iterator[Samples]:
    """Yield the texture samples of a launch in the order of the trace, a few at a time."""
    reader = SampleReader(trace.launch, trace.instructions())
    for batch in trace.texel_batches():
        yield from reader.read(batch)


FETCHES, FILTERS, GATHERS = range(3)
_WAYS = {"fetch": FETCHES, "filter": FILTERS, "gather": GATHERS}
"""The way of reading a texture, by the operation in the trace."""


def _kind(launch: Launch, number: int) -> Kind:
    """Return the kind of all samples of a texture."""
    texture = launch.textures[number]
    bits, channels = re.fullmatch(r"\D*(\d+)(?:x(\d+))?", texture.format).groups()  # type: ignore[union-attr]
    width = int(bits) // 8 * int(channels or 1)
    row_bytes = texture.extent[0] * width
    rows = texture.extent[1] if len(texture.extent) > 1 else 1
    under = next((a for a in launch.arrays if a.name == texture.array), None)
    if under is not None:
        image = Image(under.offset, row_bytes, rows, under.pitch or row_bytes)
    else:
        image = Image(window(number), row_bytes, rows)
    return Kind("texture", "load", "", width, image)


def find_taps(texture: Texture, width: int, how: int, corners: Ints) -> tuple[Ints, Bools]:
    """Return the places (n, lanes, taps) of all texels that samples read, and which exist.

    `corners` (n, lanes, 4) are texels x, y, z and the layer, as in TEXELS; `width` is the bytes of
    a texel.
    """
    dimensions = len(texture.extent)
    wide = how == GATHERS or (how == FILTERS and texture.filter_mode == "linear")
    steps = np.array([*product(*[(0, 1) if wide else (0,)] * dimensions)], np.int64)
    place = np.zeros((*corners.shape[:2], len(steps)), np.int64)
    inside = np.ones(place.shape, np.bool_)
    for axis, scale in zip(
        range(dimensions), (width, 1 << ROW_SHIFT, 1 << SLICE_SHIFT), strict=False
    ):
        index = corners[:, :, axis, None] + steps[:, axis]
        folded, exists = fold(index, texture.extent[axis], _mode(texture, axis, how))
        place += folded * scale
        inside &= exists
        is_single = corners[:, :, 3, None] >> (LAYER_BITS + axis) & 1 != 0
        inside &= ~(is_single & (steps[:, axis] != 0))
    if texture.layers:
        layer = corners[:, :, 3, None] & ((1 << LAYER_BITS) - 1)
        place += layer.astype(np.int64) << SLICE_SHIFT
    return place, inside


def _mode(texture: Texture, axis: int, how: int) -> str:
    """Return the address mode in effect."""
    if how == FETCHES:
        return "border"
    mode = texture.address_mode[min(axis, len(texture.address_mode) - 1)]
    return mode if mode in ("wrap", "mirror") and texture.normalized_coords else "clamp"


def fold(index: Ints, size: int, mode: str) -> tuple[Ints, Bools]:
    """Return indices folded into a dimension of `size` texels, and which lead to a texel.

    >>> [fold(np.array([-1, 5]), 4, mode)[0].tolist() for mode in ("clamp", "wrap", "mirror")]
    [[0, 3], [3, 1], [0, 2]]
    """
    exists = np.ones(index.shape, np.bool_)
    if mode == "border":
        exists = (index >= 0) & (index < size)
    elif mode == "wrap":
        index = index % size
    elif mode == "mirror":
        index = index % (2 * size)
        index = np.where(index < size, index, 2 * size - 1 - index)
    return np.clip(index, 0, size - 1), exists
