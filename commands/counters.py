"""`cutrace counters`: what can be counted, and how each counter is defined."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from .options import tabular
from .options.complete import starting
from .options.tabular import ReportFormat, plain_view
from .options.verb import Line, argument, shown, verb
from .terminal.screen import width

if TYPE_CHECKING:
    import polars as pl

    from ..analyzer.counting.vocabulary import Counter
    from ..analyzer.report.document import Section, Table

SCOPES = {"sm": "the profiled SM", "cluster": "the profiled TPC", "all": "the whole grid"}


@verb("Look up", "cutrace counters", "cutrace counters global_transactions")
def counters(
    name: Annotated[
        str | None,
        argument(
            "A counter, to see its definition, or a part of names",
            complete=starting(tabular.counters),
        ),
    ] = None,
) -> "pl.DataFrame":
    """List the counters, or print the definition of one.

    In Python a frame with a row per counter of every vocabulary, its definition and its source.
    """
    import polars as pl

    from ..analyzer.counting.vocabulary import containing, find_counters, vocabularies

    every = [counter for vocabulary in vocabularies() for counter in vocabulary.counters]
    if name is not None:
        named = {(c.vocabulary, c.name) for c in containing(name) or find_counters([name])}
        every = [counter for counter in every if (counter.vocabulary, counter.name) in named]
    rows = [
        (c.vocabulary, c.name, c.unit, c.devices, c.doc, c.formula, c.better, c.source)
        for c in every
    ]
    head = ("vocabulary", "counter", "unit", "devices", "doc", "formula", "better", "source")
    return pl.DataFrame(rows, head, orient="row")


@shown(counters, is_lazy=True)
def _show(answer: "Callable[[], pl.DataFrame]", line: Line, format: ReportFormat = "table") -> str:
    from ..analyzer.report import render
    from ..analyzer.report.document import Document, rows_of

    name = line.values["name"]
    document = Document(
        plain_view(), lambda: _sections(name), lambda: rows_of(answer()), name="counters"
    )
    return render(document, format)


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
