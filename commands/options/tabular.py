"""`--format` of verbs whose answer is a frame: JSON and CSV with the columns of the function.

JSON is one object: `format` is `cutrace-VERB-1`, `rows` a list of objects by column. A column is
added at the end without notice; one that changes or goes raises the number.
"""

import csv
import json
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from ...errors import CutraceError, nearest

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("table", "json", "csv")
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
    """A frame as JSON or CSV."""
    rows: list[dict[str, Any]] = frame.to_dicts()
    if format == "json":
        return json.dumps({"format": f"cutrace-{verb}-1", "rows": rows}, indent=1)
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    """A cell for a spreadsheet; the parts of a list stand behind one another."""
    from ...inert import csv_cell

    return csv_cell(" ".join(map(str, value)) if isinstance(value, list) else value)
