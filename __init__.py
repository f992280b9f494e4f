"""Show how a CUDA kernel uses the memory system, and why, without a GPU."""

from typing import TYPE_CHECKING

from .base.version import __version__ as __version__

__all__ = [
    "CutraceError",
    "Session",
    "TraceWriter",
    "advise",
    "analyze",
    "check",
    "compare",
    "counters",
    "devices",
    "import_trace",
    "judge",
    "miss_ratios",
    "occupancy",
    "read_trace",
    "record",
    "recording",
    "report",
    "scan_traces",
    "sweep",
    "why",
]
if TYPE_CHECKING:
    from .analyzer.comparison.comparison import compare as compare
    from .analyzer.profile import analyze as analyze
    from .base.errors import CutraceError as CutraceError
    from .commands.api.advice import advise as advise
    from .commands.api.check import check as check
    from .commands.api.judge import judge as judge
    from .commands.api.lists import counters as counters
    from .commands.api.lists import devices as devices
    from .commands.api.miss_ratios import miss_ratios as miss_ratios
    from .commands.api.occupancy import occupancy as occupancy
    from .commands.api.report import report as report
    from .commands.api.why import why as why
    from .commands.running.recording_here import recording as recording
    from .commands.running.sweep import sweep as sweep
    from .tracer.session.session import Session as Session
    from .tracer.session.source.record import record as record
    from .traces.imports.import_trace import import_trace as import_trace
    from .traces.reader import read_trace as read_trace
    from .traces.reader import scan_traces as scan_traces
    from .traces.writer import TraceWriter as TraceWriter

_HOME = {
    "CutraceError": ".base.errors",
    "Session": ".tracer.session.session",
    "TraceWriter": ".traces.writer",
    "advise": ".commands.api.advice",
    "analyze": ".analyzer.profile",
    "check": ".commands.api.check",
    "compare": ".analyzer.comparison.comparison",
    "counters": ".commands.api.lists",
    "devices": ".commands.api.lists",
    "import_trace": ".traces.imports.import_trace",
    "judge": ".commands.api.judge",
    "miss_ratios": ".commands.api.miss_ratios",
    "occupancy": ".commands.api.occupancy",
    "read_trace": ".traces.reader",
    "record": ".tracer.session.source.record",
    "recording": ".commands.running.recording_here",
    "report": ".commands.api.report",
    "scan_traces": ".traces.reader",
    "sweep": ".commands.running.sweep",
    "why": ".commands.api.why",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use: `import cutrace` alone stays cheap."""
    if name in _HOME:
        from importlib import import_module

        value = getattr(import_module(_HOME[name], __name__), name)
        if name == "Session":  # the recorder does not import profilers; it calls hooks
            from .analyzer.profilers.profiler_environment import attach

            attach(value.at_close)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(ipython: object) -> None:
    """`%load_ext cutrace` in IPython and Jupyter adds `%%cutrace`."""
    from .commands.running.recording_here import load

    load(ipython)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
