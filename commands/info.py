"""`cutrace info`: the contents of a trace, and whether it is intact."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CheckFailed
from ._trace_text import MANY, kernel_rows, launch_rows, session_rows
from .options.quote import quote
from .options.screen import fitted
from .options.tabular import Format, check_format, render_frame
from .running.asked import launches_asked
from .running.progress import progress

if TYPE_CHECKING:
    from ..traces.reader import Trace

PANEL = "Look up"
EXAMPLES = (
    "cutrace info scale.cutrace",
    "cutrace info scale.cutrace --verify",
)


def command(
    trace: Annotated[Path, typer.Argument(help="A trace")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check all that the format promises.")
    ] = False,
    launches: Annotated[
        list[str] | None,
        typer.Option("--launch", metavar="N|N-M,...", help="Show these launches in full."),
    ] = None,
    format: Format = "table",
) -> str:
    """Show what was recorded; with --verify, check that the trace is sound."""
    from ..analyzer.text.align import align
    from ..traces.reader import read_trace

    check_format(format)
    opened = read_trace(trace)
    shown = launches_asked(opened, launches or ()).launches
    if format != "table":
        from .answers.lists import launches as frame

        if verify:
            _verdict(opened)
        return render_frame("info", frame(shown), format)
    rows = list(session_rows(opened))
    if len(shown) > MANY and not launches:
        rows += [("",), *kernel_rows(opened)]
    else:
        for launch in shown:
            rows += [("",), *launch_rows(launch)]
    if verify:
        rows += [("",), ("sound", _verdict(opened))]
    return fitted("\n".join((*align(rows), "", f"next: cutrace analyze {quote(trace)}")))


def _verdict(trace: "Trace") -> str:
    """The result of `verify`; `CheckFailed` with all findings if the trace is not sound."""
    from ..traces.verify import STAGES, verify

    with progress("verifying") as share:
        share.expect(trace, sum(len(stage.get("accesses", ())) for stage in STAGES))
        broken = verify(share.listen(trace))
    if broken:
        raise CheckFailed(f"{trace.label} is not sound:\n" + "\n".join(f"  {b}" for b in broken))
    return "every promise of the format holds"
