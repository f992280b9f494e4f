"""Warps written by hand: `warp(stride=4)`, `warp(addresses=[...])`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LANES = 32
FULL = 0xFFFFFFFF
BASE = 0x1000_0000


@dataclass(frozen=True)
class Warp:
    """The addresses of one warp access; None where a lane is inactive."""

    addresses: tuple[int | None, ...]

    @property
    def active(self) -> int:
        """Bit i is set if lane i accesses."""
        return sum(1 << lane for lane, place in enumerate(self.addresses) if place is not None)

    @property
    def base(self) -> int:
        """The address of the lowest active lane."""
        return next(place for place in self.addresses if place is not None)

    @property
    def offsets(self) -> npt.NDArray[np.int32]:
        """(32,) int32, bytes from the base, 0 for inactive lanes."""
        base = self.base
        return np.array([0 if a is None else a - base for a in self.addresses], np.int32)


def warp(
    *,
    addresses: Sequence[int | None] | None = None,
    stride: int = 4,
    base: int = BASE,
    lanes: Iterable[int] = range(LANES),
) -> Warp:
    """A warp whose lane i is at `base + stride * i`, or at `addresses[i]`; others are inactive."""
    if addresses is None:
        addresses = [base + stride * lane for lane in range(LANES)]
    on = set(lanes)
    padded = [*addresses, *[None] * (LANES - len(addresses))]
    return Warp(tuple(a if lane in on else None for lane, a in enumerate(padded)))
