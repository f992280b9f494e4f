import numpy as np
from numpy.typing import NDArray
from program import Program

NODES = 700


def levels_of(first: NDArray[np.int32], edges: NDArray[np.int32]) -> NDArray[np.int32]:
    levels = np.full(NODES, -1, np.int32)
    levels[0], level, frontier = 0, 0, [0]
    while frontier:
        level += 1
        reached = np.concatenate([edges[first[n] : first[n + 1]] for n in frontier])
        frontier = [int(n) for n in np.unique(reached) if levels[n] < 0]
        levels[frontier] = level
    return levels


def run(program: Program) -> None:
    degrees = program.integers(0, 5, NODES)
    first = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32)
    edges = program.integers(0, NODES, int(first[-1]))
    levels = program.to_device(np.where(np.arange(NODES) == 0, 0, -1).astype(np.int32))
    queue, other = program.zeros(NODES, np.int32), program.zeros(NODES, np.int32)
    size = program.zeros(1, np.int32)
    graph = program.to_device(first), program.to_device(edges)
    held, level = 1, 0
    while held:
        level += 1
        size.fill(0)
        program.launch("expand", 3, 64, levels, other, size, queue, held, *graph, level)
        held = int(size.copy_to_host()[0])
        queue, other = other, queue
    program.same(levels, levels_of(first, edges))
