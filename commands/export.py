"""`cutrace export`: write what other programs read."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import CutraceError, nearest
from ._complete import starting
from ._replay import Replay, replays

PANEL = "Ask"
FORMATS = ("cuda-profile", "cuda-profile-csv")
DEVICE = "8800gtx"


@replays
def command(
    trace: Annotated[Path, typer.Argument(help="A trace")],
    replay: Replay,
    to: Annotated[
        str,
        typer.Option(
            metavar="|".join(FORMATS),
            autocompletion=starting(lambda: FORMATS),
            help="The old profiler's log, in keys and values or in CSV.",
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file; else print it.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="Its counters and options, one a line; else all that the device has."),
    ] = None,
) -> str:
    """Write a trace's counters as other programs read them."""
    from ..analyzer.log import render
    from ..analyzer.profile import analyze
    from ..analyzer.switch import read_config

    if to not in FORMATS:
        known = ", ".join(FORMATS)
        raise CutraceError(f"cannot export to {to!r}{nearest(to, FORMATS)}; there are {known}")
    lines = read_config(config) if config else None
    text = render(analyze(trace, **replay.arguments(DEVICE)), lines, to.endswith("csv"))
    if out is None:
        return text
    out.write_text(text, encoding="utf-8")
    return str(out)
