"""`cutrace record`: run a program's kernels and write their trace."""

from pathlib import Path
from typing import Annotated

import typer

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
) -> str:
    """Run a kernel and write its trace."""
    trace = record_source(source, out, recording, {})
    return f"{trace}\nnext: cutrace analyze {quote(trace)}"
