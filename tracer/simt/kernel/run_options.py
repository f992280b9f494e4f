"""Options of a run: limits, checks and the engine."""

from ....base.cores import cores
from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....base.options import option

ENGINES = ("auto", "array", "compiled")
"""The engines: chosen per kernel, the array engine (interpreter), the compiled engine."""

BOUNDS = ("strict", "report")
"""Out-of-bounds accesses to global memory: a fault; or, within mapped pages, done as on a chip and
counted.
"""

MOST_INSTRUCTIONS = 1 << 31
"""A warp's step numbers are 32 bits in a trace."""

MOST_JOBS = 1 << 10

MOST_THREADS = (2**31 - 1) * 65535 * 65535 * 1024
"""Threads of the largest launch that any device takes."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run: each field is an option of `cutrace record` and of `Session`.

    `engine` is one of ENGINES. `bounds` is one of BOUNDS; the default None means strict, unless the
    caller maps memory. Raises `CutraceError` for an invalid value.
    """

    max_instructions: int = option(
        1 << 28, "Stop when a warp has executed N instructions (default: 2**28).", "N"
    )
    check_uninitialized: bool = option(False, "Stop when a kernel reads uninitialized memory.")
    max_threads: int = option(
        1 << 28, "Refuse a launch of more than N threads (default: 2**28).", "N"
    )
    engine: str = option(
        "auto",
        "Execution engine; both give the same trace (default: chosen for each launch).",
        "array|compiled",
    )
    bounds: str | None = option(
        None,
        "Out-of-bounds global accesses: strict stops with an error; report behaves like hardware,"
        " which maps pages of 2 MB, and warns (default: strict; report for whole programs).",
        "strict|report",
    )

    jobs: int | None = option(
        None,
        "Run thread blocks on at most N cores (default: all); the trace is the same.",
        "N",
        typed=False,
    )

    def __post_init__(self) -> None:
        if self.bounds not in (None, *BOUNDS):
            expected = " or ".join(BOUNDS)
            raise CutraceError(f"there are no bounds `{self.bounds}`, expected {expected}")
        if self.engine not in ENGINES:
            expected = ", ".join(ENGINES)
            raise CutraceError(f"there is no engine `{self.engine}`, expected one of {expected}")
        if self.jobs is not None:
            _check_range("jobs", self.jobs, MOST_JOBS, "threads")
        _check_range("max_instructions", self.max_instructions, MOST_INSTRUCTIONS, "for each warp")
        _check_range("max_threads", self.max_threads, MOST_THREADS, "for each launch")

    @property
    def threads(self) -> int:
        """The most threads that a launch runs on, and those that compress its rows."""
        return self.jobs or cores()


def _check_range(name: str, value: int, most: int, of_what: str) -> None:
    if not 1 <= value <= most:
        raise CutraceError(f"{name} is {value}, expected 1 to {most} {of_what}")


DEFAULTS = RunOptions()
