"""View: how to show a profile. The command line builds it once; every report format reads it."""

from collections.abc import Mapping

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest

GROUPINGS = ("launch", "line", "array", "instruction", "opcode")
OF_CACHES = ("reuse", "set")
"""Further groupings of `analyze`: reuse distances of lines, and sets of caches."""
OF_LAUNCHES = ("launch", "range")
"""Groupings of whole launches."""
COUNTERS = {
    "line": (
        *("global_transactions", "global_ideal_transactions", "global_excess_transactions"),
        *("global_bytes_transferred", "local_load_transactions", "local_store_transactions"),
        *("shared_wavefronts", "shared_ideal_wavefronts", "shared_conflicts"),
        *("constant_wavefronts", "constant_ideal_wavefronts", "texture_transactions"),
        *("bulk_load_bytes", "bulk_store_bytes", "divergent_branches", "instructions"),
    ),
    "array": (
        *("memory_requests", "bytes_touched", "reuse"),
        *("global_transactions", "global_ideal_transactions", "global_excess_transactions"),
        *(
            "global_bytes_transferred",
            "shared_wavefronts",
            "shared_ideal_wavefronts",
            "shared_conflicts",
        ),
        *("constant_wavefronts", "constant_ideal_wavefronts", "texture_transactions"),
        *("bulk_load_bytes", "bulk_store_bytes"),
    ),
}
COUNTERS["instruction"] = COUNTERS["line"]
COUNTERS["opcode"] = ("instructions", *COUNTERS["line"][:-1])
"""Default counters of a page; those that are 0 in every row are left out."""


@dataclass(frozen=True, slots=True)
class View:
    """The part of a profile to show.

    `by` is one of GROUPINGS. `counters` are the requested names; empty means the vocabularies that
    fit the devices. `width` is the terminal's width in columns; None means a pipe, where lines may
    have any length. `first` and `last` are the sentences above and below the tables. `typed` is the
    command line that shows them, if any, as far as further options may be appended;
    `program_suffix` follows these. Lines, arrays and instructions are in source order, unless
    `sort` names a counter: then the largest comes first. `threshold` is the minimum percentage of
    that counter, or else of any counter, for a row to be shown. `brief` selects the summary instead
    of the tables if neither counters nor a grouping were requested; `advice` holds the labels and
    texts of its finding and fix, `fix` the fields of the same for programs.
    With `of_ranges` the rows are NVTX ranges. `quiet` omits notes, legends and suggested commands.
    """

    by: str = "launch"
    counters: tuple[str, ...] = ()
    width: int | None = None
    colour: bool = False
    first: str = ""
    last: str = ""
    sort: str = ""
    threshold: float = 0.0
    typed: str = ""
    program_suffix: str = ""
    brief: bool = False
    advice: tuple[tuple[str, str], ...] = ()
    fix: Mapping[str, object] | None = None
    of_ranges: bool = False
    quiet: bool = False


def check_grouping(name: str, groupings: tuple[str, ...] = GROUPINGS) -> None:
    """Raise `CutraceError` unless the grouping is known."""
    if name not in groupings:
        raise CutraceError(
            f"cannot count by {name!r}{nearest(name, groupings)}; expected {', '.join(groupings)}"
        )
