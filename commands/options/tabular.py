"""`--format` and `--counters`; JSON and CSV of verbs that return a data frame.

JSON is one object: `format` is `cutrace-VERB-1`, `rows` a list of objects by column. New columns
are appended without notice; a change or removal of a column increments the number.
"""

import json
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ...base.errors import CutraceError, nearest
from ..terminal.screen import has_colour, is_quiet, width
from .complete import last_of, starting

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.report.view import View


def counters() -> list[str]:
    """Return the counters of all vocabularies."""
    from ...analyzer.counting.vocabulary import vocabularies

    return list(dict.fromkeys(c.name for v in vocabularies() for c in v.counters))


def formats() -> list[str]:
    """Return the report formats."""
    from ...analyzer.report import formats

    return list(formats())


FORMATS = ("table", "json", "csv")
ReportFormat: TypeAlias = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="table|csv|json|md",
        autocompletion=starting(formats),
        help="How to print it.",
    ),
]
Counters: TypeAlias = Annotated[
    str | None,
    typer.Option(
        *("--counters", "--metrics"),
        metavar="NAME,...",
        autocompletion=last_of(counters),
        help="Show only these counters, even if they are zero or do not differ.",
    ),
]
Format: TypeAlias = Annotated[
    str, typer.Option("--format", metavar="|".join(FORMATS), help="How to print it.")
]


def check_format(name: str) -> None:
    """Raise `CutraceError` unless it is one of FORMATS."""
    if name not in FORMATS:
        raise CutraceError(
            f"no format {name!r}{nearest(name, FORMATS)}; expected {', '.join(FORMATS)}"
        )


def render_frame(verb: str, frame: "pl.DataFrame", format: str) -> str:
    """Return a frame as JSON or CSV."""
    rows: list[dict[str, Any]] = frame.to_dicts()
    if format == "json":
        return json.dumps({"format": f"cutrace-{verb}-1", "rows": rows}, indent=1)
    from ...analyzer.text.layout import csv_text

    return csv_text([frame.columns, *([*map(_in_a_cell, row.values())] for row in rows)])


def _in_a_cell(value: object) -> object:
    """Join a list's items in one cell."""
    return " ".join(map(str, value)) if isinstance(value, list) else value


FINER = {"launch": "line", "line": "array", "array": "instruction"}
"""The next finer grouping."""


def view_here(
    by: str,
    names: str | None,
    first: str,
    typed: str,
    sort: str | None = None,
    threshold: float | None = None,
    suffix: str = "",
) -> "View":
    """Return the view for stdout; raise `CutraceError` for an unknown grouping or counter.

    `names` are comma-separated counters; `typed` is the command of this report without its
    grouping, and `suffix` the program at its end; `sort` and `threshold` are the view's.
    """
    from ...analyzer.counting.vocabulary import check_parts, find_counters
    from ...analyzer.report.view import View, check_grouping
    from ...analyzer.sheet import check_sifting

    check_grouping(by)
    counters = tuple(name for name in (names or "").split(",") if name)
    if names is not None and not counters:
        raise CutraceError("--counters names none; `cutrace counters` lists all")
    check_parts(find_counters(counters), by)
    check_sifting(by, sort, threshold)
    return View(
        by=by,
        counters=counters,
        width=width(),
        colour=has_colour(),
        first=first,
        last=f"{typed} --by {FINER[by]}{suffix}" if by in FINER else "cutrace counters NAME",
        sort=sort or "",
        threshold=threshold or 0.0,
        typed=typed,
        program_suffix=suffix,
        quiet=is_quiet(),
    )
