"""`--format` and `--counters`, and the view that documents are shown by."""

from typing import TYPE_CHECKING, Annotated, TypeAlias

from ...base.errors import CutraceError
from ..terminal.screen import has_colour, is_quiet, width
from .complete import last_of, starting
from .verb import Line, Typed, value

if TYPE_CHECKING:
    from ...analyzer.report.view import View


def counters() -> list[str]:
    """Return the counters of all vocabularies."""
    from ...analyzer.counting.vocabulary import vocabularies

    return list(dict.fromkeys(c.name for v in vocabularies() for c in v.counters))


def formats() -> list[str]:
    """Return the report formats."""
    from ...analyzer.report import formats

    return list(formats())


def _check_report_format(name: str) -> None:
    from ...analyzer.report import check_format

    check_format(name)


ReportFormat: TypeAlias = Annotated[
    str,
    value("How to print it.", "table|csv|json|md|html", "--format", complete=starting(formats)),
    Typed(check=_check_report_format),
]
Counters: TypeAlias = Annotated[
    str | None,
    value(
        "Show only these counters, even if they are zero or do not differ.",
        "NAME,...",
        *("--counters", "--metrics"),
        complete=last_of(counters),
    ),
]


def plain_view(first: str = "", last: str = "") -> "View":
    """Return the view for stdout of a verb without counters."""
    from ...analyzer.report.view import View

    return View(width=width(), colour=has_colour(), first=first, last=last, quiet=is_quiet())


FINER = {"launch": "line", "line": "array", "array": "instruction", "instruction": "opcode"}
"""The next finer grouping."""


def view_of(
    line: Line,
    by: str,
    names: str | None,
    again: str,
    sort: str | None = None,
    threshold: float | None = None,
) -> "View":
    """Return the view for stdout; raise `CutraceError` for an unknown grouping or counter.

    `names` are comma-separated counters; `sort` and `threshold` are the view's. `again` is the
    command of this report without its grouping.
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
        first=line.first,
        last=f"{again} --by {FINER[by]}{line.suffix}" if by in FINER else "cutrace counters NAME",
        sort=sort or "",
        threshold=threshold or 0.0,
        typed=again,
        program_suffix=line.suffix,
        quiet=is_quiet(),
    )
