"""Lower bound of launches' device time, from a replay of a temporary trace."""

from contextlib import ExitStack

from ...analyzer.profile import analyze
from ...base.claim import scratch_folder
from ...traces.writer import TraceWriter


class Stopwatch:
    """Records launches in a temporary trace, for their time."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._exits = ExitStack()
        folder = self._exits.enter_context(scratch_folder())
        self.recorder = TraceWriter(folder / "counted.cutrace", owns_columns=True)
        self._exits.callback(self.recorder.discard)

    def nanoseconds(self) -> float:
        """Return the sum of the launches' bounds; 0 if nothing is known."""
        with self._exits:
            self.recorder.close()
            profile = analyze(self.recorder.path, self._device)
        bounds = (each.counters["bound_time"] for each in profile.launches)
        return float(sum(bound for bound in bounds if bound is not None))
