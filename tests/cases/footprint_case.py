"""Texture samples of one warp whose requests and sectors are counted on hardware and here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LANE = np.arange(32)
PATTERNS = {
    "same": (0 * LANE, 0 * LANE),
    "row": (LANE, 0 * LANE),
    "row2": (2 * LANE, 0 * LANE),
    "row4": (4 * LANE, 0 * LANE),
    "row8": (8 * LANE, 0 * LANE),
    "shifted": (LANE + 3, 0 * LANE),
    "column": (0 * LANE, LANE),
    "column2": (0 * LANE, 2 * LANE),
    "diagonal": (LANE, LANE),
    "8x4": (LANE % 8, LANE // 8),
    "4x8": (LANE % 4, LANE // 4),
    "16x2": (LANE % 16, LANE // 16),
    "quads": (LANE % 2 + 2 * (LANE // 4 % 4), LANE // 2 % 2 + 2 * (LANE // 16)),
    "pairs": (LANE // 2, 0 * LANE),
    "fours": (LANE // 4, 0 * LANE),
    "far": (32 * (LANE // 8), 16 * (LANE % 8)),
    "random": tuple(np.random.default_rng(5).integers(0, 256, (2, 32))),
    "swapped": (LANE ^ 13, 0 * LANE),
    "8x4 shifted": (LANE % 8 + 3, LANE // 8 + 1),
    "64 apart": (64 * (LANE % 4), 0 * LANE),
    "halves": (LANE % 16, 0 * LANE),
    "reversed": (31 - LANE, 0 * LANE),
}
MASKS = {
    "all": LANE >= 0,
    "odd": LANE % 2 == 1,
    "first": LANE == 0,
    "quad": LANE < 4,
    "leaders": LANE % 4 == 0,
    "upper": LANE >= 16,
}


@dataclass(frozen=True)
class Case:
    """`memory` is `linear` (tex1Dfetch), `array` or `pitch`; `extent` is x, y, z in texels.

    `offset` is what is added to the pattern's coordinates: 0.5 is a texel's middle, 1 an edge.
    """

    memory: str
    extent: tuple[int, ...]
    element: str
    channels: int
    linear: bool
    offset: float
    pattern: str
    mask: str = "all"
    layers: int = 0

    @property
    def name(self) -> str:
        """All of it in a few words."""
        size = "x".join(map(str, self.extent)) + (f"x{self.layers} layers" if self.layers else "")
        how = "linear" if self.linear else "point"
        texel = f"{self.element}x{self.channels}"
        return f"{self.memory} {size} {texel} {how} +{self.offset} {self.pattern} {self.mask}"

    @property
    def coordinates(self) -> NDArray[np.float64]:
        """(3, 32): x, y, z of each lane, in texels; the third is 2.5, or the layer."""
        x, y = (np.asarray(axis, np.float64) + self.offset for axis in PATTERNS[self.pattern])
        return np.stack([x, y, LANE % 2 if self.layers else np.full(32, 2.5)])


def footprint_cases() -> Iterator[Case]:
    """Yield all cases."""
    rows = [p for p in PATTERNS if p not in ("column", "column2", "diagonal", "quads")]
    yield from _each("linear", (8192,), "f4", 1, False, 0, rows)
    yield from (Case("linear", (8192,), "f4", 1, False, 0, "row", mask) for mask in MASKS)
    yield from _each("linear", (8192,), "f4", 4, False, 0, ["same", "row", "row2", "pairs"])
    narrow = ["same", "row", "row2", "row4", "row8", "shifted", "pairs"]
    yield from _each("array", (4096,), "f4", 1, False, 0.5, narrow)
    yield from _each("array", (4096,), "f4", 1, True, 1, ["same", "row", "row4", "row8"])
    plane = (256, 256)
    yield from _each("array", plane, "f4", 1, False, 0.5, [*PATTERNS])
    for pattern in ("row", "8x4"):
        yield from (Case("array", plane, "f4", 1, False, 0.5, pattern, mask) for mask in MASKS)
    yield from _each("array", plane, "f4", 1, True, 1, [*PATTERNS])
    for mask in ("first", "odd", "leaders"):
        yield Case("array", plane, "f4", 1, True, 1, "8x4", mask)
    for element in ("u1", "u2"):
        patterns = ["row", "row4", "column", "8x4", "row8", "4x8"]
        yield from _each("array", plane, element, 1, False, 0.5, patterns)
    yield from _each("array", plane, "f4", 4, False, 0.5, ["row", "column", "8x4", "same", "row2"])
    yield from _each("array", plane, "f4", 4, True, 1, ["row", "8x4", "same"])
    yield from _each("array", plane, "u1", 4, False, 0.5, ["row", "column", "8x4"])
    patterns = ["row", "column", "8x4", "quads", "random"]
    yield from _each("pitch", plane, "f4", 1, False, 0.5, patterns)
    yield from _each("pitch", plane, "f4", 1, True, 1, ["row", "column", "8x4", "same"])
    space = (64, 64, 16)
    yield from _each("array", space, "f4", 1, False, 0.5, ["row", "column", "8x4", "same"])
    yield from _each("array", space, "f4", 1, True, 1, ["row", "column", "8x4", "same"])
    for pattern in ("row", "8x4"):
        yield Case("array", (64, 64), "f4", 1, False, 0.5, pattern, layers=4)


def _each(
    memory: str,
    extent: tuple[int, ...],
    element: str,
    channels: int,
    linear: bool,
    offset: float,
    patterns: Sequence[str],
) -> Iterator[Case]:
    for pattern in patterns:
        yield Case(memory, extent, element, channels, linear, offset, pattern)
