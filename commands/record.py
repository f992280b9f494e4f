"""`cutrace record`: run a kernel, or a whole program, and write the trace of what it launches."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import CutraceError, KernelFault
from ..traces.address import as_given
from .options.command_line import quote
from .options.complete import devices
from .options.recording import Recording, record_source, records
from .running.analyzer_hooks import attach_profiler_log
from .running.program import (
    TakesProgram,
    build,
    choose_device,
    program_of,
    record_command,
    script_command,
)

PANEL = "Record"
CLASS = TakesProgram
EXAMPLES = (
    "cutrace record scale.cu",
    'cutrace record scale.cu --launch "scale<<<64, 256>>>(out:f32[16384], in:f32[16384], 16384)"',
    "cutrace record app.cu -o app.cutrace -- 1024",
    "cutrace record script.py",
)


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Whole programs", **more)


@records
def command(
    ctx: typer.Context,
    recording: Recording,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SOURCE... [-- ARGUMENTS | -- PROGRAM ARGUMENTS]",
            help="CUDA C++ (.cu), PTX (.ptx), or a Python script (.py) with its arguments. With --,"
            " the sources of a program, or none and a program behind it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The trace (default: the source's name with .cutrace, in this folder).",
        ),
    ] = None,
    device: Annotated[
        str | None,
        _option(
            *("--device", "-d"),
            metavar="NAME",
            autocompletion=devices,
            help="The device that the program is built for and sees.",
        ),
    ] = None,
    launches: Annotated[
        int | None,
        _option("--launches", metavar="N", help="Stop the program after N recorded launches."),
    ] = None,
    skip: Annotated[
        int | None, _option("--skip", metavar="N", help="Do not record the first N launches.")
    ] = None,
    kernels: Annotated[
        str | None,
        _option(
            *("--kernels",),
            metavar="REGEX",
            help="Record only kernels whose name matches; others run unrecorded.",
        ),
    ] = None,
    timeout: Annotated[
        float | None, _option("--timeout", metavar="S", help="Stop the program after S seconds.")
    ] = None,
    clock: Annotated[
        str,
        _option(
            "--clock",
            metavar="host|estimate",
            help="The times of CUDA events: this machine's, or the sum of the estimates of the"
            " launches before them.",
        ),
    ] = "host",
    nvcc_flags: Annotated[
        str, _option("--nvcc-flags", metavar="FLAGS", help="More options for nvcc, in quotes.")
    ] = "",
) -> str | int:
    """Run a kernel, or a whole program, and write the trace of its launches."""
    words = program_of(ctx)
    name = str(sources[0]) if sources else ""
    if script := script_command(sources or [], words):
        words, sources = script, None
    if words is None:
        trace = _record(_only(sources or []), out, recording)
        return f"{as_given(trace)}\nnext: cutrace analyze {quote(trace)}"
    from ..tracer.program.launches import read_choice
    from ..tracer.program.run import CLOCKS, Order

    choice = read_choice(kernels, skip)
    shown, path = choose_device(device), None
    if sources:
        path = build(sources, recording, nvcc_flags, shown)
        words = (f"./{path.name}", *words)
    if not words:
        raise CutraceError("nothing stands behind --: expected a program, as in -- ./app")
    if clock not in CLOCKS:
        raise CutraceError(f"--clock {clock}: expected {' or '.join(CLOCKS)}")
    order = Order(words, path, launches, timeout, choice=choice, clock=clock)
    return record_command(order, name or words[0], out, shown, recording)


def _record(source: Path, out: Path | None, recording: Recording) -> Path:
    attach_profiler_log()
    try:
        return record_source(source, out, recording)
    except KernelFault as fault:
        raise KernelFault("\n".join((str(fault), *getattr(fault, "__notes__", ())))) from fault


def _only(sources: list[Path]) -> Path:
    """Return the source; raise CutraceError unless there is exactly one."""
    if len(sources) == 1:
        return sources[0]
    if sources:
        raise CutraceError(
            f"{len(sources)} sources: they are built into a program if `--` stands behind them, "
            f"as in cutrace record {' '.join(map(quote, sources))} --"
        )
    raise CutraceError("name a source, or a program behind --, as in cutrace record -- ./app")
