"""Select the launches to record, and count launches while a program runs."""

import re
import time
from dataclasses import field
from re import Pattern

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..session.function import Function


@dataclass(frozen=True, slots=True)
class Choice:
    """The launches of kernels with a name that matches `kernels`, after the first `skip`."""

    kernels: Pattern[str] | None = None
    skip: int = 0


def read_choice(kernels: str | None, skip: int | None) -> Choice:
    """Parse the command line's options; raise CutraceError for an invalid regular expression."""
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
    """Decides for each launch, in program order, whether it is recorded."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._left = choice.skip

    def takes(self, function: Function) -> bool:
        """Return whether to record the next launch; advances the count of matches."""
        signature = function.signature
        names = (signature.name, signature.mangled)
        pattern = self._choice.kernels
        if pattern is not None and not any(map(pattern.search, names)):
            return False
        self._left -= 1
        return self._left < 0


@dataclass(slots=True)
class Tally:
    """Progress of a recording: launches executed and recorded, trace bytes, running kernel."""

    run: int = 0
    recorded: int = 0
    bytes: int = 0
    running: str = ""
    since: float = field(default_factory=time.monotonic)

    def text(self, part: float = 0.0) -> str:
        """Return `1,234 launches (350 a second), 1,200 recorded, 3.4 MB`.

        `part`, from 0 to 1, is the executed fraction of the running launch: `, 40 % of scale`.
        """
        rate = self.run / max(time.monotonic() - self.since, 1e-3)
        recorded = "" if self.recorded == self.run else f", {self.recorded:,} recorded"
        size = f"{self.bytes / 1e6:,.1f} MB"
        running = f", {100 * part:.0f} % of {self.running}" if part and self.running else ""
        return f"{self.run:,} launches ({rate:,.0f} a second){recorded}, {size}{running}"
