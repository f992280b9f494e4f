"""Filter and sample of one launch: which rows are kept, which blocks are run."""

from dataclasses import replace

from ....traces.schema import Kept, Sample
from ..launch.configuration import Dim3
from ..launch.kernel_facts import Known
from .block_sample import draw
from .filter import Filter


def choose_kept(
    chosen: Filter, names: tuple[str, ...], number: int, grid: Dim3, known: Known
) -> Kept:
    """Return what is kept of launch `number` of a kernel with these `names`."""
    by_number = any(first <= number <= last for first, last in chosen.launches)
    named = not chosen.kernels or any(name in chosen.kernels for name in names)
    if not named or not (by_number or not chosen.launches):
        return Kept(rows=False, control=False)
    return Kept(
        control=chosen.control,
        blocks=chosen.blocks,
        warps=chosen.warps,
        lines=chosen.lines,
        spaces=chosen.spaces,
        sample=choose_sample(chosen, number, grid, known),
    )


def choose_sample(chosen: Filter, number: int, grid: Dim3, known: Known) -> Sample:
    """Draw the blocks of launch `number`, if a sample is asked for, and see which must be run."""
    count = chosen.sample.of(grid[0] * grid[1] * grid[2])
    sample = draw(grid, count, chosen.seed, number) if count else Sample()
    return replace(sample, all_ran=known.dependence) if sample.blocks else sample


def count_executed(chosen: Filter, grid: Dim3, known: Known) -> int:
    """Return how many blocks of a grid would be run."""
    sample = choose_sample(chosen, 0, grid, known)
    return 0 if sample.all_ran else len(sample.blocks)
