"""Advice for the terminal: what every rule finds in a trace that was replayed."""

from pathlib import Path
from typing import TYPE_CHECKING

from ...models.replay.options import ReplayOptions

if TYPE_CHECKING:
    from ...analyzer.profile import Profile


def advise_here(
    path: Path, profile: "Profile", options: ReplayOptions, format: str = "table"
) -> str:
    """The advice on a trace that was replayed with these options."""
    from ...analyzer.advice.advice import advise
    from ...analyzer.advice.advice_report import render
    from ...models.replay.whatif.suppose import suppose
    from ...traces.reader import read_trace

    trace = suppose(read_trace(path), options.pad, options.align)
    found = advise(trace, profile, options)
    return render(found, format, profile.view)
