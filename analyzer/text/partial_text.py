"""Notes on a launch that was only partly recorded."""

from collections.abc import Iterator, Sequence

from ...traces.schema import Kept, Launch, Range


def kept_text(launch: Launch) -> Iterator[str]:
    """Yield a sentence per restriction on what was recorded of a launch; none if it is complete."""
    if launch.partly_written:
        yield (
            f"{', '.join(launch.partly_written)}: earlier, only a sample of blocks wrote here:"
            " code that depends on these values may run differently in a whole run"
        )
    if launch.kept.is_whole:
        return
    yield from _restrictions(launch)
    if launch.kept.rows and not launch.kept.has_accesses:
        yield "what caches hold follows from all accesses: their counters are empty"


def _restrictions(launch: Launch) -> Iterator[str]:
    coverage = launch.kept
    if not coverage.rows:
        yield "not recorded: the launch was run, but left out of the trace"
        return
    yield from _sample_text(coverage, launch.blocks)
    if coverage.blocks:
        yield f"recorded and counted: blocks {_ranges(coverage.blocks)} of {launch.blocks} alone"
    if coverage.warps:
        yield (
            f"recorded and counted: warps {_ranges(coverage.warps)} of {launch.warps} a block alone"
        )
    if coverage.lines:
        yield f"recorded: accesses of lines {', '.join(coverage.lines)} alone"
    if coverage.spaces:
        names = (space.name.lower() for space in coverage.spaces)
        yield f"recorded: accesses to {', '.join(names)} memory alone"
    if not coverage.control:
        yield "not recorded: which instructions the warps ran"


def _sample_text(coverage: Kept, blocks: int) -> Iterator[str]:
    drawn = len(coverage.sample.blocks)
    if not drawn:
        return
    yield (
        f"estimated from {drawn} of {blocks} blocks (seed {coverage.sample.seed}): 95 %"
        " confidence intervals in brackets"
    )
    if coverage.sample.all_ran:
        yield f"all blocks were run, for they depend on one another: {coverage.sample.all_ran}"
    else:
        yield f"the other {blocks - drawn} blocks were not run, and what they write is missing"


def _ranges(ranges: Sequence[Range]) -> str:
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
