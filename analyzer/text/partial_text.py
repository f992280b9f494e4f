"""Notes on a launch that was recorded in part."""

from collections.abc import Iterator, Sequence

from ...traces.schema import Kept, Launch, Range


def kept_text(launch: Launch) -> Iterator[str]:
    """Say what the trace has of a launch, a sentence a restriction; nothing if it has all."""
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
    kept = launch.kept
    if not kept.rows:
        yield "not recorded: the launch was run, but left out of the trace"
        return
    yield from _sample_text(kept, launch.blocks)
    if kept.blocks:
        yield f"recorded and counted: blocks {_ranges(kept.blocks)} of {launch.blocks} alone"
    if kept.warps:
        yield f"recorded and counted: warps {_ranges(kept.warps)} of {launch.warps} a block alone"
    if kept.lines:
        yield f"recorded: accesses of lines {', '.join(kept.lines)} alone"
    if kept.spaces:
        names = (space.name.lower() for space in kept.spaces)
        yield f"recorded: accesses to {', '.join(names)} memory alone"
    if not kept.control:
        yield "not recorded: which instructions the warps ran"


def _sample_text(kept: Kept, blocks: int) -> Iterator[str]:
    drawn = len(kept.sample.blocks)
    if not drawn:
        return
    yield (
        f"estimated from {drawn} of {blocks} blocks (seed {kept.sample.seed}): 95 %"
        " confidence intervals in brackets"
    )
    if kept.sample.all_ran:
        yield f"all blocks were run, for they depend on one another: {kept.sample.all_ran}"
    else:
        yield f"the other {blocks - drawn} blocks were not run, and what they write is missing"


def _ranges(ranges: Sequence[Range]) -> str:
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
