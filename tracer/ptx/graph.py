"""Control flow inside one function: where diverged lanes meet again, and in which order to run.

A graph is a networkx DiGraph of block numbers; the function's virtual exit is one more node.
"""

from collections.abc import Mapping, Sequence

import networkx as nx

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
    graph = _graph(successors)
    graph.add_node(exit_)
    graph.add_edges_from((block, exit_) for block in leaving)
    _join_endless(graph, successors, exit_)
    joins = nx.immediate_dominators(graph.reverse(copy=False), exit_)
    return {block: joins.get(block, exit_) for block in successors}


def _graph(successors: Mapping[int, Sequence[int]]) -> "nx.DiGraph[int]":
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(successors)
    graph.add_edges_from((block, after) for block in successors for after in successors[block])
    return graph


def _join_endless(
    graph: "nx.DiGraph[int]", successors: Mapping[int, Sequence[int]], exit_: int
) -> None:
    """Join each innermost loop that nothing but a trap leaves to the exit, at its last block."""
    reaching = nx.ancestors(graph, exit_) | {exit_}
    parts = nx.condensation(graph.subgraph(set(graph) - reaching))
    loops = {
        part: blocks
        for part, blocks in parts.nodes(data="members")
        if len(blocks) > 1 or any(graph.has_edge(block, block) for block in blocks)
    }
    order = run_order(successors, min(successors)) if loops else []
    for part, blocks in loops.items():
        if not loops.keys() & nx.descendants(parts, part):
            graph.add_edge(max(blocks, key=order.index), exit_)


def run_order(successors: Mapping[int, Sequence[int]], entry: int) -> list[int]:
    """Return the blocks in reverse post-order with loops kept together.

    Every block comes before its successors, but for the edges back to the head of a loop; the
    blocks of a loop come before what follows it, so that lanes which left early wait for the
    others (of the many reverse post-orders, the one of Bourdoncle's weak topological order).
    Ties go by number, and blocks that cannot be reached come last. What is nested deeper than
    code is written (a tangle of jumps, then) is left in order of number.
    """
    graph = _graph(successors)
    reached = nx.descendants(graph, entry) | {entry}
    order: list[int] = []
    pending: list[tuple[int, set[int]]] = [(0, reached)]
    while pending:
        depth, blocks = pending.pop()
        if len(blocks) == 1 or depth > _DEEPEST:
            order += sorted(blocks)
        else:
            inner = _open_loops(graph, blocks, entry)
            pending += ((depth + 1, part) for part in reversed(inner))
    return order + sorted(block for block in successors if block not in reached)


def _open_loops(graph: "nx.DiGraph[int]", blocks: set[int], entry: int) -> list[set[int]]:
    """Put `blocks` in order, but of each loop among them only the head, before all its rest."""
    parts = nx.condensation(graph.subgraph(blocks).copy())
    members = nx.get_node_attributes(parts, "members")
    order: list[set[int]] = []
    for number in nx.lexicographical_topological_sort(parts, key=lambda n: min(members[n])):
        loop = members[number]
        head = min(loop, key=lambda block: (not _is_entered(graph, block, loop, entry), block))
        order += [{head}, loop - {head}] if len(loop) > 1 else [loop]
    return order


def _is_entered(graph: "nx.DiGraph[int]", block: int, loop: set[int], entry: int) -> bool:
    """Whether control can come to `block` from outside of `loop`."""
    return block == entry or any(before not in loop for before in graph.predecessors(block))
