"""The trace for a command line: a trace itself, a recorded source, or a recorded program.

A Python script that imports cutrace runs in this process; others run as programs.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from ...base.claim import scratch_folder
from ...base.errors import CutraceError, KernelFault
from ...base.options import changed
from ...models.replay.interface.options import ReplayOptions
from ...traces.address import as_given
from ..options.command_line import quote
from ..options.recording import SOURCES, Recording, record_source
from ..options.selection import Reading
from .program import build, choose_device, ending_text, run_program, script_command, tell_end


@contextmanager
def trace_of(source: Path, recording: Recording, replay: ReplayOptions) -> Iterator[Path]:
    """Yield the path of the trace at `source`, or of a temporary one of the program there.

    The program's output goes to stderr: stdout carries the report. `replay` configures the replay
    for the profiler log that the environment requests.
    """
    if isinstance(recording, Reading):
        recording = recording.for_source
    if source.suffix in SOURCES:
        from ...analyzer.profilers.profiler_environment import attach
        from ...tracer.session.session import Session

        with scratch_folder() as folder:
            out = Path(folder) / f"{source.stem}.cutrace"
            with redirect_stdout(sys.stderr):
                attach(Session.at_close, replay)
                trace = record_source(source, out, recording)
            yield trace
    elif changed(recording):
        raise CutraceError(
            f"{as_given(source)}: the options of a recording need a source, not a trace; of a"
            " trace, --launch takes numbers, as in 3 or 0-7"
        )
    else:
        yield source


@contextmanager
def resolve_trace(
    source: Path | None,
    program: tuple[str, ...] | None,
    recording: Recording,
    replay: ReplayOptions,
    must_succeed: bool = False,
    must_run: bool = False,
) -> Iterator[Path]:
    """Yield the path of the trace at `source`, or of a temporary one; `program` is after `--`.

    A program's output goes to stderr: stdout carries the report. With `must_succeed` CutraceError
    is raised for one that ends with an exit status other than 0, with `must_run` KernelFault for
    one of whose kernels some fault; else it is enough that some launches are recorded.
    """
    if source is not None and not _is_run(source, program):
        with trace_of(source, recording, replay) as trace:
            yield trace
        return
    if source is None and not program:
        raise CutraceError("name a trace, a source, or a program behind --, as in -- ./app")
    with scratch_folder() as folder:
        trace = folder / f"{Path(str(source) if source else (program or ('',))[0]).stem}.cutrace"
        _record(source, program or (), trace, recording, replay, must_succeed, must_run)
        yield trace


def _is_run(source: Path, program: tuple[str, ...] | None) -> bool:
    """Return whether the input runs as a program: it is no trace, and no source with launches.

    A Python script that does not import cutrace launches its kernels itself, as `record` takes it.
    """
    if source.is_dir():
        return False
    return program is not None or is_program(source) or bool(script_command([source], None))


def is_program(path: Path) -> bool:
    """Return whether a file is executable and no source of kernels."""
    return path.suffix not in SOURCES and path.is_file() and os.access(path, os.X_OK)


def _record(
    source: Path | None,
    words: tuple[str, ...],
    trace: Path,
    recording: Recording,
    replay: ReplayOptions,
    must_succeed: bool,
    must_run: bool,
) -> None:
    """Record a program into `trace`; raise CutraceError if it launches nothing."""
    from ...tracer.program.run import Order

    device, path = choose_device(next(iter(replay.devices), None)), None
    if source is not None and (script := script_command([source], words)):
        words = script
    elif source is not None and is_program(source):
        words = (str(source) if os.sep in str(source) else f"./{source}", *words)
    elif source is not None:
        path = build([source], recording, "", device)
        words = (f"./{path.name}", *words)
    order = Order(words, path, output=sys.stderr.fileno())
    with redirect_stdout(sys.stderr):
        ended = run_program(order, trace, device, recording)
    if ended.status or ended.why or ended.refused:
        tell_end(words[0], trace, ended, hint=False)
    if ended.faults and (must_run or not ended.launches):
        kernels = "a kernel" if ended.faults == 1 else f"{ended.faults} launches"
        raise KernelFault(f"{words[0]}: {kernels} failed, as said above")
    if not ended.launches:
        problem = f"{words[0]}: it launched no kernel, so that there is nothing to count"
        raise CutraceError(problem, "launch")
    if must_succeed and ended.status:
        raise CutraceError(f"{words[0]}: {ended.why or ending_text(ended.status)}", "program")


def program_suffix(program: tuple[str, ...] | None) -> str:
    """Return the end of a command line with a program: ` -- ./app 1024`."""
    return "" if program is None else "".join(f" {quote(word)}" for word in ("--", *program))
