"""Which of a program's launches are recorded, and how many there are by now."""

import re
import time
from dataclasses import field
from re import Pattern

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..session.function import Function


@dataclass(frozen=True, slots=True)
class Choice:
    """Of the launches of kernels in whose name `kernels` is found, all but the first `skip`."""

    kernels: Pattern[str] | None = None
    skip: int = 0


def read_choice(kernels: str | None, skip: int | None) -> Choice:
    """Read the options of a command line; CutraceError for what is no regular expression."""
    if skip is not None and skip < 0:
        raise CutraceError(f"--skip {skip}: expected how many launches, 0 or more")
    try:
        return Choice(None if kernels is None else re.compile(kernels), skip or 0)
    except re.error as problem:
        raise CutraceError(
            f"--kernels {kernels}: not a regular expression: {problem}; expected one that is found"
            " in the names of kernels, as in --kernels 'gemm|^scan'"
        ) from None


class Chooser:
    """Says of each launch in turn whether it is chosen."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._left = choice.skip

    def takes(self, function: Function) -> bool:
        """Whether the next launch is one of those that are recorded."""
        signature = function.signature
        names = (signature.name, signature.mangled)
        pattern = self._choice.kernels
        if pattern is not None and not any(map(pattern.search, names)):
            return False
        self._left -= 1
        return self._left < 0


@dataclass(slots=True)
class Tally:
    """How far a recording is: launches that were run, those recorded, bytes of the trace, and the
    kernel that runs, if one does.
    """

    run: int = 0
    recorded: int = 0
    bytes: int = 0
    running: str = ""
    since: float = field(default_factory=time.monotonic)

    def text(self, part: float = 0.0) -> str:
        """`1,234 launches (350 a second), 1,200 recorded, 3.4 MB`, and the `part` that has been run
        of the launch that runs, from 0 to 1: `, 40 % of scale`."""
        rate = self.run / max(time.monotonic() - self.since, 1e-3)
        recorded = "" if self.recorded == self.run else f", {self.recorded:,} recorded"
        size = f"{self.bytes / 1e6:,.1f} MB"
        running = f", {100 * part:.0f} % of {self.running}" if part and self.running else ""
        return f"{self.run:,} launches ({rate:,.0f} a second){recorded}, {size}{running}"
