"""`cutrace record`: run a kernel, or a whole program, and write the trace of what it launches."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from ..base.errors import CutraceError, KernelFault
from ..traces.address import as_given
from .options.command_line import device_of, quote
from .options.complete import Complete, devices
from .options.recording import RECORDING, Recording, record_source
from .options.verb import ProgramWords, argument, value, verb
from .running.analyzer_hooks import attach_profiler_log
from .running.program import build, choose_device, command_of, record_command


def _of_program(help: str, metavar: str, *names: str, complete: Complete | None = None) -> Any:
    return value(help, metavar, *names, complete=complete, rich_help_panel="Whole programs")


@verb(
    "Record",
    "cutrace record scale.cu",
    'cutrace record scale.cu --launch "scale<<<64, 256>>>(out:f32[16384], in:f32[16384], 16384)"',
    "cutrace record app.cu -o app.cutrace -- 1024",
    "cutrace record app.cu -l cublas -- 1024",
    "cutrace record script.py",
)
def record(
    sources: Annotated[
        list[Path] | None,
        argument(
            "CUDA C++ (.cu), PTX (.ptx), or a Python script (.py) with its arguments. With --,"
            " the sources of a program, or none and a program behind it.",
            "SOURCE... [-- ARGUMENTS | -- PROGRAM ARGUMENTS]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        value(
            "The trace (default: the source's name with .cutrace, in this folder).",
            None,
            *("--out", "-o"),
        ),
    ] = None,
    device: Annotated[
        str | None,
        _of_program(
            "The device that the program is built for and sees.",
            "NAME",
            *("--device", "-d"),
            complete=devices,
        ),
    ] = None,
    launches: Annotated[
        int | None, _of_program("Stop the program after N recorded launches.", "N")
    ] = None,
    skip: Annotated[int | None, _of_program("Do not record the first N launches.", "N")] = None,
    kernels: Annotated[
        str | None,
        _of_program("Record only kernels whose name matches; others run unrecorded.", "REGEX"),
    ] = None,
    kernel_name_base: Annotated[
        str,
        _of_program(
            "The name that --kernels matches; by default one of the last two.",
            "function|demangled|mangled",
        ),
    ] = "",
    timeout: Annotated[float | None, _of_program("Stop the program after S seconds.", "S")] = None,
    clock: Annotated[
        str,
        _of_program(
            "The times of CUDA events: this machine's, or the sum of the estimates of the"
            " launches before them.",
            "host|estimate",
        ),
    ] = "host",
    nvidia_libraries: Annotated[
        str,
        _of_program(
            "NVIDIA's libraries: compute their calls on the host, uncounted, or run themselves,"
            " so that their kernels are recorded.",
            "compute|run",
            "--libraries",
        ),
    ] = "compute",
    nvcc_flags: Annotated[str, _of_program("More options for nvcc, in quotes.", "FLAGS")] = "",
    libraries: Annotated[
        list[str] | None,
        _of_program("Link the program with this library.", "NAME", "--library", "-l"),
    ] = None,
    library_folders: Annotated[
        list[Path] | None,
        _of_program("Look for libraries here too.", "FOLDER", "--library-folder", "-L"),
    ] = None,
    *,
    program: ProgramWords = None,
    recording: Recording = RECORDING,
    **options: Any,
) -> str | int:
    """Run a kernel, or a whole program, and write the trace of its launches."""
    words = program
    name = str(sources[0]) if sources else ""
    if command := command_of(sources or [], words):
        words, sources = command, None
    links = [f"-L{folder}" for folder in library_folders or ()]
    links += [f"-l{each}" for each in libraries or ()]
    building = [*links, f"--nvcc-flags {quote(nvcc_flags)}"] if nvcc_flags else links
    if building and (words is None or not sources):
        example = f"cutrace record app.cu {building[-1]} --"
        raise CutraceError(f"{building[-1]} is for the sources of a program, as in {example}")
    if words is None:
        _refuse_for_kernel(
            {"launches": launches, "skip": skip, "kernels": kernels, "timeout": timeout}
            | {"clock": clock, "libraries": nvidia_libraries}
        )
        attach_profiler_log()
        try:
            trace = record_source(_only(sources or []), out, recording)
        except KernelFault as fault:
            notes = getattr(fault, "__notes__", ())
            raise KernelFault("\n".join((str(fault), *notes))) from fault
        again = f"cutrace analyze {quote(trace)}{device_of([recording.code])}"
        return f"{as_given(trace)}\nnext: {again}"
    from ..tracer.program.launches import read_choice
    from ..tracer.program.run import CLOCKS, LIBRARIES, Order
    from ..traces.trace_folder import check_target

    choice = read_choice(kernels, skip, kernel_name_base)
    if not sources and not words:
        raise CutraceError("nothing stands behind --: expected a program, as in -- ./app")
    if clock not in CLOCKS:
        raise CutraceError(f"--clock {clock}: expected {' or '.join(CLOCKS)}")
    if nvidia_libraries not in LIBRARIES:
        raise CutraceError(f"--libraries {nvidia_libraries}: expected {' or '.join(LIBRARIES)}")
    if out:
        check_target(out)
    shown, path = choose_device(device), None
    if sources:  # last: nvcc takes long
        path = build(sources, recording, " ".join((nvcc_flags, shlex.join(links))), shown)
        words = (f"./{path.name}", *words)
    options = {"clock": clock, "libraries": nvidia_libraries}
    order = Order(words, path, launches, timeout, choice=choice, **options)
    return record_command(order, name or words[0], out, shown, recording)


def _refuse_for_kernel(options: Mapping[str, object]) -> None:
    """Raise CutraceError if an option of programs is not as by default."""
    for name, given in options.items():
        if given not in (None, "host", "compute"):
            option = f"--{name} {given}"
            raise CutraceError(f"{option} is for a program, as in cutrace record {option} -- ./app")


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
