"""How a profile is to be shown: chosen once by whoever asks, read by every report format."""

from ..base.dataclass import dataclass
from ..base.errors import CutraceError, nearest

GROUPINGS = ("launch", "line", "array", "instruction")
OF_CACHES = ("reuse", "set")
"""What `analyze` counts by besides: how far away uses of a line are, and sets of caches."""
COUNTERS = {
    "line": (
        *("global_transactions", "global_ideal_transactions", "global_excess_transactions"),
        *("global_bytes_transferred", "local_load_transactions", "local_store_transactions"),
        *("shared_wavefronts", "shared_ideal_wavefronts", "shared_conflicts"),
        *("constant_wavefronts", "constant_ideal_wavefronts", "texture_transactions"),
        *("divergent_branches", "instructions"),
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
    ),
}
COUNTERS["instruction"] = COUNTERS["line"]
"""The columns of a page for which no counters were asked, those left out that are 0 throughout."""


@dataclass(frozen=True, slots=True)
class View:
    """The part of a profile to show.

    `by` is one of GROUPINGS. `counters` are the names asked for; none means the vocabularies that
    fit the devices. `width` is the terminal's, in columns; None means a pipe, where a line may be
    of any length. `first` and `last` are the sentences above and below the tables, `typed` is the
    command that asks for them, if any, up to what stands `program_suffix` its options. Lines,
    arrays and instructions stand in the order of the source, or `sort` names the counter of which
    the largest comes first; `threshold` is the per cent of it, or else of any counter, that a row
    must have to be shown. `brief` wants the first screen in place of the tables, where neither
    counters nor smaller rows were asked for, and `advice` is what it says to change. `quiet` leaves
    out what is said beside the numbers: notes, legends, and what to type next.
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
    advice: str = ""
    quiet: bool = False


def check_grouping(name: str, groupings: tuple[str, ...] = GROUPINGS) -> None:
    """Raise `CutraceError` unless it is one of those that are known."""
    if name not in groupings:
        raise CutraceError(
            f"cannot count by {name!r}{nearest(name, groupings)}; expected {', '.join(groupings)}"
        )
