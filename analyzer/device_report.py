"""Describe a device as text: its chip, its limits, and a diagram of its stages.

`list_devices` and `describe_device` print the device file; `draw` renders the graph of state spaces
and stages with ASCII lines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from textwrap import wrap
from typing import Any

from ..base.dataclass import dataclass
from ..models.replay.device.device import Device
from ..models.replay.device.wiring import Stage
from ..models.replay.interface.model import ACCESSES
from .report.document import Row, Table
from .report.document import row as texts

WIDTH = 100
"""Width in columns if there is no terminal."""
UNITS = ("bytes", "KB", "MB", "GB")
SCOPES = {"sm": "one an SM", "cluster": "one a cluster", "gpc": "one a GPC", "gpu": "one"}
NO_BREAK = "\xa0"
MEANINGS = {
    "carveout_fallback": "which size of shared memory is taken where a block does not fit",
    "carveout_roomy": "up to how many bytes the driver takes a larger one than it must; 0: never",
    "idc": "the constant cache of an SM",
    "l15": "the constant cache of level 1.5, behind that of an SM",
    "lrc": "reads once what several SMs read at the same time, before L2",
    "pair_merge": "pairs of lanes that load 8 or 16 bytes from one address count as one lane",
    "wavers": "the line that makes room may be the second oldest",
    "on_the_way": "cycles until a store has reached the next level, at least and at most",
    "merged_lines": "lines stored within which a store to a sector leaves with an earlier one",
    "dirty_bytes": "the most that may wait to be written",
    "partial_bytes": "the same, of lines that are stored in part",
    "masks": "memory writes single bytes: what is stored in part is not fetched first",
    "fetch": "bytes that a miss fetches together",
    "merge_lanes": "lanes of 4, 8 and 16 bytes whose transactions are joined",
    "store_lanes": "the same of stores",
    "request_lanes": "lanes of 4, 8 and 16 bytes that are served at a time",
}
"""Explanations of cryptic keys and stages."""
LIST_HEAD = ("name", "maker's name", "cc", "SMs", "GB/s")


def list_devices(devices: Sequence[Device]) -> Table:
    """Return a row per device."""
    corner, *columns = LIST_HEAD
    return Table(tuple(columns), tuple(map(_row, devices)), corner=corner, numbers=False)


def _row(device: Device) -> Row:
    sms, bandwidth = device.chip.sms, device.chip.memory_gb_per_s
    return texts(device.key, device.name, _capability(device), sms, f"{bandwidth:g}")


def _capability(device: Device) -> str:
    return "{}.{}".format(*device.capability)


def describe_device(device: Device, files: Sequence[str], width: int | None) -> list[str]:
    """Return the full description of a device; `files` are its own and those that it is based
    on."""
    columns = width or WIDTH
    return [
        f"{device.name}, compute capability {_capability(device)}",
        *wrap(f"file: {', on '.join(files)}", columns, subsequent_indent="  "),
        *_table("chip", device.chip, columns),
        *_table("limits", device.limits, columns),
        *_table("rates", device.rates, columns),
        "",
        *draw(wiring(device), dict(_sizes(device))),
        *(line for stage in device.stages for line in _stage(stage, columns)),
        "",
        *_meanings(device, columns),
    ]


def _meanings(device: Device, columns: int) -> Iterator[str]:
    """Yield explanations of cryptic keys and stages."""
    stages = {name for stage in device.stages for name in (stage.name, *stage.keys)}
    limits = {field.name for field in fields(device.limits)}
    for name, meaning in MEANINGS.items():
        if name in stages | limits:
            yield from wrap(f"{name}: {meaning}", columns, subsequent_indent="  ")


def wiring(device: Device) -> Any:
    """Return the state spaces and stages of a device as a networkx DiGraph."""
    import networkx as nx

    graph = nx.DiGraph()
    fed = {source for stage in device.stages for source in stage.sources}
    graph.add_nodes_from(space for space in ACCESSES if space in fed)
    graph.add_edges_from((source, s.name) for s in device.stages for source in s.sources)
    return graph


def _sizes(device: Device) -> Iterator[tuple[str, str]]:
    """Yield the sizes of caches and memory, printed below their names."""
    for stage in device.stages:
        size = stage.keys.get("bytes")
        if stage.model == "cache" and isinstance(size, int):
            yield stage.name, _size(size)
        if stage.model == "memory" and device.chip.memory_bytes:
            yield stage.name, _size(device.chip.memory_bytes)


def _size(value: int) -> str:
    """Format a number of bytes in the largest unit that leaves few digits.

    >>> _size(65536), _size(1310720), _size(500)
    ('64 KB', '1.25 MB', '500 bytes')
    """
    power = min(len(UNITS) - 1, max(0, (value.bit_length() - 1) // 10))
    number = value / 1024**power
    return f"{number:.0f} {UNITS[power]}" if number >= 100 else f"{number:.4g} {UNITS[power]}"


def _table(name: str, values: Any, columns: int) -> Iterator[str]:
    """Yield the keys of a table, as `--set` names them."""
    yield ""
    yield f"[{name}]"
    keys = [field.name for field in fields(values)]
    size = max(map(len, keys)) + 2
    for key in keys:
        lines = wrap(_text(getattr(values, key)), columns - size)
        yield from (f"{head:{size}}{line}" for head, line in zip([key, ""], lines, strict=False))


def _stage(stage: Stage, columns: int) -> Iterator[str]:
    """Yield a stage: its model, its source, and its keys."""
    yield ""
    scope = SCOPES.get(stage.scope, f"one for {stage.scope} SMs")
    yield f"[{stage.name}] {stage.model}, {scope}, from {', '.join(stage.sources)}"
    keys = {**stage.keys, **({"beside_shared": True} if stage.beside_shared else {})}
    words = (f"{key} = {_text(value)}".replace(" ", NO_BREAK) for key, value in keys.items())
    lines = wrap(", ".join(words), columns, initial_indent="  ", subsequent_indent="  ")
    yield from (line.replace(NO_BREAK, " ") for line in lines)


def _text(value: object) -> str:
    """Format a value in TOML.

    >>> _text((1, 2)), _text(["a"]), _text(True)
    ('[1, 2]', '["a"]', 'true')
    """
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value}"


GAP = 4
"""Characters between two columns of nodes: `-+- `."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the drawing: `row` and `column` are grid positions; `inputs` are the sources of its
    edges.
    """

    name: str
    row: int
    column: int
    inputs: tuple["Box", ...] = ()


def draw(graph: Any, details: Mapping[str, str]) -> list[str]:
    """Draw a networkx DiGraph of names; edges are followed in insertion order.

    `details` maps a name to a second line; a name without one takes one line less.
    """
    boxes = _place(graph)
    widths: dict[int, int] = {}
    for box in boxes:
        width = max(len(box.name), len(details.get(box.name, "")))
        widths[box.column] = max(width, widths.get(box.column, 0))
    offsets = {c: sum(widths.get(k, 0) + GAP for k in range(c)) for c in widths}
    top, below = {}, 0
    for row in range(1 + max((box.row for box in boxes), default=-1)):
        top[row] = below
        below += 1 + any(details.get(box.name) for box in boxes if box.row == row)
    page = _Page()
    for box in boxes:
        page.write(top[box.row], offsets[box.column], box.name)
        page.write(top[box.row] + 1, offsets[box.column], details.get(box.name, ""))
        page.join(
            [(top[one.row], offsets[one.column] + len(one.name)) for one in box.inputs],
            offsets[box.column],
        )
    return page.lines()


def _place(graph: Any) -> list[Box]:
    """Return all boxes, sources of edges before their targets."""
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
    """Return the boxes of all ancestors of a node, the node's own last."""
    sources = [] if name in drawn else list(graph.predecessors(name))
    drawn.add(name)
    trees = [_place_tree(graph, source, column, rows, drawn) for source in sources]
    inputs = tuple(tree[-1] for tree in trees)
    row = inputs[0].row if inputs else next(rows)
    return [*(box for tree in trees for box in tree), Box(name, row, column[name], inputs)]


@dataclass(slots=True)
class _Page:
    """A canvas of characters by line and column."""

    written: dict[int, dict[int, str]] = field(default_factory=dict)

    def write(self, line: int, column: int, text: str) -> None:
        """Write a text at a position."""
        for offset, character in enumerate(text):
            self.written.setdefault(line, {})[column + offset] = character

    def join(self, ends: list[tuple[int, int]], offset: int) -> None:
        """Draw lines from the `ends`, (line, column) in falling order, to a box at `offset`."""
        if not ends:
            return
        bar, first, last = offset - GAP + 1, ends[0][0], ends[-1][0]
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
        """Return the lines of the canvas."""
        return [
            "".join(row.get(column, " ") for column in range(max(row) + 1)).rstrip()
            for number in range(1 + max(self.written, default=-1))
            for row in [self.written.get(number, {0: " "})]
        ]
