"""The recording options, and a trace from whatever was named: a trace, or a source to record."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from ...errors import CutraceError
from ...models.replay.options import ReplayOptions
from ...option import changed, option
from ...traces.folder.leftover import scratch_folder
from ..running.progress import progress
from .command_line import takes
from .complete import kernels

SOURCES = (".cu", ".ptx", ".py")
WATCHED = ("max_instructions", "check_uninitialized", "max_threads", "engine", "bounds")
"""Options that are those of a session, and of the engine (`choose_watch`)."""
KEPT = ("control", "sample_blocks", "sample_seed", "max_trace_size")
"""Options of a session that choose what is recorded (`choose_wish`), beside the only_ ones."""
_KEPT = "What is recorded"


@dataclass(frozen=True, slots=True)
class Recording:
    """How to record a source: launch lines, what the compiler is told, and what is kept."""

    launch: tuple[str, ...] = option(
        (),
        "A launch as CUDA writes it, in quotes; several run in order. Without it the"
        " source's own `// cutrace:` comments count.",
        "KERNEL<<<GRID,BLOCK>>>(ARGS)",
    )
    arch: str | None = option(None, "The architecture to compile for.", "compute_NN")
    define: tuple[str, ...] = option((), "Define a macro.", "NAME[=VALUE]", "-D", prefix="-D")
    include: tuple[Path, ...] = option(
        (), "Look for headers here too.", "FOLDER", "-I", prefix="-I"
    )
    standard: str | None = option(
        None, "The C++ standard.", "c++NN", *("-std", "--std"), prefix="-std="
    )
    max_instructions: int | None = option(
        None, "Stop a kernel when a warp has run this many; else 2**28.", "N"
    )
    check_uninitialized: bool = option(False, "Stop a kernel that loads what nobody wrote.")
    max_threads: int | None = option(
        None, "Refuse a launch of more threads than this; else 2**28.", "N"
    )
    engine: str | None = option(
        None, "What runs the kernel, to the same trace; else what suits it.", "array|compiled"
    )
    bounds: str | None = option(
        None,
        "What it is to access global memory outside of every array: a fault (strict), or"
        " as on a chip, which maps memory in pages of 2 MB, and told (report).",
        "strict|report",
    )
    only_kernels: str | None = option(
        None, "Record launches of these kernels alone.", "NAME,...", panel=_KEPT
    )
    only_launches: str | None = option(
        None, "Record these launches, counted from 0.", "N|N-M,...", panel=_KEPT
    )
    only_blocks: str | None = option(
        None, "Record these blocks of each grid.", "N|N-M,...", panel=_KEPT
    )
    only_warps: str | None = option(
        None, "Record these warps of each block.", "N|N-M,...", panel=_KEPT
    )
    only_lines: str | None = option(
        None, "Record the accesses of these lines.", "[FILE:]LINE,...", panel=_KEPT
    )
    only_spaces: str | None = option(
        None, "Record the accesses to these state spaces.", "global|shared|...", panel=_KEPT
    )
    control: bool = option(True, "Leave out which instructions the warps ran.", panel=_KEPT)
    sample_blocks: str | None = option(
        None,
        "Draw so many blocks and run only those; counters are scaled up, with intervals.",
        "N|F%",
        panel=_KEPT,
    )
    sample_seed: int | None = option(None, "Seed of the draw; else 0.", "S", panel=_KEPT)
    max_trace_size: str | None = option(
        None, "The largest trace: 500K, 10M, 2G.", "BYTES", panel=_KEPT
    )

    @property
    def compiler_options(self) -> tuple[str, ...]:
        """The options that are the compiler's, in its own spelling."""
        return (
            *(f"-D{text}" for text in self.define),
            *(f"-I{folder}" for folder in self.include),
            *((f"-std={self.standard}",) if self.standard else ()),
        )


records = takes(Recording, "recording", "Recording options", {"launch": kernels})
"""Decorates a verb that records: it takes the options above, and gets them as `recording`."""


def record_source(
    source: Path, out: Path | None, recording: Recording, replay: ReplayOptions
) -> Path:
    """Record a source into `out`; a profiler's log that the environment asks for comes with it.

    `replay` says how to replay for that log.
    """
    from ...analyzer.profilers.profiler_environment import attach
    from ...tracer.front.source import DEFAULT_TARGET
    from ...tracer.host.session import Session
    from ...tracer.host.source.record import record

    attach(Session.at_close, replay)
    arch = recording.arch or DEFAULT_TARGET
    with progress(f"recording {source}"), wished(recording):
        return record(source, recording.launch, out, arch=arch, options=recording.compiler_options)


@contextmanager
def wished(recording: Recording) -> Iterator[None]:
    """While the body runs, sessions that open watch for and record what was asked."""
    from ...tracer.host.selection.watch import choose_watch, watching
    from ...tracer.host.selection.wish import choose_wish, wishing

    asked = changed(recording)
    watched = {name: asked[name] for name in WATCHED if name in asked}
    kept = {name: asked[name] for name in KEPT if name in asked}
    only = {n.removeprefix("only_"): asked[n] for n in asked if n.startswith("only_")}
    with watching(choose_watch(**watched)), wishing(choose_wish(only, **kept)):
        yield


@contextmanager
def trace_of(source: Path, recording: Recording, replay: ReplayOptions) -> Iterator[Path]:
    """The trace at `source`, or a temporary one of the program there.

    What that program prints goes to stderr: stdout belongs to the report.
    """
    if source.suffix in SOURCES:
        with scratch_folder() as folder:
            out = Path(folder) / f"{source.stem}.cutrace"
            with redirect_stdout(sys.stderr):
                trace = record_source(source, out, recording, replay)
            yield trace
    elif changed(recording):
        raise CutraceError(
            f"{source}: --launch and the compiler's options need a source, not a trace"
        )
    else:
        yield source
