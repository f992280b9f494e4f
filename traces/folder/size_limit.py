"""Size limit of a trace: bytes are counted as they are written."""

from ...errors import CutraceError
from ...lazy_dataclass import dataclass

MANIFEST_BYTES = 64
"""What a launch that equals another takes in the manifest, about."""


@dataclass(slots=True)
class SizeLimit:
    """The size limit of a trace called `label`, in bytes; 0: no limit.

    `where` says which launch is being written, `done` and `blocks` how far it is. A trace that
    `spares` what does not fit is written without it: `full_at` is the first such launch.
    """

    label: str
    limit: int = 0
    used: int = 0
    where: str = ""
    before: int = 0
    done: int = 0
    blocks: int = 0
    spares: bool = False
    number: int = 0
    full_at: int | None = None

    def begin(self, number: int, where: str, blocks: int) -> None:
        """Note the launch that is being written from now on, and its number of thread blocks."""
        self.number, self.where, self.done, self.blocks = number, where, 0, blocks
        self.before = self.used
        if self.spares:
            self.take(MANIFEST_BYTES)

    def forget(self) -> None:
        """Forget the launch that was written last."""
        self.used = self.before
        if self.full_at == self.number:
            self.full_at = None

    def reach(self, block: int) -> None:
        """Note that a thread block has come."""
        self.done = max(self.done, block + 1)

    def take(self, size: int) -> None:
        """Count bytes that were written; CutraceError if the trace is too large with them."""
        self.used += size
        if self.limit and self.used > self.limit:
            if not self.spares:
                raise CutraceError(self._message())
            if self.full_at is None:
                self.full_at = self.number

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
