"""The recording options, and a trace from whatever was named: a trace, or a source to record."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import CutraceError
from ...traces.folder.leftover import scratch_folder
from ..running.progress import progress
from .complete import kernels
from .keeping import Keeping, keeping_options
from .quote import quote
from .replay import with_options

SOURCES = (".cu", ".ptx", ".py")


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Recording options", **more)


@dataclass(frozen=True, slots=True)
class Recording:
    """How to record a source: launch lines, and what the compiler is told."""

    launches: tuple[str, ...]
    arch: str | None
    options: tuple[str, ...]
    max_instructions: int | None = None
    check_uninitialized: bool | None = None
    max_threads: int | None = None
    engine: str | None = None
    bounds: str | None = None
    jobs: int | None = None
    keeping: Keeping = field(default_factory=lambda: Keeping({}))

    def typed(self) -> str:
        """The options again, as one would type them; empty if none was given."""
        words = [word for launch in self.launches for word in ("--launch", launch)]
        words += ["--arch", self.arch] if self.arch else []
        for name in ("max_instructions", "max_threads"):
            most = getattr(self, name)
            words += [] if most is None else [f"--{name.replace('_', '-')}", str(most)]
        words += ["--check-uninitialized"] if self.check_uninitialized else []
        words += ["--engine", self.engine] if self.engine else []
        words += ["--bounds", self.bounds] if self.bounds else []
        words = [quote(word) for word in (*words, *self.options)]
        return "".join(f" {word}" for word in (*words, *self.keeping.typed()))


def recording_options(
    launch: Annotated[
        list[str] | None,
        _option(
            metavar="KERNEL<<<GRID,BLOCK>>>(ARGS)",
            autocompletion=kernels,
            help="A launch as CUDA writes it, in quotes; several run in order. Without it the"
            " source's own `// cutrace:` comments count.",
        ),
    ] = None,
    arch: Annotated[
        str | None, _option(metavar="compute_NN", help="The architecture to compile for.")
    ] = None,
    define: Annotated[
        list[str] | None, _option("-D", metavar="NAME[=VALUE]", help="Define a macro.")
    ] = None,
    include: Annotated[
        list[Path] | None, _option("-I", metavar="FOLDER", help="Look for headers here too.")
    ] = None,
    standard: Annotated[
        str | None, _option("-std", "--std", metavar="c++NN", help="The C++ standard.")
    ] = None,
    max_instructions: Annotated[
        int | None,
        _option(metavar="N", help="Stop a kernel when a warp has run this many; else 2**28."),
    ] = None,
    check_uninitialized: Annotated[
        bool, _option("--check-uninitialized", help="Stop a kernel that loads what nobody wrote.")
    ] = False,
    max_threads: Annotated[
        int | None,
        _option(metavar="N", help="Refuse a launch of more threads than this; else 2**28."),
    ] = None,
    engine: Annotated[
        str | None,
        _option(
            metavar="array|compiled",
            help="What runs the kernel, to the same trace; else what suits it.",
        ),
    ] = None,
    bounds: Annotated[
        str | None,
        _option(
            metavar="strict|report",
            help="What it is to access global memory outside of every array: a fault (strict), or"
            " as on a chip, which maps memory in pages of 2 MB, and told (report).",
        ),
    ] = None,
) -> Recording:
    """Gather the options in the compiler's own spelling."""
    options = [
        *(f"-D{text}" for text in define or ()),
        *(f"-I{folder}" for folder in include or ()),
        *([f"-std={standard}"] if standard else ()),
    ]
    checks = max_instructions, check_uninitialized or None, max_threads, engine, bounds
    return Recording(tuple(launch or ()), arch, tuple(options), *checks)


def _recording_and_keeping(**given: Any) -> Recording:
    """Gather the options of both kinds."""
    keeping = {name: given.pop(name) for name in signature(keeping_options).parameters}
    return replace(recording_options(**given), keeping=keeping_options(**keeping))


_recording_and_keeping.__signature__ = Signature(  # type: ignore[attr-defined]
    [
        *signature(recording_options).parameters.values(),
        *signature(keeping_options).parameters.values(),
    ]
)

records = with_options(_recording_and_keeping, "recording")
"""Decorates a verb that records: it takes the options above, and gets them as `recording`."""


def record_source(
    source: Path, out: Path | None, recording: Recording, arguments: dict[str, Any]
) -> Path:
    """Record a source into `out`; a profiler's log that the environment asks for comes with it.

    `arguments` are those of `analyze()` for that log.
    """
    from ...analyzer.profilers.profiler_environment import attach
    from ...tracer.front.source import DEFAULT_TARGET
    from ...tracer.host.session import Session
    from ...tracer.host.source.record import record

    attach(Session.at_close, arguments)
    arch = recording.arch or DEFAULT_TARGET
    if recording.jobs is None:
        recording = replace(recording, jobs=arguments.get("jobs"))
    with progress(f"recording {source}"), wished(recording):
        return record(source, recording.launches, out, arch=arch, options=recording.options)


@contextmanager
def wished(recording: Recording) -> Iterator[None]:
    """While the body runs, sessions that open watch for and record what was asked."""
    from ...tracer.host.selection.watch import choose_watch, watching
    from ...tracer.host.selection.wish import choose_wish, wishing

    watch = choose_watch(
        recording.max_instructions,
        recording.check_uninitialized,
        recording.max_threads,
        recording.engine,
        recording.jobs,
        recording.bounds,
    )
    with watching(watch), wishing(choose_wish(**recording.keeping.asked)):
        yield


@contextmanager
def trace_of(source: Path, recording: Recording, arguments: dict[str, Any]) -> Iterator[Path]:
    """The trace at `source`, or a temporary one of the program there.

    What that program prints goes to stderr: stdout belongs to the report.
    """
    if source.suffix in SOURCES:
        with scratch_folder() as folder:
            out = Path(folder) / f"{source.stem}.cutrace"
            with redirect_stdout(sys.stderr):
                trace = record_source(source, out, recording, arguments)
            yield trace
    elif recording.typed():
        raise CutraceError(
            f"{source}: --launch and the compiler's options need a source, not a trace"
        )
    else:
        yield source
