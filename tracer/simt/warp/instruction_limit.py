"""The instruction limit of a warp: an endless loop becomes a fault that names its source line."""

from collections import deque

from ....base.errors import KernelFault
from ....traces.out_of_bounds import coordinates
from ...ptx.kernel import Kernel
from ...ptx.lines import source_line
from .program import Group, Step, Wave

SLICE = 1 << 22
"""Instructions of warps after which the scheduler returns, at most a second: Python handles Ctrl-C
and alarms only then."""


def instructions_left(wave: Wave, block: int) -> int:
    """Return how many instructions the warp that ran most may still run; raise KernelFault if it
    ran more than the limit, now in basic block `block`.
    """
    program = wave.program
    limit = program.launch.options.max_instructions
    left = limit - int(wave.step.max())
    if left >= 0:
        return left
    index = int(wave.step.argmax())
    owner = coordinates(int(wave.numbers[wave.block_of_warp[index]]), program.launch.grid)
    raise KernelFault(
        f"{loop_line(program.kernel, block)}: kernel `{program.name}` does not end: warp"
        f" {index % wave.warps_a_block} of block {owner} ran {limit} instructions and"
        " goes on here; if it is to run so long, record with a higher --max-instructions, or"
        " Session(max_instructions=...)",
        "endless",
    )


def never_ends(kernel: Kernel, block: int) -> Step:
    """Return a step that faults at a basic block of a loop without exit."""

    def stop(group: Group) -> None:
        wave = group.wave
        program, index = wave.program, int(group.warps[0])
        owner = coordinates(int(wave.numbers[wave.block_of_warp[index]]), program.launch.grid)
        raise KernelFault(
            f"{loop_line(kernel, block)}: kernel `{program.name}` does not end: nothing leaves the "
            f"loop in which warp {index % wave.warps_a_block} of block {owner} is",
            "endless",
        )

    return stop


def loop_line(kernel: Kernel, block: int) -> str:
    """Return the source line of the branch that closes the innermost loop around a basic block.

    A block in no loop, in a function that a loop calls, gives its own line.
    """
    cycle = _shortest_cycle(kernel, block)
    head = min(range(len(cycle)), key=lambda place: kernel.blocks[cycle[place]].rank)
    return source_line(kernel, kernel.blocks[cycle[head - 1]].last - 1)


def _shortest_cycle(kernel: Kernel, block: int) -> list[int]:
    """Return the blocks of the shortest cycle through a block; the block alone if there is none."""
    came_from: dict[int, int] = {}
    waiting = deque([block])
    while waiting:
        here = waiting.popleft()
        for after in kernel.blocks[here].successors:
            if after == block:
                cycle = [here]
                while cycle[-1] != block:
                    cycle.append(came_from[cycle[-1]])
                return cycle[::-1]
            if after not in came_from and after < len(kernel.blocks):
                came_from[after] = here
                waiting.append(after)
    return [block]
