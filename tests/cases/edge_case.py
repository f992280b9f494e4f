"""Samples of one warp within, at and beyond the edges of a texture, in every address mode.

What is counted of them on hardware and here: whether texels beyond an edge, and texels of weight
zero, are fetched. The texture is an array of 64 x 48 texels of one or four floats, or a row of 64.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WIDE, HIGH = 64, 48
LANE = np.arange(32, dtype=np.float64)
MODES = ("border", "clamp", "wrap", "mirror")
PLACES = (
    *("inside", "around", "outside", "far", "left", "right"),
    *("corner", "last", "grid", "column", "quads"),
)
OF_ROW = ("inside", "around", "left", "right", "far")


@dataclass(frozen=True)
class Edge:
    """`row` is a texture of one dimension; `seed` moves the place by quarters of a texel."""

    row: bool
    mode: str
    linear: bool
    channels: int
    place: str
    seed: int

    @property
    def name(self) -> str:
        """All of it in a few words."""
        how = "linear" if self.linear else "point"
        where = "row" if self.row else "plane"
        return f"{where} {self.mode} {how} x{self.channels} {self.place} {self.seed}"

    @property
    def normalized(self) -> bool:
        """Whether coordinates go from 0 to 1: others do not wrap."""
        return self.mode in ("wrap", "mirror")

    @property
    def coordinates(self) -> list[NDArray[np.float32]]:
        """x, and y of a plane, of each lane, as the kernel takes them."""
        axes = [axis.astype(np.float32) for axis in _places(self.place, self.seed)]
        if self.normalized:
            axes = [axis / np.float32(size) for axis, size in zip(axes, (WIDE, HIGH), strict=True)]
        return axes[:1] if self.row else axes


def edge_cases() -> Iterator[Edge]:
    """Yield all cases."""
    for mode in MODES:
        for linear in (False, True):
            for channels in (1, 4):
                for place in PLACES:
                    for seed in range(3 if channels == 1 else 1):
                        yield Edge(False, mode, linear, channels, place, seed)
    for mode in MODES[:2]:
        for linear in (False, True):
            for place in OF_ROW:
                yield from (Edge(True, mode, linear, 1, place, seed) for seed in range(3))


def _places(place: str, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x and y in texels."""
    r, by = np.random.default_rng(seed), 0.5 + seed * 0.25
    random: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
        "inside": ((2, WIDE - 2), (2, HIGH - 2)),
        "around": ((-10, WIDE + 10), (-10, HIGH + 10)),
        "outside": ((-40, -2), (0, HIGH)),
        "far": ((WIDE + 5, WIDE + 300), (HIGH + 5, HIGH + 300)),
    }
    if place in random:
        x, y = random[place]
        return r.uniform(x[0], x[1], 32), r.uniform(y[0], y[1], 32)
    if place == "quads":  # one lane of each quad is beyond an edge
        return np.where(seed % 4 == LANE % 4, -50.0, LANE % 8 + 20.5), LANE // 8 + 9.5
    patterns: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {
        "left": (LANE - 8, 0 * LANE + 7),
        "right": (LANE + WIDE - 16, 0 * LANE + 7),
        "corner": (LANE % 8 - 4, LANE // 8 - 2),
        "last": (LANE % 8 + WIDE - 4, LANE // 8 + HIGH - 2),
        "grid": (LANE % 16 + 20, LANE // 16 + 9),
        "column": (0 * LANE + 5, LANE - 5.5),
    }
    columns, rows = patterns[place]
    return columns + by, rows + by
