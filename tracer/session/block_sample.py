"""Sample the blocks of a grid: evenly spread ones from its inside, and one from each of its ends.

Blocks at the ends of a grid often do more or less work than others: they skip elements beyond the
data, or read a border. So the sample takes one block of each corner and, for a grid long in several
dimensions, of each side. The inside is split into equal stretches, and one random block is drawn
from each. `choose_kept` combines the sample with the session's other filters.

    E s s s s E      E: a corner, s: a side, one block of each
    s i i i i s      i: the inside, a random block per stretch
    E s s s s E
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
"""Minimum extent from which the two ends of one of several dimensions are a small part."""

ENOUGH = 20
"""Blocks from the inside of a grid that suffice to estimate how blocks differ."""

Stretch: TypeAlias = tuple[int, int]
"""First block of a range and its length."""


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
        """Return the linear grid index of block `number`, x first."""
        quotient, x = divmod(number, self.x[1])
        z, y = divmod(quotient, self.y[1])
        row = (self.z[0] + z) * self.height + self.y[0] + y
        return row * self.width + self.x[0] + x


@lru_cache(maxsize=64)
def draw(grid: tuple[int, int, int], count: int, seed: int, launch: int) -> Sample:
    """Draw `count` blocks of a grid including its ends; an empty sample means all blocks.

    At least ENOUGH blocks (or `count` if less) come from the inside, the ends in addition. The same
    `seed` and launch number draw the same blocks on every machine.
    """
    dice = _throw(seed, launch)
    inside, *ends = _cut(grid)
    count = max(count - len(ends), min(count, ENOUGH))
    if count >= len(inside):
        return Sample()
    borders = [number * len(inside) // count for number in range(count + 1)]
    drawn = {inside.block(a + next(dice) % (b - a)): b - a for a, b in pairwise(borders)}
    outside = {box.block(next(dice) % len(box)): len(box) for box in ends}
    # A block's weight is the number of blocks it represents: those of its stretch or end.
    weights = dict(sorted((drawn | outside).items()))
    return Sample(tuple(weights), tuple(weights.values()), tuple(sorted(outside)), seed)


def _cut(grid: tuple[int, int, int]) -> list[_Box]:
    """Split a grid into its inside, which comes first, and its ends."""
    several = sum(extent > 1 for extent in grid) > 1
    stretches = [_stretches(extent, several) for extent in grid]
    return [_Box(*grid[:2], *spans) for spans in product(*stretches)]


def _stretches(extent: int, several: bool) -> list[Stretch]:
    """Split a dimension into inside, first and last block, if it is long enough."""
    if extent < (LONG if several else 3):
        return [(0, extent)]
    return [(1, extent - 2), (0, 1), (extent - 1, 1)]


def _throw(seed: int, launch: int) -> Iterator[int]:
    """Yield 64-bit random numbers, the same on every machine."""
    for count in range(1 << 62):
        text = f"{seed} {launch} {count}".encode()
        yield int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def choose_kept(
    row_filter: Filter, names: tuple[str, ...], number: int, grid: Dim3, kernel_facts: LinkedKernel
) -> Kept:
    """Return the recorded part of launch `number` of a kernel with these `names`."""
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
    """Draw the blocks of launch `number` if a sample is requested; note whether all must run."""
    count = row_filter.sample.of(grid[0] * grid[1] * grid[2])
    sample = draw(grid, count, row_filter.seed, number) if count else Sample()
    return replace(sample, all_ran=kernel_facts.dependence) if sample.blocks else sample


def count_executed(row_filter: Filter, grid: Dim3, kernel_facts: LinkedKernel) -> int:
    """Return how many blocks of a grid would run."""
    sample = choose_sample(row_filter, 0, grid, kernel_facts)
    return 0 if sample.all_ran else len(sample.blocks)
