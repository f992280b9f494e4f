"""Document: an answer before it is written, made by every verb and written by every format.

`sections` are for people: headings, notes, items, tables and figures. `rows` are for spreadsheets,
`fields` for programs, `findings` for CI. These are functions, so that a format pays for its own
part alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.dataclass import dataclass
from ..text.number import bracket, number, ratio_text
from .view import View

if TYPE_CHECKING:
    import polars as pl

    from ..counting.evaluate import Value
    from ..counting.interval import Interval
    from ..counting.vocabulary import Counter

Key: TypeAlias = Mapping[str, str | int]
"""What a table counts, a line, an array or an instruction; empty for a launch as a whole."""

BEST = "*"
"""The mark of the best cell of a row."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value and its text; without one the row's counter says how a value is written.

    A value of a sample has an `interval`. `difference` and `ratio` are to the baseline's value,
    None where there is none. `bar` is a length, 0 to 1; `note` stands behind the text.
    """

    value: "Value"
    text: str = ""
    interval: "Interval | None" = None
    difference: "Value" = None
    ratio: float | None = None
    is_best: bool = False
    bar: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: its name, its cells, and the counter that they are values of, if any.

    One that `is_folded` is left out of tables for people; one that `is_bad` has failed.
    """

    name: str
    cells: tuple[Cell, ...]
    counter: "Counter | None" = None
    is_folded: bool = False
    is_bad: bool = False

    @property
    def doc(self) -> str:
        """Return what the counter counts."""
        return self.counter.doc if self.counter else ""

    @property
    def is_zero(self) -> bool:
        """Return whether all values are 0."""
        return all(cell.value == 0 for cell in self.cells)

    @property
    def is_empty(self) -> bool:
        """Return whether there is no value."""
        return all(cell.value is None for cell in self.cells)

    def text(self, place: int) -> str:
        """Return a cell as text, with its interval in brackets if it has one."""
        cell = self.cells[place]
        if cell.text or self.counter is None:
            return cell.text
        return bracket(cell.value, cell.interval, self.counter)

    def change(self, place: int) -> tuple[str, str]:
        """Return the difference of a cell from the baseline's and their ratio as text.

        The difference of two percentages is in percentage points.
        """
        cell = self.cells[place]
        change, counter = cell.difference, self.counter
        if change is None or counter is None:
            difference = ""
        elif counter.unit in ("ratio", "%"):
            difference = f"{change * (100 if counter.unit == 'ratio' else 1):.3g} pts"
        else:
            difference = number(change, counter)
        sign = "+" * (change is not None and change > 0)
        return sign + difference, ratio_text(cell.ratio)


def row(name: object, *cells: object, is_bad: bool = False) -> Row:
    """Return a row of texts."""
    return Row(str(name), tuple(Cell(None, str(cell)) for cell in cells), is_bad=is_bad)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under the names of their cells, `columns`; `corner` is over the names of the rows.

    `title` may be empty. With a `baseline`, the number of a column, the other columns have their
    difference and ratio beside them. `numbers` are aligned at their right ends. Names may be empty.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str = ""
    corner: str = ""
    key: Key = field(default_factory=dict)
    baseline: int | None = None
    numbers: bool = True

    def texts(self, columns: Sequence[int] | None = None) -> Iterator[tuple[str, ...]]:
        """Yield the head and each row as texts, of these columns or of all."""
        shown = range(len(self.columns)) if columns is None else columns
        beside = {n for n in shown if self.baseline not in (None, n)}
        head = [self.corner]
        for n in shown:
            head += [self.columns[n], *(("difference", "ratio") if n in beside else ())]
        yield tuple(head)
        for row in self.rows:
            cells = [row.name]
            for n in shown[: len(row.cells)]:
                cells.append(row.text(n) + f" {BEST}" * row.cells[n].is_best)
                cells += row.change(n) if n in beside else ()
            yield tuple(cells)

    def shown(self, columns: Sequence[int] | None = None) -> Iterator[tuple[str, ...]]:
        """Yield the rows that are not folded as texts, without the head."""
        places = range(len(self.columns)) if columns is None else columns
        for row in self.rows:
            if not row.is_folded:
                yield (row.name, *map(row.text, places))


