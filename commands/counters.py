"""`cutrace counters`: what can be counted, and how each counter is defined."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .options.complete import starting
from .options.tabular import ReportFormat, counters, plain_view
from .terminal.screen import width

if TYPE_CHECKING:
    import polars as pl

    from ..analyzer.counting.vocabulary import Counter
    from ..analyzer.report.document import Section, Table

PANEL = "Look up"
EXAMPLES = (
    "cutrace counters",
    "cutrace counters global_transactions",
)
SCOPES = {"sm": "the profiled SM", "cluster": "the profiled cluster", "all": "the whole grid"}


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A counter, to see its definition, or a part of names",
            autocompletion=starting(counters),
        ),
    ] = None,
    format: ReportFormat = "table",
) -> str:
    """List the counters, or print the definition of one."""
    from ..analyzer.report import check_format, render
    from ..analyzer.report.document import Document, rows_of

    check_format(format)
    document = Document(
        plain_view(), lambda: _sections(name), lambda: rows_of(_frame(name)), name="counters"
    )
    return render(document, format)


def _frame(name: str | None) -> "pl.DataFrame":
    from ..analyzer.counting.vocabulary import containing, find_counters
    from .api.lists import counters as frame

    table = frame()
    if name is None:
        return table
    named = [(c.vocabulary, c.name) for c in containing(name) or find_counters([name])]
    return table.filter([pair in named for pair in table.select(table.columns[:2]).rows()])


def _sections(name: str | None) -> "Iterator[Section]":
    """Yield the lists of counters, those whose names contain a word, or definitions."""
    from ..analyzer.counting.vocabulary import containing, find_counters, vocabularies
    from ..analyzer.report.document import Next, Note

    if name is None:
        for vocabulary in vocabularies():
            head = Note(f"{vocabulary.name}: {vocabulary.doc}", is_whole=True)
            yield [head, _list([(c.name, c.devices, c.unit) for c in vocabulary.counters])]
    elif some := containing(name):
        yield [_list([(c.qualified, c.devices, c.unit) for c in some])]
    else:
        yield from map(_definition, find_counters([name]))
        yield [Next(f"cutrace analyze TRACE --counters {name}")]
        return
    yield [Next("cutrace counters NAME")]


def _list(rows: Sequence[tuple[str, ...]]) -> "Table":
    """Return the rows as a table, without units and devices if the terminal is too narrow."""
    from ..analyzer.report.document import Table, row
    from ..analyzer.text.layout import align

    wide = [len(max(align([each[:columns] for each in rows]), key=len)) for columns in (3, 2, 1)]
    limit = width() or wide[0]
    columns = next((3 - place for place, each in enumerate(wide) if each <= limit), 1)
    shown = tuple(row(*each[:columns]) for each in rows)
    return Table(("",) * (columns - 1), shown, numbers=False)


def _definition(counter: "Counter") -> "Section":
    """Return the full description of a counter."""
    from ..analyzer.report.document import Note, Table, row

    rows = [
        ("unit", counter.unit),
        ("devices", f"compute capability {counter.devices}"),
        ("counts", SCOPES[counter.scope]),
        ("formula", counter.formula),
        ("better", f"{counter.better}, of kernels that do the same work" if counter.better else ""),
        ("was", counter.was),
        ("differs", counter.differs),
        ("source", counter.source),
    ]
    table = Table(("",), tuple(row(f"  {n}", text) for n, text in rows if text), numbers=False)
    head = Note(f"{counter.name} ({counter.vocabulary})", is_whole=True)
    return [head, Note(counter.doc, is_whole=True), table]
