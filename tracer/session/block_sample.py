"""Drawing blocks of a grid: some from its inside, evenly spread, and one from each of its ends.

Blocks at the ends of a grid often do less than others, or more: what lies beyond the data is left
out there, or a border is read. So each corner is taken, and where a grid is long in several
dimensions a block of each side; only the inside is drawn from at random, a block from each of as
many equal stretches.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise, product
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...traces.schema import Kept, Sample
from .configuration import Dim3
from .filter import Filter
from .kernel_facts import LinkedKernel

LONG = 32
"""Blocks from which on the two ends of one dimension of several are a small part of the grid."""

ENOUGH = 20
"""Blocks from the inside of a grid by which it can be told how blocks differ."""

Stretch: TypeAlias = tuple[int, int]
"""The first of some blocks in a row, and how many there are."""


@dataclass(frozen=True, slots=True)
class _Box:
    """Blocks of a grid of `width` by `height`: first and number of them in x, y and z."""

    width: int
    height: int
    x: Stretch
    y: Stretch
    z: Stretch

    def __len__(self) -> int:
        """Return the number of blocks."""
        return self.x[1] * self.y[1] * self.z[1]

    def block(self, number: int) -> int:
        """Return the linear index in the grid of one of them, x first."""
        quotient, x = divmod(number, self.x[1])
        z, y = divmod(quotient, self.y[1])
        row = (self.z[0] + z) * self.height + self.y[0] + y
        return row * self.width + self.x[0] + x


@lru_cache(maxsize=64)
def draw(grid: tuple[int, int, int], count: int, seed: int, launch: int) -> Sample:
    """Draw `count` blocks of a grid, its ends among them; an empty sample if that is all of it.

    At least ENOUGH come from the inside, or `count` if that is less, and the ends besides. The
    same `seed` and number of the launch draw the same blocks on every machine.
    """
    dice = _throw(seed, launch)
    inside, *ends = _cut(grid)
    count = max(count - len(ends), min(count, ENOUGH))
    if count >= len(inside):
        return Sample()
    borders = [number * len(inside) // count for number in range(count + 1)]
    drawn = {inside.block(a + next(dice) % (b - a)): b - a for a, b in pairwise(borders)}
    outside = {box.block(next(dice) % len(box)): len(box) for box in ends}
    weights = dict(sorted((drawn | outside).items()))
    return Sample(tuple(weights), tuple(weights.values()), tuple(sorted(outside)), seed)


def _cut(grid: tuple[int, int, int]) -> list[_Box]:
    """Cut a grid into its inside, first, and what lies at its ends."""
    several = sum(extent > 1 for extent in grid) > 1
    stretches = [_stretches(extent, several) for extent in grid]
    return [_Box(*grid[:2], *spans) for spans in product(*stretches)]


def _stretches(extent: int, several: bool) -> list[Stretch]:
    """Cut a dimension into its inside, its first and its last block, where it has ends."""
    if extent < (LONG if several else 3):
        return [(0, extent)]
    return [(1, extent - 2), (0, 1), (extent - 1, 1)]


def _throw(seed: int, launch: int) -> Iterator[int]:
    """Yield random numbers of 64 bits, the same on every machine."""
    for count in range(1 << 62):
        text = f"{seed} {launch} {count}".encode()
        yield int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def choose_kept(
    row_filter: Filter, names: tuple[str, ...], number: int, grid: Dim3, kernel_facts: LinkedKernel
) -> Kept:
    """Return what is kept of launch `number` of a kernel with these `names`."""
    by_number = any(first <= number <= last for first, last in row_filter.launches)
    named = not row_filter.kernels or any(name in row_filter.kernels for name in names)
    if not named or not (by_number or not row_filter.launches):
        return Kept(rows=False, control=False)
    return Kept(
        control=row_filter.control,
        blocks=row_filter.blocks,
        warps=row_filter.warps,
        lines=row_filter.lines,
        spaces=row_filter.spaces,
        sample=choose_sample(row_filter, number, grid, kernel_facts),
    )


def choose_sample(
    row_filter: Filter, number: int, grid: Dim3, kernel_facts: LinkedKernel
) -> Sample:
    """Draw the blocks of launch `number`, if a sample is asked for, and see which must be run."""
    count = row_filter.sample.of(grid[0] * grid[1] * grid[2])
    sample = draw(grid, count, row_filter.seed, number) if count else Sample()
    return replace(sample, all_ran=kernel_facts.dependence) if sample.blocks else sample


def count_executed(row_filter: Filter, grid: Dim3, kernel_facts: LinkedKernel) -> int:
    """Return how many blocks of a grid would be run."""
    sample = choose_sample(row_filter, 0, grid, kernel_facts)
    return 0 if sample.all_ran else len(sample.blocks)
