"""Directed graphs of integers: a mapping from each node to its successors, all of them keys.

networkx has all of these algorithms, but takes a tenth of a second to import: as long as a small
kernel takes from source to trace.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Set
from heapq import heapify, heappop, heappush
from typing import TypeAlias, TypeVar

Graph: TypeAlias = Mapping[int, Collection[int]]


def reachable(graph: Graph, start: int) -> set[int]:
    """Return the nodes reachable from `start`, including itself."""
    reached, pending = {start}, [start]
    while pending:
        fresh = set(graph[pending.pop()]) - reached
        reached |= fresh
        pending += fresh
    return reached


def reverse(graph: Graph) -> dict[int, list[int]]:
    """Return the graph with all edges reversed."""
    turned: dict[int, list[int]] = {node: [] for node in graph}
    for node, after in graph.items():
        for other in after:
            turned[other].append(node)
    return turned


def subgraph(graph: Graph, nodes: Collection[int]) -> dict[int, list[int]]:
    """Return the subgraph induced by `nodes`."""
    return {node: [other for other in graph[node] if other in nodes] for node in nodes}


def post_order(graph: Graph, start: int, visits: set[int]) -> Iterator[int]:
    """Yield the unvisited nodes reachable from `start` in post-order: after their successors."""
    visits.add(start)
    stack = [(start, iter(graph[start]))]
    while stack:
        node, successors = stack[-1]
        further = next((other for other in successors if other not in visits), None)
        if further is None:
            stack.pop()
            yield node
        else:
            visits.add(further)
            stack.append((further, iter(graph[further])))


def strong_components(graph: Graph) -> list[set[int]]:
    """Return the strongly connected components, including single nodes.

    Kosaraju's algorithm: the nodes that can reach the last node of a post-order form one component.
    """
    visits: set[int] = set()
    order = [n for root in graph if root not in visits for n in post_order(graph, root, visits)]
    turned, members = reverse(graph), set[int]()
    return [set(post_order(turned, n, members)) for n in reversed(order) if n not in members]


def cycles(graph: Graph) -> Iterator[set[int]]:
    """Yield the strongly connected components that have a cycle, possibly a self-loop."""
    for part in strong_components(graph):
        first = next(iter(part))
        if len(part) > 1 or first in graph[first]:
            yield part


def immediate_dominators(graph: Graph, start: int) -> dict[int, int]:
    """Return the immediate dominator of each node reachable from `start`.

    Cooper, Harvey and Kennedy: "A simple, fast dominance algorithm" (2001). `start` is its own
    immediate dominator.
    """
    order = list(post_order(graph, start, set()))
    place = {node: number for number, node in enumerate(order)}
    before = reverse(graph)
    idoms = {start: start}

    def meet(a: int, b: int) -> int:
        while a != b:
            while place[a] < place[b]:
                a = idoms[a]
            while place[b] < place[a]:
                b = idoms[b]
        return a

    changes = True
    while changes:
        changes = False
        for node in reversed(order[:-1]):
            predecessors = [other for other in before[node] if other in idoms]
            joint = predecessors[0]
            for other in predecessors[1:]:
                joint = meet(joint, other)
            changes |= idoms.get(node) != joint
            idoms[node] = joint
    return idoms


def order_components(graph: Graph) -> list[set[int]]:
    """Return the strongly connected components topologically; ties go by the smallest node."""
    parts = {min(part): part for part in strong_components(graph)}
    home = {node: name for name, part in parts.items() for node in part}
    after = {
        name: {home[o] for n in part for o in graph[n]} - {name} for name, part in parts.items()
    }
    in_degrees = {name: len(before) for name, before in reverse(after).items()}
    ready = [name for name, count in in_degrees.items() if not count]
    heapify(ready)
    order = []
    while ready:
        name = heappop(ready)
        order.append(parts[name])
        for other in after[name]:
            in_degrees[other] -= 1
            if not in_degrees[other]:
                heappush(ready, other)
    return order


Value = TypeVar("Value", bound=Hashable)


def spread(steps: Iterable[tuple[Iterable[Value], Iterable[Value], bool]]) -> Set[Value]:
    """Return the values that have a property, or are computed from values that have it.

    A step is one instruction: the values it writes, the values it reads, and whether the property
    originates there.
    """
    step_sets = [(set(written), set(read), begins) for written, read, begins in steps]
    values: set[Value] = set()
    before = -1
    while len(values) > before:
        before = len(values)
        for written, read, begins in step_sets:
            if begins or not values.isdisjoint(read):
                values |= written
    return values
