"""What limits and checks a launch while it runs, and which engine runs it."""

from dataclasses import field

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....base.options import option

ENGINES = ("auto", "array", "compiled")
"""What runs a launch: arrays over many warps, compiled basic blocks, or what suits the kernel."""

BOUNDS = ("strict", "report")
"""What an access of global memory outside of every allocation is: a fault; or, where memory is
mapped, done as a chip does it, and counted."""

MOST_INSTRUCTIONS = 1 << 31
"""Steps of a warp are 32 bits in a trace."""

MOST_THREADS = (2**31 - 1) * 65535 * 65535 * 1024
"""Threads of the largest launch that any device takes."""


@dataclass(slots=True)
class RunProgress:
    """How much has been run: `launches` to their end, and of one more the `part` from 0 to 1.

    `blocks` are those of each launch there will be, where that is known before.
    """

    launches: int = 0
    part: float = 0.0
    blocks: tuple[int, ...] = ()

    @property
    def share(self) -> float:
        """The part of all thread blocks, from 0 to 1; 0 where nobody knows how many there are.

        >>> RunProgress(launches=1, part=0.5, blocks=(10, 20)).share
        0.6666666666666666
        """
        ended, running = self.blocks[: self.launches], self.blocks[self.launches :]
        return (sum(ended) + self.part * sum(running[:1])) / max(1, sum(self.blocks))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a launch is run: each field but `ran` is an option of `cutrace record` and of `Session`.

    `engine` is one of ENGINES. `bounds` is one of BOUNDS; None is strict, unless who runs the
    kernel maps memory. In `ran` the engine notes how far it is. Raises `CutraceError` for a value
    that makes no sense.
    """

    max_instructions: int = option(
        1 << 28, "Stop a kernel when a warp has run this many; else 2**28.", "N"
    )
    check_uninitialized: bool = option(False, "Stop a kernel that loads what nobody wrote.")
    max_threads: int = option(
        1 << 28, "Refuse a launch of more threads than this; else 2**28.", "N"
    )
    engine: str = option(
        "auto", "What runs the kernel, to the same trace; else what suits it.", "array|compiled"
    )
    bounds: str | None = option(
        None,
        "What it is to access global memory outside of every array: a fault (strict), or"
        " as on a chip, which maps memory in pages of 2 MB, and told (report).",
        "strict|report",
    )
    ran: RunProgress = field(default_factory=RunProgress, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.bounds not in (None, *BOUNDS):
            expected = " or ".join(BOUNDS)
            raise CutraceError(f"there are no bounds `{self.bounds}`, expected {expected}")
        if self.engine not in ENGINES:
            expected = ", ".join(ENGINES)
            raise CutraceError(f"there is no engine `{self.engine}`, expected one of {expected}")
        _check_range("max_instructions", self.max_instructions, MOST_INSTRUCTIONS, "for each warp")
        _check_range("max_threads", self.max_threads, MOST_THREADS, "for each launch")


def _check_range(name: str, value: int, most: int, of_what: str) -> None:
    if not 1 <= value <= most:
        raise CutraceError(f"{name} is {value}, expected 1 to {most} {of_what}")


DEFAULTS = RunOptions()
