"""How large a trace may become: bytes are counted as they are written."""

from dataclasses import dataclass

from ...errors import CutraceError


@dataclass(slots=True)
class Room:
    """What is left of `limit` bytes for a trace called `label`; 0: no limit.

    `where` says which launch is being written, `done` and `blocks` how far it is.
    """

    label: str
    limit: int = 0
    used: int = 0
    where: str = ""
    before: int = 0
    done: int = 0
    blocks: int = 0

    def begin(self, where: str, blocks: int) -> None:
        """Note the launch that is being written from now on, of so many thread blocks."""
        self.where, self.done, self.blocks, self.before = where, 0, blocks, self.used

    def reach(self, block: int) -> None:
        """Note that a thread block has come."""
        self.done = max(self.done, block + 1)

    def take(self, size: int) -> None:
        """Count bytes that were written; CutraceError if the trace is too large with them."""
        self.used += size
        if self.limit and self.used > self.limit:
            raise CutraceError(self._message())

    def _message(self) -> str:
        where = f" in {self.where}" if self.where else ""
        if self.done:
            where += f", when block {self.done - 1} of {self.blocks} was recorded"
        return (
            f"{self.label}: no trace is written, for it would be larger than the {self.limit} bytes"
            f" that were allowed: it had {self.used}{where}; raise --max-trace-size, sample"
            f" blocks (--sample-blocks {self._percent()}% would fit), or record less"
            " (--no-control, --only-kernels, --only-lines, --only-spaces, ...)"
        )

    def _percent(self) -> str:
        """Return what part of this launch's blocks would fit, with a fifth to spare."""
        written = self.used - self.before
        left = max(self.limit - self.before, 0)
        fits = 80 * left * max(self.done, 1) / max(written * self.blocks, 1)
        return f"{max(min(fits, 50.0), 0.01):.2g}"
