"""`cutrace check`: fail where a trace is not as it should be, for people and for CI."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import CheckFailed, CutraceError
from ._progress import progress
from ._quote import quote
from ._recording import Recording, records, trace_of

PANEL = "Compare"


@records
def command(
    source: Annotated[Path, typer.Argument(help="A trace, or a source to record for this once")],
    recording: Recording,
    races: Annotated[
        bool, typer.Option("--races", help="No two warps may race for shared memory.")
    ] = False,
) -> str:
    """Fail, with status 1, where a trace does not hold what is asked of it."""
    if not races:
        raise CutraceError("nothing to check: --races looks for races in shared memory")
    with trace_of(source, recording, {}) as trace, progress("looking for races"):
        report = _check_races(trace)
    typed = f"cutrace analyze {quote(source)}{recording.typed()}"
    return f"{report}\n\nnext: {typed}"


def _check_races(trace: Path) -> str:
    """What was found; `CheckFailed` with it if there are races."""
    from ..analyzer.race_text import render_races
    from ..models.race import find_races
    from ..traces.reader import read_trace

    opened = read_trace(trace)
    checks = [find_races(launch) for launch in opened.launches]
    report = render_races(checks, opened.manifest.sources)
    if count := sum(len(check.races) for check in checks):
        pairs = f"{count} pair{'s' * (count > 1)} of lines"
        raise CheckFailed(f"races in shared memory between {pairs}\n\n{report}")
    return report
