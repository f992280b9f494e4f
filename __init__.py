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
    from .commands.advise import advise as advise
    from .commands.analyze import miss_ratios as miss_ratios
    from .commands.check import check as check
    from .commands.counters import counters as counters
    from .commands.devices import devices as devices
    from .commands.judge import judge as judge
    from .commands.occupancy import occupancy as occupancy
    from .commands.report import report as report
    from .commands.running.recording_here import recording as recording
    from .commands.sweep import sweep as sweep
    from .commands.why import why as why
    from .tracer.session.session import Session as Session
    from .tracer.session.source.record import record as record
    from .traces.imports.import_trace import import_trace as import_trace
    from .traces.reader import read_trace as read_trace
    from .traces.reader import scan_traces as scan_traces
    from .traces.writer import TraceWriter as TraceWriter

_HOME = {  # of names that are no verbs, and of verbs whose Python function is another stage's
    "CutraceError": ".base.errors",
    "Session": ".tracer.session.session",
    "TraceWriter": ".traces.writer",
    "analyze": ".analyzer.profile",
    "compare": ".analyzer.comparison.comparison",
    "miss_ratios": ".commands.analyze",
    "import_trace": ".traces.imports.import_trace",
    "read_trace": ".traces.reader",
    "record": ".tracer.session.source.record",
    "recording": ".commands.running.recording_here",
    "scan_traces": ".traces.reader",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use: `import cutrace` alone stays cheap."""
    home = _HOME.get(name) or (name in _verbs() and f".commands.{name}")
    if home:
        from importlib import import_module

        value = getattr(import_module(home, __name__), name)
        if name == "Session":  # the recorder does not import profilers; it calls hooks
            from .analyzer.profilers.profiler_environment import attach

            attach(value.at_close)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _verbs() -> set[str]:
    """Return the names of the verbs, which are functions in files of their names."""
    from pathlib import Path

    names = {path.stem for path in (Path(__file__).parent / "commands").glob("[a-z]*.py")}
    return names - {"import"}


def load_ipython_extension(ipython: object) -> None:
    """`%load_ext cutrace` in IPython and Jupyter adds `%%cutrace`."""
    from .commands.running.recording_here import load

    load(ipython)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
