"""Source pages: every line with a cost, the lines around it, and its heat."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any

from markupsafe import Markup, escape

from ...base.dataclass import dataclass
from ...base.sanitize import sanitize
from ..counting.evaluate import Value
from ..counting.vocabulary import heading, known_counter
from ..launch_profile import MOVED, LaunchProfile
from ..report.document import Cell
from ..report.view import COUNTERS
from ..text.number import number
from .value import Bounds, Source, SourceFile, SourceRow

LINE = (*COUNTERS["line"][:4], "l1_hit_rate", "l2_hit_rate", *COUNTERS["line"][4:])
"""Columns of a source page; those that are 0 in every row are left out."""
SECOND = 2
"""Number of lines chosen by the second measure of cost."""
AROUND = 3
"""Lines of context before and after one with a cost."""
BRIEF = 2
"""Gaps of at most so many lines between shown lines are filled."""
MEASURES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "bytes": ("bytes moved", MOVED),
    "excess": ("transactions in excess", ("global_excess_transactions",)),
    "conflicts": ("bank conflicts", ("shared_conflicts",)),
    "constants": ("constant wavefronts", ("constant_wavefronts",)),
    "divergence": ("divergent branches", ("divergent_branches",)),
    "instructions": ("instructions", ("instructions",)),
}
"""Measures that shade lines: key, label, and the counters that are summed."""
KINDS = {"shared": "s", "constant": "c", "divergent": "d", "instructions": "i"}
"""The kind of a column by the first word of its counter; all others are global memory, `g`."""
Context = Mapping[str, object]
Target = Callable[[Context], str]


def draw_source(
    launch: LaunchProfile, sources: Mapping[str, str], bounds: Bounds, target: Target
) -> Source:
    """Return the pages of a launch on a device within bounds, the costliest file first.

    `target` returns the link target of a row's worst access, or an empty text.
    """
    table = [row for row in launch.lines.iter_rows(named=True) if row["line"]]
    has_lines = bool(table)
    if not has_lines:
        table = list(launch.instructions.iter_rows(named=True))
    totals = {key: sum(measure(row, key) for row in table) for key in MEASURES}
    names = _names(LINE, table)
    files: dict[str, list[Context]] = {}
    for row in table:
        files.setdefault(str(row["file"]) if has_lines else "", []).append(row)
    ordered = sorted(files.items(), key=lambda pair: -_weight(pair[1], totals))
    shown = []
    rows = bounds.rows
    ptx = _ptx(launch, bounds.rows) if has_lines else {}
    texts = {name: sources.get(name, "") if has_lines else "" for name, _ in ordered}
    is_whole = sum(text.count("\n") + 1 for text in texts.values()) <= rows
    for name, file_rows in ordered:
        text = _Text(name, texts[name], is_whole, ptx)
        page = _file(text, file_rows, names, totals, max(rows, 0), bounds, target)
        rows -= len(page.rows)
        shown.append(page)
    measures = tuple((key, words) for key, (words, _) in MEASURES.items() if totals[key])
    return Source(tuple(shown), _arrays(launch, bounds), measures, has_lines)


def _arrays(launch: LaunchProfile, bounds: Bounds) -> SourceFile:
    """Return the counters of arrays; if there are too many, of those that move most bytes."""
    array_rows = sorted(launch.arrays.iter_rows(named=True), key=lambda row: -measure(row, "bytes"))
    top_rows = array_rows[: bounds.listed]
    names = _names(COUNTERS["array"], top_rows)
    rows = tuple(
        SourceRow("", str(row["array"]), tuple(_cell(name, row) for name in names), {}, "")
        for row in top_rows
    )
    return SourceFile("arrays", _columns(names), rows, len(array_rows) - len(top_rows))


def _names(names: Sequence[str], table: Sequence[Context]) -> list[str]:
    """Return the counters that any row has."""
    return [name for name in names if any(row.get(name) for row in table)]


def _columns(names: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    """Return the headings of counters, their descriptions, and their kinds."""
    return tuple(
        (heading(counter), counter.doc, KINDS.get(counter.name.partition("_")[0], "g"))
        for counter in map(known_counter, names)
    )


def _ptx(launch: LaunchProfile, most: int) -> Mapping[tuple[str, int], Sequence[str]]:
    """Return the PTX of each line with the number of warps that ran it, unless there are more than
    `most`.
    """
    ptx_lines: dict[tuple[str, int], list[str]] = {}
    table = launch.instructions
    if len(table) <= most:
        for row in table.iter_rows(named=True):
            ran = row["ptx_instructions"]
            line_text = f"{f'{ran:,}' if ran else '':>12}  {row['ptx']}"
            ptx_lines.setdefault((str(row["file"]), int(row["line"])), []).append(line_text)
    return ptx_lines


@dataclass(frozen=True)
class _Text:
    """A file's text; `is_whole` if there is room for every line. `ptx` is per line."""

    name: str
    text: str
    is_whole: bool
    ptx: Mapping[tuple[str, int], Sequence[str]]

    @cached_property
    def lines(self) -> Sequence[str]:
        return self.text.split("\n")[:-1] if self.text.endswith("\n") else self.text.split("\n")

    @cached_property
    def marked(self) -> Sequence[Markup]:
        return marked_lines(self.name, self.text)


