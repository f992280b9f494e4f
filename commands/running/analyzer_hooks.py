"""What the analyzer contributes to a recording, resolved by name when a recording uses it.

The recorder runs without the analyzer and the replay. Two features need them: the log of NVIDIA's
first profiler at the end of a session, and the device time that a program measures: with events,
or in place of a clock.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...tracer.program.session import Stopwatch

_ROOT = __package__.partition(".")[0]


def attach_profiler_log() -> None:
    """Let sessions of this process write the profiler log that the environment requests."""
    from ...tracer.session.session import Session

    profiler = import_module(f"{_ROOT}.analyzer.profilers.profiler_environment")
    profiler.attach(Session.at_close, profiler.ReplayOptions())


def make_stopwatch(device: str) -> "Stopwatch":
    """Return a stopwatch for launches on a device."""
    stopwatch: Stopwatch = import_module(f"{__package__}.stopwatch").Stopwatch(device)
    return stopwatch


def estimate_time(device: str, trace: Path) -> float:
    """Return the nanoseconds of a trace's launches on a device, one after another."""
    nanoseconds: float = import_module(f"{__package__}.stopwatch").estimate_time(device, trace)
    return nanoseconds
