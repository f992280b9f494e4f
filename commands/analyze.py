"""`cutrace analyze`: replay a trace on devices and show the counters."""

import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._complete import counters, formats, last_of, starting
from ._progress import progress
from ._recording import Recording, records, trace_of
from ._replay import Replay, replays

if TYPE_CHECKING:
    from ..analyzer.view import View

PANEL = "Ask"


@records
@replays
def command(
    source: Annotated[Path, typer.Argument(help="A trace, or a source to record for this once")],
    replay: Replay,
    recording: Recording,
    names: Annotated[
        str | None,
        typer.Option(
            *("--counters",),
            metavar="NAME,...",
            autocompletion=last_of(counters),
            help="Show these counters only, zeros too.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option(metavar="launch|line|array|instruction", help="What a row counts.")
    ] = "launch",
    format: Annotated[
        str,
        typer.Option(
            metavar="table|csv|json|md",
            autocompletion=starting(formats),
            help="How to print it.",
        ),
    ] = "table",
) -> str:
    """Show what a kernel does to the memory of any device."""
    from ..analyzer.report import check_format
    from ..models.replay.device import load_device

    check_format(format)
    view = _view(source, replay, by, names)
    arguments = replay.arguments()
    for device in arguments["device"]:
        load_device(device, arguments.get("set"))
    with trace_of(source, recording, replay.asked, sys.stderr) as trace:
        return _report(trace, arguments, view, format)


def _report(trace: Path, arguments: dict[str, Any], view: "View", format: str) -> str:
    """Replay and render."""
    from ..analyzer.profile import analyze
    from ..analyzer.report import render

    with progress("replaying"):
        return render(replace(analyze(trace, **arguments), view=view), format)


def _view(source: Path, replay: Replay, by: str, names: str | None) -> "View":
    """How to show it on this terminal or pipe; refuses unknown groupings and counters."""
    from ..analyzer.view import View, check_grouping
    from ..analyzer.vocabulary import find_counters

    check_grouping(by)
    counters = tuple(name for name in (names or "").split(",") if name)
    find_counters(counters)
    terminal = sys.stdout.isatty()
    return View(
        by=by,
        counters=counters,
        width=shutil.get_terminal_size().columns if terminal else None,
        colour=terminal and "NO_COLOR" not in os.environ,
        first=replay.first_line(),
        last=_next(source, replay, by),
    )


def _next(source: Path, replay: Replay, by: str) -> str:
    """What to type next: the finer grouping, and after the finest what a counter means."""
    finer = {"launch": "line", "line": "array", "array": "instruction"}
    if by not in finer:
        return "cutrace counters global_load_transactions"
    return f"cutrace analyze {shlex.quote(str(source))}{replay.typed()} --by {finer[by]}"
