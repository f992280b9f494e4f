"""The trace of a verb: a trace itself, a recorded source, or a recorded program.

A Python script that imports cutrace runs in this process; others run as programs. What is recorded
stays for the command line, in Python for as long as the process.
"""

import sys
from contextlib import nullcontext, redirect_stdout
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.claim import scratch_folder
from ...base.errors import CutraceError, KernelFault
from ...base.scope import has_scope, stay_open
from ...models.replay.interface.options import ReplayOptions
from ...traces.address import as_given
from ..options.command_line import typed
from ..options.recording import SOURCES, Recording, record_source
from ..options.selection import Reading
from .program import build, choose_device, command_of, ending_text, run_program, tell_end

if TYPE_CHECKING:
    from ...traces.reader import Trace


def open_trace(
    subject: "Trace | str | PathLike[str] | None",
    recording: Recording,
    replay: ReplayOptions,
    program: tuple[str, ...] | None = None,
    must_succeed: bool = False,
    must_run: bool = False,
) -> "Trace":
    """Return a trace, or one of a source or a program, which is recorded; `program` is after `--`.

    On a command line its output goes to stderr: stdout carries the report. With `must_succeed`
    CutraceError is raised for a program that ends with an exit status other than 0, with `must_run`
    KernelFault for one of whose kernels some fault; else it is enough that some launches are
    recorded. `replay` configures the replay for the profiler log that the environment requests.
    """
    from ...traces.reader import Trace, read_trace

    if isinstance(subject, Trace):
        return subject
    source = None if subject is None else Path(subject)
    if source is not None and not _is_run(source, program):
        return read_trace(_trace_of(source, recording, replay))
    if source is None and not program:
        raise CutraceError("name a trace, a source, or a program behind --, as in -- ./app")
    folder = stay_open(scratch_folder())
    trace = folder / f"{Path(str(source) if source else (program or ('',))[0]).stem}.cutrace"
    _record(source, program or (), trace, recording, replay, must_succeed, must_run)
    return read_trace(trace)


def _trace_of(source: Path, recording: Recording, replay: ReplayOptions) -> Path:
    """Return the path of the trace at `source`, or of one of the kernels there."""
    if isinstance(recording, Reading):
        recording = recording.for_source
    if source.suffix in SOURCES:
        from ...analyzer.profilers.profiler_environment import attach
        from ...tracer.session.session import Session

        out = stay_open(scratch_folder()) / f"{source.stem}.cutrace"
        with redirect_stdout(sys.stderr) if has_scope() else nullcontext():
            attach(Session.at_close, replay)
            return record_source(source, out, recording)
    if typed(recording):  # --jobs is also the replay's
        raise CutraceError(
            f"{as_given(source)}: the options of a recording need a source, not a trace; of a"
            " trace, --launch takes numbers, as in 3 or 0-7"
        )
    return source


def _is_run(source: Path, program: tuple[str, ...] | None) -> bool:
    """Return whether the input runs as a program: it is no trace, and no source with launches.

    A Python script that does not import cutrace launches its kernels itself, as `record` takes it.
    """
    if source.is_dir():
        return False
    return program is not None or bool(command_of([source], None))


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
    if source is not None and (command := command_of([source], words)):
        words = command
    elif source is not None:
        path = build([source], recording, "", device)
        words = (f"./{path.name}", *words)
    order = Order(words, path, output=sys.stderr.fileno())
    with redirect_stdout(sys.stderr):
        ended = run_program(order, trace, device, recording)
    if ended.status or ended.why or ended.refused:
        tell_end(words[0], trace, ended, hint=None)
    if ended.faults and (must_run or not ended.launches):
        kernels = "a kernel" if ended.faults == 1 else f"{ended.faults} launches"
        raise KernelFault(f"{words[0]}: {kernels} failed, as said above")
    if not ended.launches:
        problem = f"{words[0]}: it launched no kernel, so that there is nothing to count"
        raise CutraceError(problem, "launch")
    if must_succeed and ended.status:
        raise CutraceError(f"{words[0]}: {ended.why or ending_text(ended.status)}", "program")
