"""What a CUDA kernel does to the memory system, and why, without a GPU."""

from typing import TYPE_CHECKING

from .version import __version__ as __version__

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
    from .analyzer.comparison.compare import compare as compare
    from .analyzer.profile import analyze as analyze
    from .commands.answers.advice import advise as advise
    from .commands.answers.check import check as check
    from .commands.answers.lists import counters as counters
    from .commands.answers.lists import devices as devices
    from .commands.answers.miss_ratios import miss_ratios as miss_ratios
    from .commands.answers.occupancy import occupancy as occupancy
    from .commands.answers.report import report as report
    from .commands.answers.why import why as why
    from .commands.running.recording_here import recording as recording
    from .commands.running.sweep import sweep as sweep
    from .errors import CutraceError as CutraceError
    from .tracer.host.session import Session as Session
    from .tracer.host.source.record import record as record
    from .traces.foreign.importing import import_trace as import_trace
    from .traces.reader import read_trace as read_trace
    from .traces.scan import scan_traces as scan_traces
    from .traces.writer import TraceWriter as TraceWriter

_HOME = {
    "CutraceError": ".errors",
    "Session": ".tracer.host.session",
    "TraceWriter": ".traces.writer",
    "advise": ".commands.answers.advice",
    "analyze": ".analyzer.profile",
    "check": ".commands.answers.check",
    "compare": ".analyzer.comparison.compare",
    "counters": ".commands.answers.lists",
    "devices": ".commands.answers.lists",
    "import_trace": ".traces.foreign.importing",
    "miss_ratios": ".commands.answers.miss_ratios",
    "occupancy": ".commands.answers.occupancy",
    "read_trace": ".traces.reader",
    "record": ".tracer.host.source.record",
    "recording": ".commands.running.recording_here",
    "report": ".commands.answers.report",
    "scan_traces": ".traces.scan",
    "sweep": ".commands.running.sweep",
    "why": ".commands.answers.why",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import cutrace` alone stays cheap."""
    if name in _HOME:
        from importlib import import_module

        value = getattr(import_module(_HOME[name], __name__), name)
        if name == "Session":  # the recorder knows no profiler; it calls what it is handed
            from .analyzer.profilers.profiler_environment import attach

            attach(value.at_close)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(ipython: object) -> None:
    """`%load_ext cutrace` in IPython and Jupyter brings `%%cutrace`."""
    from .commands.running.magic import load

    load(ipython)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