@dataclass(frozen=True, slots=True)
class TableSet:
    """Tables with the same columns, of which `refusals` have no values, and say why.

    There is one for each vocabulary, and for each line, array or instruction, if `by` is that.
    """

    columns: tuple[str, ...]
    tables: tuple[Table, ...]
    refusals: tuple[str, ...] = ()
    by: str = "launch"

    def launch_row(self, columns: Sequence[int] | None = None) -> Iterator[tuple[str, ...]]:
        """Yield a row that says which columns have no values, if any."""
        if any(self.refusals):
            places = range(len(self.columns)) if columns is None else columns
            yield ("launch", *(self.refusals[n] or "runs" for n in places))


def by_key(set_: TableSet) -> Iterator[tuple[Key, list[Table]]]:
    """Yield each key with its tables."""
    for key, tables in groupby(set_.tables, key=lambda table: table.key):
        yield key, [*tables]


def title(key: Key) -> str:
    """Return a line, array, instruction or opcode as text; empty for the whole launch."""
    for name in ("array", "opcode"):
        if name in key:
            return f"{name} {key[name]}"
    place = f"{key['file']}:{key['line']}" if key.get("line") else "no source line"
    if "pc" in key:
        return f"pc {key['pc']}  {key['ptx']}  ({place})"
    return f"{place}  {str(key['text']).strip()}" if key else ""


@dataclass(frozen=True, slots=True)
class Heading:
    """The code that a section is about: `lead` stands before it, `tail` behind."""

    text: str
    lead: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence, wrapped behind `indent`, from the second line on by `hang` more.

    A terminal alone wraps one that `is_whole`, and not if it `is_code`: a launch, a line of source.
    """

    text: str
    indent: str = ""
    hang: str = ""
    is_whole: bool = False
    is_code: bool = False
    is_strong: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """What was found, at one place or several, and labelled sentences about it."""

    heads: tuple[tuple[str, str], ...]
    details: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a source or a trace, and indented sentences about them."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines that fit the view as they are, each with its style on a terminal."""

    lines: tuple[tuple[str, str], ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the lines without their styles."""
        return tuple(text for text, _ in self.lines)


def listing(lines: Iterable[str]) -> Listing:
    """Return lines without a style."""
    return Listing(tuple((line, "") for line in lines))


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing, `draw` returns it as SVG, and the blocks that stand for it among letters."""

    draw: Callable[[], str]
    blocks: tuple["Block", ...] = ()


@dataclass(frozen=True, slots=True)
class Next:
    """The command that asks for more."""

    command: str


Block: TypeAlias = Heading | Note | Item | Excerpt | Listing | Figure | Table | TableSet | Next
Section: TypeAlias = Sequence[Block]
"""Blocks between two blank lines."""
Rows: TypeAlias = tuple[Iterable[str], Iterable[Sequence[object]]]
"""The names of the columns, which may map to their types, and the rows."""


def rows_of(frame: "pl.DataFrame") -> Rows:
    """Return the rows of a data frame."""
    return frame.columns, frame.rows()


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check, for CI.

    `rule` was checked of `subject`, in a file, at a line if that is known. `claim` is the result in
    a line, `message` all of it, `name` that of the test. Findings with one `mark` are one. It
    `is_error` if the check could not run.
    """

    kind: str
    rule: str
    subject: str
    name: str
    claim: str
    message: str
    holds: bool
    file: str = ""
    line: int = 0
    mark: str = ""
    is_error: bool = False


@dataclass(frozen=True)
class Document:
    """An answer, and the view of it; a verb leaves out the parts that it does not have.

    `name` is the verb's. JSON is `fields`, else `rows`. `findings` are of the file `title`; CI
    shows `notices` beside failures. `subject` is the value that the document is of, for formats of
    other packages.
    """

    view: View
    sections: Callable[[], Iterable[Section]]
    rows: Callable[[], Rows] | None = None
    fields: Callable[[], object] | None = None
    findings: tuple[Finding, ...] | None = None
    title: str = ""
    notices: tuple[str, ...] = ()
    name: str = ""
    subject: Any = None

    def frame(self, **types: Any) -> "pl.DataFrame":
        """Return the rows as a data frame; some columns may be of other `types`."""
        import polars as pl

        assert self.rows
        head, rows = self.rows()
        schema = {**(head if isinstance(head, Mapping) else dict.fromkeys(head)), **types}
        return pl.DataFrame([*rows], schema, orient="row", strict=False)

    @property
    def failures(self) -> list[Finding]:
        """Return the findings that do not hold; last those of checks that could not run."""
        failed = (each for each in self.findings or () if not each.holds)
        return sorted(failed, key=lambda each: each.is_error)
