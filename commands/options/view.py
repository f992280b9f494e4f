"""The view of a report on this terminal or pipe: width, colours, first and last line."""

from typing import TYPE_CHECKING

from .screen import has_colour, is_quiet, width

if TYPE_CHECKING:
    from ...analyzer.sheet.view import View

FINER = {"launch": "line", "line": "array", "array": "instruction"}
"""The grouping to look at next."""


def view_here(
    by: str,
    names: str | None,
    first: str,
    typed: str,
    sort: str | None = None,
    threshold: float | None = None,
    behind: str = "",
) -> "View":
    """The view for stdout; `CutraceError` for a grouping or counter that does not exist.

    `names` are counters with commas between; `typed` is the command that asks for this report,
    without its grouping, and `behind` the program at its end; `sort` and `threshold` are
    the view's.
    """
    from ...analyzer.counting.vocabulary import check_parts, find_counters
    from ...analyzer.sheet.row_filter import check_sifting
    from ...analyzer.sheet.view import View, check_grouping

    check_grouping(by)
    counters = tuple(name for name in (names or "").split(",") if name)
    check_parts(find_counters(counters), by)
    check_sifting(by, sort, threshold)
    return View(
        by=by,
        counters=counters,
        width=width(),
        colour=has_colour(),
        first="" if is_quiet() else first,
        last=f"{typed} --by {FINER[by]}{behind}" if by in FINER else "cutrace counters NAME",
        sort=sort or "",
        threshold=threshold or 0.0,
        typed=typed,
        behind=behind,
        quiet=is_quiet(),
    )
