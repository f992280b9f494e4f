"""`cutrace info`: what is in a trace, and whether it is sound."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CheckFailed
from ._trace_text import launch_rows, session_rows
from .options.quote import quote

if TYPE_CHECKING:
    from ..traces.reader import Trace

PANEL = "Look up"


def command(
    trace: Annotated[Path, typer.Argument(help="A trace")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check all that the format promises.")
    ] = False,
) -> str:
    """Show what was recorded; with --verify, check that the trace is sound."""
    from ..analyzer.text.align import align
    from ..traces.reader import read_trace

    opened = read_trace(trace)
    rows = list(session_rows(opened))
    for launch in opened.launches:
        rows += [("",), *launch_rows(launch)]
    if verify:
        rows += [("",), ("sound", _verdict(opened))]
    return "\n".join((*align(rows), "", f"next: cutrace analyze {quote(trace)}"))


def _verdict(trace: "Trace") -> str:
    """What `verify` found; `CheckFailed` with all of it if the trace is not sound."""
    from ..traces.verify import verify

    if broken := verify(trace):
        raise CheckFailed(f"{trace.path} is not sound:\n" + "\n".join(f"  {b}" for b in broken))
    return "every promise of the format holds"
