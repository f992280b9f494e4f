"""The instruction limit of a warp: an endless loop becomes a fault that names its source line."""

from collections import deque

from ....base.errors import KernelFault
from ....traces.out_of_bounds import coordinates
from .control_flow import ControlFlow
from .program import Group, Program, Step, Wave

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
        f"{loop_line(program, wave.flow, block)}: kernel `{program.name}` does not end: warp"
        f" {index % wave.warps_a_block} of block {owner} ran {limit} instructions and"
        " goes on here; if it is to run so long, record with a higher --max-instructions, or"
        " Session(max_instructions=...)",
        "endless",
    )


def never_ends(block: int) -> Step:
    """Return a step that faults at a basic block of a loop without exit."""

    def stop(group: Group) -> None:
        wave = group.wave
        program, index = wave.program, int(group.warps[0])
        owner = coordinates(int(wave.numbers[wave.block_of_warp[index]]), program.launch.grid)
        raise KernelFault(
            f"{loop_line(program, wave.flow, block)}: kernel `{program.name}` does not end: "
            f"nothing leaves the loop in which warp {index % wave.warps_a_block} of block {owner} "
            "is",
            "endless",
        )

    return stop


def loop_line(program: Program, flow: ControlFlow, block: int) -> str:
    """Return the source line of the branch that closes the innermost loop around a basic block.

    A block in no loop, in a function that a loop calls, gives its own line.
    """
    cycle = _shortest_cycle(flow, block)
    head = min(range(len(cycle)), key=lambda place: flow.blocks[cycle[place]].rank)
    return program.source_line(flow.blocks[cycle[head - 1]].last)


def _shortest_cycle(flow: ControlFlow, block: int) -> list[int]:
    """Return the blocks of the shortest cycle through a block; the block alone if there is none."""
    came_from: dict[int, int] = {}
    waiting = deque([block])
    while waiting:
        here = waiting.popleft()
        for after in flow.blocks[here].successors:
            if after == block:
                cycle = [here]
                while cycle[-1] != block:
                    cycle.append(came_from[cycle[-1]])
                return cycle[::-1]
            if after not in came_from and after < len(flow.blocks):
                came_from[after] = here
                waiting.append(after)
    return [block]
