"""`cutrace counters`: what can be counted, and how each counter is defined."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from .options.complete import starting
from .options.tabular import Format, check_format, counters, render_frame
from .terminal.screen import fitted, width

if TYPE_CHECKING:
    from ..analyzer.counting.vocabulary import Counter

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
    format: Format = "table",
) -> str:
    """List the counters, or print the definition of one."""
    from ..analyzer.counting.vocabulary import containing, find_counters, vocabularies

    check_format(format)
    if format != "table":
        from .api.lists import counters as frame

        table = frame()
        if name is not None:
            named = [(c.vocabulary, c.name) for c in containing(name) or find_counters([name])]
            table = table.filter([pair in named for pair in table.select(table.columns[:2]).rows()])
        return render_frame("counters", table, format)
    if name is not None and (some := containing(name)):
        rows = [(c.qualified, c.devices, c.unit) for c in some]
        return "\n".join((*_list(rows), "\nnext: cutrace counters NAME"))
    if name is not None:
        definitions = "\n\n".join(_definition(counter) for counter in find_counters([name]))
        return fitted(f"{definitions}\n\nnext: cutrace analyze TRACE --counters {name}")
    parts = []
    for vocabulary in vocabularies():
        rows = [(c.name, c.devices, c.unit) for c in vocabulary.counters]
        parts.append("\n".join((fitted(f"{vocabulary.name}: {vocabulary.doc}"), *_list(rows))))
    return "\n\n".join((*parts, "next: cutrace counters NAME"))


def _list(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Format the rows; drop units and devices if the terminal is too narrow."""
    from ..analyzer.text.layout import align

    whole, *narrower = (align([row[:columns] for row in rows]) for columns in (3, 2, 1))
    limit = width() or len(max(whole, key=len))
    return next((n for n in (whole, *narrower) if len(max(n, key=len)) <= limit), narrower[-1])


def _definition(counter: "Counter") -> str:
    """Return the full description of a counter."""
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
    from ..analyzer.text.layout import align

    head = f"{counter.name} ({counter.vocabulary})\n{counter.doc}"
    return "\n".join((head, *(f"  {line}" for line in align([r for r in rows if r[1]]))))
