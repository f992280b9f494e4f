"""Diagrams: a graph without circles as text, from left to right, in plain box characters.

A node stands in the row of the first of those that feed it, one column to the right of the last
of them; its detail (a size, say) stands below its name. A node that feeds several is drawn with
all that feeds it once, and by its name alone from then on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from ...lazy_dataclass import dataclass

GAP = 4
"""Columns of text between two columns of nodes: `-+- `."""


@dataclass(frozen=True, slots=True)
class Box:
    """A name on the page: `row` and `column` count nodes; `inputs` are what its lines come from."""

    name: str
    row: int
    column: int
    inputs: tuple["Box", ...] = ()


def draw(graph: Any, details: Mapping[str, str]) -> list[str]:
    """Draw a networkx DiGraph of names; edges are followed in the order in which they were added.

    A detail is of a name; a name without one needs a line less.
    """
    boxes = _place(graph)
    widths: dict[int, int] = {}
    for box in boxes:
        width = max(len(box.name), len(details.get(box.name, "")))
        widths[box.column] = max(width, widths.get(box.column, 0))
    left = {c: sum(widths.get(k, 0) + GAP for k in range(c)) for c in widths}
    top, below = {}, 0
    for row in range(1 + max((box.row for box in boxes), default=-1)):
        top[row] = below
        below += 1 + any(details.get(box.name) for box in boxes if box.row == row)
    page = _Page()
    for box in boxes:
        page.write(top[box.row], left[box.column], box.name)
        page.write(top[box.row] + 1, left[box.column], details.get(box.name, ""))
        page.join(
            [(top[one.row], left[one.column] + len(one.name)) for one in box.inputs],
            left[box.column],
        )
    return page.lines()


def _place(graph: Any) -> list[Box]:
    """Return every box, those that others come from first."""
    import networkx as nx

    column = {
        name: number
        for number, generation in enumerate(nx.topological_generations(graph))
        for name in generation
    }
    boxes: list[Box] = []
    rows = iter(range(len(graph) + graph.size()))
    ends = [name for name in graph if not graph.out_degree(name)]
    for name in sorted(ends, key=lambda end: -len(nx.ancestors(graph, end))):
        boxes += _place_tree(graph, name, column, rows, {box.name for box in boxes})
    return boxes


def _place_tree(
    graph: Any, name: str, column: Mapping[str, int], rows: Iterator[int], drawn: set[str]
) -> list[Box]:
    """Return the boxes of all that leads to a node, the node's own last."""
    sources = [] if name in drawn else list(graph.predecessors(name))
    drawn.add(name)
    trees = [_place_tree(graph, source, column, rows, drawn) for source in sources]
    inputs = tuple(tree[-1] for tree in trees)
    row = inputs[0].row if inputs else next(rows)
    return [*(box for tree in trees for box in tree), Box(name, row, column[name], inputs)]


@dataclass(slots=True)
class _Page:
    """Characters by line and column."""

    written: dict[int, dict[int, str]] = field(default_factory=dict)

    def write(self, line: int, column: int, text: str) -> None:
        """Put a text."""
        for offset, character in enumerate(text):
            self.written.setdefault(line, {})[column + offset] = character

    def join(self, ends: list[tuple[int, int]], left: int) -> None:
        """Lead lines from the `ends`, (line, column) in falling order, to a box at `left`."""
        if not ends:
            return
        bar, first, last = left - GAP + 1, ends[0][0], ends[-1][0]
        for line in range(first, last):
            self.write(line, bar, "│")
        for line, end in ends:
            start = end + (end < bar - 1)
            self.write(line, start, "─" * (bar - start))
            self.write(line, bar, "┤" if first < line < last else "┘" if line > first else "┬")
        if len(ends) == 1:
            self.write(first, bar, "─")
        self.write(first, bar + 1, "─")

    def lines(self) -> list[str]:
        """Return the page."""
        return [
            "".join(row.get(column, " ") for column in range(max(row) + 1)).rstrip()
            for number in range(1 + max(self.written, default=-1))
            for row in [self.written.get(number, {0: " "})]
        ]
