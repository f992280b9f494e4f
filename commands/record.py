"""`cutrace record`: run a program's kernels and write their trace."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..errors import KernelFault
from ._quote import quote
from ._recording import Recording, record_source, records

PANEL = "Record"


@records
def command(
    source: Annotated[
        Path,
        typer.Argument(help="CUDA C++ (.cu), PTX (.ptx), or a Python script with a Session (.py)"),
    ],
    recording: Recording,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The trace; else the source's name with .cutrace, here."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Run the blocks of a launch in N threads, a core each at most, where none uses"
            " what another writes: the trace is the same.",
        ),
    ] = None,
) -> str:
    """Run a kernel and write its trace."""
    try:
        trace = record_source(source, out, replace(recording, jobs=jobs), {})
    except KernelFault as fault:
        raise KernelFault("\n".join((str(fault), *getattr(fault, "__notes__", ())))) from fault
    return f"{trace}\nnext: cutrace analyze {quote(trace)}"
