"""Filter and sample of one launch: which rows are kept, which blocks are run."""

from dataclasses import replace

from ....traces.schema import Kept, Sample
from ..launch.configuration import Dim3
from ..launch.kernel_facts import Known
from .block_sample import draw
from .wish import Wish


def choose_kept(wish: Wish, names: tuple[str, ...], number: int, grid: Dim3, known: Known) -> Kept:
    """Return what is kept of launch `number` of a kernel with these `names`."""
    by_number = any(first <= number <= last for first, last in wish.launches)
    named = not wish.kernels or any(name in wish.kernels for name in names)
    if not named or not (by_number or not wish.launches):
        return Kept(rows=False, control=False)
    return Kept(
        control=wish.control,
        blocks=wish.blocks,
        warps=wish.warps,
        lines=wish.lines,
        spaces=wish.spaces,
        sample=choose_sample(wish, number, grid, known),
    )


def choose_sample(wish: Wish, number: int, grid: Dim3, known: Known) -> Sample:
    """Draw the blocks of launch `number`, if a sample is wished, and see which must be run."""
    count = wish.sample.of(grid[0] * grid[1] * grid[2])
    sample = draw(grid, count, wish.seed, number) if count else Sample()
    return replace(sample, all_ran=known.dependence) if sample.blocks else sample


def count_executed(wish: Wish, grid: Dim3, known: Known) -> int:
    """Return how many blocks of a grid would be run."""
    sample = choose_sample(wish, 0, grid, known)
    return 0 if sample.all_ran else len(sample.blocks)
