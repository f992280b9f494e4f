"""Control flow inside one function: where diverged lanes meet again, and in which order to run.

A graph is a mapping of block numbers; the function's virtual exit is one more node.
"""

from collections.abc import Iterator, Mapping, Sequence

from .digraph import (
    Graph,
    cycles,
    immediate_dominators,
    order_components,
    reachable,
    reverse,
    subgraph,
)

_DEEPEST = 20
"""Loops in loops in loops."""


def immediate_post_dominators(
    successors: Mapping[int, Sequence[int]], leaving: Sequence[int], exit_: int
) -> dict[int, int]:
    """Return for each block the one at which all ways from it to the end meet first.

    `successors` has every block of the function as a key, `leaving` are the blocks that end in an
    unguarded `ret` or `exit`, `exit_` is the number of the virtual exit. A block from which no way
    leads to the exit has no answer of its own: the last block of an endless loop is joined to the
    exit, and what leads to a trap only meets there too. Others do not see a trap: its lanes end the
    launch, so `if (bad) trap` must not keep the good lanes from meeting.
    """
    graph = {block: list(after) for block, after in successors.items()} | {exit_: []}
    for block in leaving:
        graph[block].append(exit_)
    for block in list(_ends_of_endless(graph, exit_)):
        graph[block].append(exit_)
    joins = immediate_dominators(reverse(graph), exit_)
    return {block: joins.get(block, exit_) for block in successors}


def _ends_of_endless(graph: Graph, exit_: int) -> Iterator[int]:
    """Yield the last block of each innermost loop that nothing but a trap leaves."""
    stuck = subgraph(graph, set(graph) - reachable(reverse(graph), exit_))
    loops = list(cycles(stuck))
    order = run_order(graph, min(graph)) if loops else []
    for blocks in loops:
        further = reachable(stuck, min(blocks)) - blocks
        if not any(further & other for other in loops):
            yield max(blocks, key=order.index)


def run_order(graph: Graph, entry: int) -> list[int]:
    """Return the blocks in reverse post-order with loops kept together.

    Every block comes before its successors, but for the edges back to the head of a loop; the
    blocks of a loop come before what follows it, so that lanes which left early wait for the
    others (of the many reverse post-orders, the one of Bourdoncle's weak topological order).
    Ties go by number, and blocks that cannot be reached come last. What is nested deeper than
    code is written (a tangle of jumps, then) is left in order of number.
    """
    reached, before = reachable(graph, entry), reverse(graph)
    order: list[int] = []
    pending: list[tuple[int, set[int]]] = [(0, reached)]
    while pending:
        depth, blocks = pending.pop()
        if len(blocks) == 1 or depth > _DEEPEST:
            order += sorted(blocks)
        else:
            inner = _open_loops(graph, before, blocks, entry)
            pending += ((depth + 1, part) for part in reversed(inner))
    return order + sorted(block for block in graph if block not in reached)


def _open_loops(graph: Graph, before: Graph, blocks: set[int], entry: int) -> list[set[int]]:
    """Put `blocks` in order, but of each loop among them only the head, before all its rest."""
    order: list[set[int]] = []
    for loop in order_components(subgraph(graph, blocks)):
        entered = {n for n in loop if n == entry or any(b not in loop for b in before[n])}
        head = min(entered or loop)
        order += [{head}, loop - {head}] if len(loop) > 1 else [loop]
    return order
