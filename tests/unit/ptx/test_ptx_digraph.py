"""What control flow asks of graphs, against networkx on graphs drawn at random."""

import random

import networkx as nx
import pytest

from cutrace.tracer.ptx.digraph import (
    cycles,
    immediate_dominators,
    order_components,
    reachable,
    strong_components,
    subgraph,
)


def draw(seed: int) -> tuple[dict[int, list[int]], "nx.DiGraph[int]"]:
    """A graph as a mapping, with edges twice and to itself, and as networkx has it."""
    drawn = random.Random(seed)
    nodes = drawn.randrange(1, 14)
    graph = {n: drawn.choices(range(nodes), k=drawn.randrange(4)) for n in range(nodes)}
    return graph, nx.DiGraph(graph)


@pytest.mark.parametrize("seed", range(60))
def test_graphs_are_read_as_networkx_reads_them(seed: int) -> None:
    graph, other = draw(seed)
    assert reachable(graph, 0) == nx.descendants(other, 0) | {0}
    parts = set(map(frozenset, nx.strongly_connected_components(other)))
    assert set(map(frozenset, strong_components(graph))) == parts
    circles = {n for n in graph if any(n in nx.descendants(other, o) | {o} for o in graph[n])}
    assert set().union(*cycles(graph)) == circles
    found = nx.immediate_dominators(other, 0)
    assert immediate_dominators(graph, 0) == {**found, 0: 0}
    small = {n for n in graph if n % 3}
    assert nx.DiGraph(subgraph(graph, small)).edges == other.subgraph(small).edges


@pytest.mark.parametrize("seed", range(60))
def test_components_come_before_what_they_lead_to_the_smallest_first(seed: int) -> None:
    graph, other = draw(seed)
    parts = nx.condensation(other)
    members = nx.get_node_attributes(parts, "members")
    wanted = nx.lexicographical_topological_sort(parts, key=lambda part: min(members[part]))
    assert order_components(graph) == [members[part] for part in wanted]
