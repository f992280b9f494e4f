"""Device time of launches, from a replay of a temporary trace: lower bounds, or estimates."""

from contextlib import ExitStack
from pathlib import Path

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


def estimate_time(device: str, trace: Path) -> float:
    """Return the sum of the launches' estimates in nanoseconds; of their bounds where a device has
    no estimate, and 0 for what it cannot run.
    """
    profile = analyze(trace, device)
    return sum(
        one.estimate.ns if one.estimate else float(one.counters["bound_time"] or 0)
        for one in profile.launches
        if not one.refusal
    )