def _file(
    text: _Text,
    file_rows: Sequence[Context],
    names: Sequence[str],
    totals: Mapping[str, float],
    rows: int,
    bounds: Bounds,
    target: Target,
) -> SourceFile:
    """Return one file: the hottest of its lines if there are too many."""
    top_rows = sorted(file_rows, key=lambda row: -_weight([row], totals))[:rows]
    counted = {_place(row): row for row in top_rows}
    lines = []
    before = 0
    last = len(text.lines) if text.text else 0
    near = _with_neighbours(counted, last, rows)
    every = near | set(range(1, last + 1)) if text.is_whole else near
    for place in sorted(every):
        row = counted.get(place, {})
        one = _row(place, row, text, names, totals, place - before - 1, bounds, target)
        lines.append(replace(one, far=place not in near))
        before = place
    return SourceFile(text.name, _columns(names), tuple(lines), len(file_rows) - len(top_rows))


def _with_neighbours(counted: Mapping[int, Context], last: int, rows: int) -> set[int]:
    """Return the lines with a cost, and context as long as there is room."""
    shown = set(counted)
    if not last:
        return shown
    near = {
        n for place in counted for n in range(max(1, place - AROUND), min(last, place + AROUND) + 1)
    }
    gaps = sorted(near)
    for low, high in pairwise(gaps):
        near |= set(range(low, high)) if high - low <= BRIEF + 1 else set()
    return shown | set(sorted(near - shown)[: max(0, rows - len(shown))])


def _row(
    place: int,
    row: Context,
    text: _Text,
    names: Sequence[str],
    totals: Mapping[str, float],
    skipped: int,
    bounds: Bounds,
    target: Target,
) -> SourceRow:
    marked = None
    if "ptx" in row:
        number_, words, skipped = "", str(row["ptx"]), 0
    else:
        number_ = str(place)
        has_text = bool(text.text) and place <= len(text.lines)
        words = text.lines[place - 1] if has_text else str(row.get("text", ""))
    heats = {key: measure(row, key) / totals[key] for key in MEASURES if measure(row, key)}
    cells = tuple(_cell(name, row) for name in names)
    if len(words) > bounds.text:
        words = f"{words[: bounds.text]} ..."
    elif number_ and place <= len(text.marked):
        marked = text.marked[place - 1]
    ptx = "\n".join(text.ptx.get((text.name, place), ())) if number_ else ""
    shown = target(row) if row else ""
    return SourceRow(number_, words, cells, heats, shown, skipped, marked, ptx=ptx)


def _cell(name: str, row: Context) -> Cell:
    value: Value = row.get(name)  # type: ignore[assignment]
    return Cell(value, number(value, known_counter(name)) if value else "")


def _place(row: Context) -> int:
    """Return the line of a row, or the pc of an instruction."""
    return int(str(row["pc"] if "pc" in row else row["line"]))


def measure(row: Context, key: str) -> float:
    """Return the cost of a row by a measure."""
    return float(sum(float(str(row.get(name) or 0)) for name in MEASURES[key][1]))


def _weight(rows: Sequence[Context], totals: Mapping[str, float]) -> float:
    """Return the weight of rows: their largest share of any measure but instructions, then of
    those.
    """
    parts = [
        (1.0 if key != "instructions" else 0.001) * sum(measure(row, key) for row in rows) / total
        for key, total in totals.items()
        if total
    ]
    return max(parts, default=0.0)


def costly_rows(launch: LaunchProfile, most: int) -> Iterator[tuple[Context, float, str]]:
    """Yield the costliest lines (instructions if there are no lines): row, share, and measure.

    First those that move most bytes, then those with most bank conflicts; for kernels with neither,
    those that read most constants or run most instructions.
    """
    table = [row for row in launch.lines.iter_rows(named=True) if row["line"]]
    table = table or list(launch.instructions.iter_rows(named=True))
    totals = {key: sum(measure(row, key) for row in table) for key in MEASURES}
    keys = [key for key in ("bytes", "conflicts") if totals[key]]
    keys = keys or [key for key in ("constants", "instructions") if totals[key]][:1]
    for key in keys:
        ordered = sorted(table, key=partial(measure, key=key), reverse=True)
        for row in ordered[: most if key == keys[0] else SECOND]:
            if part := measure(row, key) / totals[key]:
                yield row, part, MEASURES[key][0]


MARKED = (("Comment", "c"), ("Keyword", "k"), ("String", "s"), ("Number", "n"))
"""Token kinds, in lookup order, and their CSS classes."""
MOST = 2_000_000
"""Maximum number of characters of a highlighted file."""


@lru_cache(maxsize=64)
def marked_lines(name: str, text: str) -> tuple[Markup, ...]:
    """Return the lines of a file, highlighted; none if its language is unknown."""
    lexer = _lexer(name)
    if lexer is None or len(text) > MOST:
        return ()
    lines: list[list[Markup]] = [[]]
    for kind, words in lexer.get_tokens(sanitize(text).replace("\x0c", " ")):
        style = next((style for part, style in MARKED if part in tuple(kind)), "")
        first, *others = words.split("\n")
        lines[-1].append(_span(first, style))
        lines += [[_span(words, style)] for words in others]
    return tuple(Markup("").join(line) for line in lines)


def _span(words: str, style: str) -> Markup:
    if not style or not words.strip():
        return escape(words)
    return Markup('<b class="{}">{}</b>').format(style, words)


def _lexer(name: str) -> Any:
    """Return the lexer for a file name; None for an unknown language."""
    from pygments.lexers import CudaLexer, PythonLexer

    if name.endswith(".py"):
        return PythonLexer(stripnl=False, ensurenl=False)
    if name.endswith((".cu", ".cuh", ".h", ".hpp", ".cpp", ".inl")):
        return CudaLexer(stripnl=False, ensurenl=False)
    return None
