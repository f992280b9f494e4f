"""The recording options, and the trace of an argument: a trace itself, or a recorded source."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path

from ...base.claim import scratch_folder
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.options import changed, option
from ...models.replay.interface.options import ReplayOptions
from ...tracer.session.record_options import RecordOptions, default_options
from ...tracer.simt.kernel.run_options import RunProgress
from ...traces.address import as_given
from ..terminal.progress import ProgressReporter, progress
from .command_line import takes
from .complete import kernels

SOURCES = (".cu", ".ptx", ".py")


@dataclass(frozen=True, slots=True)
class Recording(RecordOptions):
    """How to record a source: launch lines, the compiler's options, and those of its session."""

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
    from ...tracer.session.filter import read_filter
    from ...tracer.session.session import Session
    from ...tracer.session.source.record import record

    attach(Session.at_close, replay)
    arch = recording.arch or DEFAULT_TARGET
    read_filter(recording)  # what makes no sense is refused before anything runs
    ran, share = RunProgress(), ProgressReporter()

    def how_far() -> str:
        share.update(ran.share)
        return share.text() if ran.blocks else launches_text(ran)

    with default_options(replace(recording, ran=ran)), progress(f"recording {source}", how_far):
        return record(source, recording.launch, out, arch=arch, options=recording.compiler_options)


def launches_text(ran: RunProgress) -> str:
    """How far it is where nobody knows how many launches there will be; empty at first.

    >>> launches_text(RunProgress(launches=1, part=0.5))
    '1 launch, 50 % of the next'
    """
    parts = [f"{ran.launches:,} launch{'es' * (ran.launches != 1)}"] if ran.launches else []
    if ran.part:
        parts.append(f"{100 * ran.part:.0f} % of the {'next' if parts else 'first launch'}")
    return ", ".join(parts)


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
            f"{as_given(source)}: --launch and the compiler's options need a source, not a trace"
        )
    else:
        yield source
