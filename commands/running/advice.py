"""Advice for the terminal: what every rule finds in a trace that was replayed."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...analyzer.profile import Profile


def advise_here(
    path: Path, profile: "Profile", arguments: Mapping[str, Any], format: str = "table"
) -> str:
    """The advice on a trace; `arguments` are those of the `analyze()` that gave the profile."""
    from ...analyzer.advice.advice import advise
    from ...analyzer.advice.advice_report import render
    from ...models.replay.whatif.suppose import suppose
    from ...traces.reader import read_trace

    dlcm, settings = arguments.get("dlcm", "ca"), arguments.get("set", {})
    trace = suppose(read_trace(path), arguments.get("pad", {}), arguments.get("align", {}))
    found = advise(trace, profile, dlcm, settings)
    return render(found, format, profile.view)
